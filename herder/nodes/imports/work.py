"""Imports as the work of pods. Told once a second how far they are; whoever is killed on the way starts over."""

from __future__ import annotations

import asyncio
import contextlib
import errno
from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec
import structlog

from herder.api import reasons
from herder.api.core import Pod
from herder.api.guest import SavedGuest
from herder.api.imports import ImportDefinition, ImportReport
from herder.api.world import World
from herder.kit.tasks import watched
from herder.nodes.imports.failure import ImportFailed
from herder.nodes.imports.fetching import Request
from herder.nodes.imports.filling import fill
from herder.nodes.imports.folder import StorageFolder
from herder.nodes.imports.growing import OpenDisks, grow
from herder.nodes.imports.saving import SavesMemory, save_memory
from herder.nodes.imports.underway import UnderWay, definition_of
from herder.nodes.imports.verifying import Verifies
from herder.nodes.runtimes.base import GuestStatus, Refused
from herder.nodes.work import NotYet
from herder.rules.disk_space import Reserve

log = structlog.get_logger()
TELL_EVERY = 1.0


class ImportSettings(msgspec.Struct, frozen=True):
    # From this machine itself, and from its link (--allow-local-imports).
    allow_local: bool = False
    # What guests leave of the storage's file system (--storage-reserve).
    reserve: Reserve = Reserve()


class Mounted(Protocol):
    """What the agent may read of what its pods mount. None where it does not exist."""

    async def secret(self, namespace: str, name: str) -> dict[str, bytes] | None: ...

    async def config_map(self, namespace: str, name: str) -> dict[str, str] | None: ...


class LocalGuests(OpenDisks, SavesMemory, Protocol):
    """The guests of this node (`QemuRuntime`)."""


class Imports(UnderWay):
    def __init__(
        self,
        folder: StorageFolder,
        world: World,
        settings: ImportSettings,
        mounted: Mounted,
        verification: Verifies,
        guests: LocalGuests,
    ) -> None:
        super().__init__()
        self._guests = guests
        self._verification = verification
        self._folder = folder
        self._world = world
        self._settings = settings
        self._mounted = mounted

    async def start(self, pod: Pod) -> None:
        if pod.uid in self._status:
            return
        definition = definition_of(pod)
        # Whoever may create pods can write such an order: it is nothing but a claim until the API server vouches for it.
        await self._verification.check(pod, definition)
        request = await self._request(pod, definition)
        self._status[pod.uid] = GuestStatus("Running", started_at=self._world.now(), imported=ImportReport())
        run = self._run(pod.uid, definition, request, pod.controller_uid)
        self._tasks[pod.uid] = watched(run, "an import", pod=pod.name)

    async def adopt(self, pod: Pod, *, taken_over: bool = False) -> None:
        """Whoever was at it is gone. What is whole is known by its name; anything else is done once more, where it still may be."""
        try:
            with contextlib.suppress(NotYet):
                await self.start(pod)
        except Refused as refusal:
            self._status[pod.uid] = GuestStatus("Running", imported=ImportReport())
            self._end(pod.uid, refusal.reason, str(refusal))

    async def _run(self, uid: str, definition: ImportDefinition, request: Request | None, owner: str) -> None:
        done: SavedGuest | None = None
        try:
            if definition.action == "save":
                told, waits = self._teller(uid), lambda why: self._waits(uid, why)
                done = await save_memory(self._folder, definition, owner, self._guests, told, waits)
            elif definition.action == "grow":
                await grow(self._folder, definition, self._guests, lambda why: self._waits(uid, why))
            else:
                await fill(self._folder, definition, request, self._settings.allow_local, self._teller(uid))
        except ImportFailed as failure:
            self._end(uid, failure.reason, str(failure))
        except OSError as error:
            reason = reasons.INSUFFICIENT_STORAGE if error.errno in (errno.ENOSPC, errno.EDQUOT) else reasons.IMPORT_FAILED
            self._end(uid, reason, f"the volume could not be written: {error.strerror or error}")
        except Exception as error:
            log.error("an import failed", error=str(error), exc_info=error)
            self._end(uid, reasons.IMPORT_FAILED, f"the import failed: {type(error).__name__}: {error}")
        else:
            self._end(uid, saved=done)

    def _waits(self, uid: str, why: str) -> None:
        """At work, and this is what it waits for."""
        known = self._status.get(uid)
        if known is not None and known.state == "Running" and known.imported != (report := ImportReport(message=why)):
            self._status[uid] = msgspec.structs.replace(known, imported=report)
            self._changed(uid)

    def _teller(self, uid: str) -> Callable[[int, int], None]:
        """At most once a second, and the last word always."""
        loop, next_at, waits = asyncio.get_running_loop(), 0.0, False

        def say() -> None:
            nonlocal next_at, waits
            next_at, waits = loop.time() + TELL_EVERY, False
            self._changed(uid)

        def told(done: int, total: int) -> None:
            nonlocal waits
            known = self._status.get(uid)
            if known is None or known.state != "Running":
                return
            self._status[uid] = msgspec.structs.replace(known, imported=ImportReport(done=done, total=total))
            if not waits:
                waits = True
                loop.call_at(max(next_at, loop.time()), say)

        return told

    async def _request(self, pod: Pod, definition: ImportDefinition) -> Request | None:
        source = definition.http
        if source is None:
            return None
        credentials, certificates = None, ""
        if source.secret_ref:
            secret = await self._mounted.secret(pod.namespace, source.secret_ref)
            if secret is None:
                raise NotYet(reasons.MISSING_SECRET, f"waits for Secret {source.secret_ref}, which does not exist")
            credentials = (_text(secret, "accessKeyId"), _text(secret, "secretKey"))
        if source.cert_config_map:
            found = await self._mounted.config_map(pod.namespace, source.cert_config_map)
            if found is None:
                raise NotYet(reasons.MISSING_CONFIG_MAP, f"waits for ConfigMap {source.cert_config_map}, which does not exist")
            certificates = "\n".join(found.values())
        return Request(source.url, _headers(source.extra_headers or ()), credentials, certificates, source.checksum or "")


def _text(secret: dict[str, bytes], name: str) -> str:
    return secret.get(name, b"").decode(errors="replace")


def _headers(written: Iterable[str]) -> dict[str, str]:
    pairs = (one.partition(":") for one in written)
    return {name.strip(): value.strip() for name, _, value in pairs if name.strip()}
