"""`herder install`: looks at everything first, tries everything without storing it, and only then writes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from herder.api.crds import PART_OF, PRODUCT
from herder.api.kinds.kubevirt import NAME as SETTINGS_NAME
from herder.api.kinds.kubevirt import NAMESPACE as SETTINGS_NAMESPACE
from herder.api.kinds.kubevirt import empty_settings
from herder.api.world import RealWorld
from herder.app.cluster import connect_to
from herder.app.installation import SERVICES, Piece, pieces, webhook_service
from herder.app.refusal import CANNOT_USE_CLUSTER, WRONG_USE, Refusal
from herder.kube.client import Client
from herder.kube.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    KubeError,
    NotFound,
    ServerFailed,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from herder.kube.resources import DEFINITIONS, OUR_KINDS, SETTINGS, Anything, Key
from herder.kube.webhook import BadUrl, Registration, Settings
from herder.kube.webhook.registered import MUTATING, NAME, VALIDATING

MANAGER = "herder"
PATIENCE = 60.0
LOOK_AGAIN = 0.1
CREATED, UNCHANGED = "created", "unchanged"
SETTINGS_KEY = Key(SETTINGS_NAMESPACE, SETTINGS_NAME)
SETTINGS_SHOWN = f"{SETTINGS.kind.lower()}.{SETTINGS.group}/{SETTINGS_NAME}"
DRY = " (server dry run)"
# What of an object is not its content: when it was written, and by whom.
BOOKKEEPING = ("managedFields", "resourceVersion", "generation", "creationTimestamp", "uid")
Document = dict[str, Any]
Say = Callable[[str], None]


def webhook_settings(url: str, service: bool) -> Settings | None:
    if url and service:
        raise Refusal("--webhook-url and --webhook-service: give one of them, the API server has one way to the webhook", WRONG_USE)
    try:
        return Settings(url=url) if url or service else None
    except BadUrl as error:
        raise Refusal(f"--webhook-url: {error}", WRONG_USE) from None


async def install(kubeconfig: Path | None, context: str | None, dry_run: bool, say: Say, webhook: Settings | None = None) -> None:
    """Raises Refusal with a sentence; then nothing was changed, unless the sentence says so."""
    try:
        async with Client(connect_to(kubeconfig, context, "herder-install"), MANAGER) as client:
            installer = Installer(client, say)
            await installer.run(dry_run)
            if webhook is not None:
                await installer.register(webhook, dry_run)
    except KubeError as error:
        raise Refusal(_sentence(error), CANNOT_USE_CLUSTER) from None


class Installer:
    def __init__(self, client: Client, say: Say) -> None:
        self._client = client
        self._say = say

    async def register(self, webhook: Settings, dry_run: bool) -> None:
        """Last: the namespace of its certificate has to be there, and once it is registered it is asked."""
        listed = [f"{one.kind.lower()}.{one.group}/{NAME.name}" for one in (VALIDATING, MUTATING)]
        if not dry_run:
            if not webhook.url:
                await self._client.apply_raw(SERVICES, Key(webhook.namespace, webhook.service), webhook_service(webhook))
            await Registration(self._client, RealWorld(), webhook).register()
        if not webhook.url:
            listed.insert(0, f"service/{webhook.service}")
        for one in listed:
            self._say(f"{one} serverside-applied{DRY if dry_run else ''}")

    async def run(self, dry_run: bool) -> None:
        wanted = pieces()
        present = await asyncio.gather(*(self._present(piece) for piece in wanted))
        _check_ours(wanted, present)
        tried = [await self._try(piece, before) for piece, before in zip(wanted, present, strict=True)]
        settings = await self._try_settings()
        if dry_run:
            for piece, changes in zip(wanted, tried, strict=True):
                self._say(f"{piece.shown} {_word(changes)}{DRY}")
            self._say(f"{SETTINGS_SHOWN} {settings}{DRY}")
            return
        for piece, before in zip(wanted, present, strict=True):
            after = msgspec.json.decode(await self._client.apply_raw(piece.resource, piece.key, piece.document))
            self._say(f"{piece.shown} {_word(_content(after) != _content(before))}")
        await self._until_served([piece for piece in wanted if piece.resource is DEFINITIONS])
        self._say(f"{SETTINGS_SHOWN} {settings if settings == UNCHANGED else await self._make_settings()}")

    async def _try_settings(self) -> str:
        """What will become of the settings of the cluster. Those that are there are people's: nothing about them is touched."""
        if await self._client.find(SETTINGS, SETTINGS_KEY) is not None:
            return UNCHANGED
        with contextlib.suppress(NotFound, ServerFailed):  # neither the kind nor the namespace need be there yet
            await self._client.apply_raw(SETTINGS, SETTINGS_KEY, empty_settings(), dry_run=True)
        return CREATED

    async def _make_settings(self) -> str:
        """With an empty spec, for people to edit."""
        try:
            await self._client.create(SETTINGS, empty_settings())
        except AlreadyExists:
            return UNCHANGED
        except ServerFailed as error:
            # A webhook of ours that was registered before, and that nobody answers while the controllers are away.
            return f"not created, so the built-in settings apply: ask again when the controllers run ({error})"
        return CREATED

    async def _present(self, piece: Piece) -> Document | None:
        try:
            return msgspec.json.decode(await self._client.get_raw(piece.resource, piece.key))
        except NotFound:
            return None

    async def _try(self, piece: Piece, before: Document | None) -> bool:
        """Whether it would change something. Refused here, it is refused before anything was written."""
        try:
            raw = await self._client.apply_raw(piece.resource, piece.key, piece.document, dry_run=True)
        except NotFound:
            return True  # its namespace, or its role, is a piece of its own that is not there yet
        return _content(msgspec.json.decode(raw)) != _content(before)

    async def _until_served(self, definitions: list[Piece]) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                for piece in definitions:
                    await self._until_established(piece)
                for kind in OUR_KINDS:
                    await self._until_listed(kind)
        except TimeoutError:
            raise Refusal(f"after {PATIENCE:.0f} s not all kinds are served; ask again later", CANNOT_USE_CLUSTER) from None

    async def _until_established(self, piece: Piece) -> None:
        while True:
            found = await self._client.get(DEFINITIONS, piece.key)
            conditions = {one.type: one for one in (found.status.conditions if found.status else None) or ()}
            if (known := conditions.get("Established")) is not None and known.status == "True":
                return
            names = conditions.get("NamesAccepted")
            if names is not None and names.status == "False":
                raise Refusal(f"{piece.shown}: its names are taken: {names.message}", CANNOT_USE_CLUSTER)
            await asyncio.sleep(LOOK_AGAIN)

    async def _until_listed(self, kind: Anything) -> None:
        """A kind is established a moment before it can be used, and the next command should find it."""
        while True:
            with contextlib.suppress(NotFound, TooManyRequests):
                with contextlib.suppress(Forbidden):  # it is there; whether we may look is another matter
                    await anext(self._client.pages(kind, limit=1))
                return
            await asyncio.sleep(LOOK_AGAIN)


def _check_ours(wanted: list[Piece], present: list[Document | None]) -> None:
    """Namespaces are anybody's; of everything else, what does not say that it is ours is not."""
    strange: list[str] = []
    for piece, found in zip(wanted, present, strict=True):
        if found is None or piece.resource.kind == "Namespace":
            continue
        if found["metadata"].get("deletionTimestamp"):
            raise Refusal(f"{piece.shown}: is being deleted; ask again when it is gone. Nothing was changed.", CANNOT_USE_CLUSTER)
        if (found["metadata"].get("labels") or {}).get(PART_OF) != PRODUCT:
            strange.append(f"  {piece.shown}{_owner(found)}")
    if strange:
        raise Refusal(_told(strange), CANNOT_USE_CLUSTER)


def _owner(found: Document) -> str:
    """Who wrote it, as far as it says."""
    labels = found["metadata"].get("labels") or {}
    by = labels.get("app.kubernetes.io/managed-by") or labels.get(PART_OF)
    managers = [str(entry.get("manager")) for entry in found["metadata"].get("managedFields") or () if not entry.get("subresource")]
    names = [by] if by else list(dict.fromkeys(managers))
    return f" (of {', '.join(names)})" if names else ""


def _told(strange: list[str]) -> str:
    lines = [
        "another product installed what herder would have to change:",
        *strange,
        "Nothing was changed. Two products cannot serve the same kinds in one cluster: use another cluster, or remove that product",
        "first (its objects go with it). What is herder's own and has lost its label is taken back with",
        f"  kubectl label KIND NAME {PART_OF}={PRODUCT}",
    ]
    return "\n".join(lines)


def _content(document: Document | None) -> Document | None:
    if document is None:
        return None
    metadata = {name: value for name, value in document["metadata"].items() if name not in BOOKKEEPING}
    return {**{name: value for name, value in document.items() if name != "status"}, "metadata": metadata}


def _word(changed: bool) -> str:
    return "serverside-applied" if changed else UNCHANGED


def _sentence(error: KubeError) -> str:
    if isinstance(error, Unreachable):
        return f"the cluster cannot be reached: {error}"
    if isinstance(error, Unauthorized):
        return f"the cluster does not know this user: {error}"
    if isinstance(error, Forbidden):
        return f"this user may not install herder, an administrator may: {error}"
    if isinstance(error, Conflict):
        return f"somebody else writes the same at the same time; ask again: {error}"
    return f"the cluster does not take it: {error}"
