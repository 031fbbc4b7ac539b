"""Real guests: each is a QEMU process of its own, which outlives the agent and is found again."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec
import structlog

from herder.api import reasons
from herder.api.guest import SavedGuest
from herder.api.kinds.migration_state import PolicySettings
from herder.api.kinds.probes import Probe
from herder.api.world import World
from herder.kit import tasks
from herder.nodes.runtimes.base import Busy, Console, GuestStatus, Host, Moved, Order, Refused, Unfit, Usage, named_shape
from herder.nodes.runtimes.qemu import building, channels, facts, probes, resizing, saving, trimming
from herder.nodes.runtimes.qemu.adopting import adopt_all
from herder.nodes.runtimes.qemu.blueprint import draw
from herder.nodes.runtimes.qemu.building import Built, Plan
from herder.nodes.runtimes.qemu.channels import Channels
from herder.nodes.runtimes.qemu.console import FileConsole, read_log
from herder.nodes.runtimes.qemu.facts import Facts, can_type
from herder.nodes.runtimes.qemu.guest import Guest
from herder.nodes.runtimes.qemu.memory_file import Head, MemoryFile, difference, states_of
from herder.nodes.runtimes.qemu.moving import Move
from herder.nodes.runtimes.qemu.process import Process, RunAs
from herder.nodes.runtimes.qemu.qmp import QMPError
from herder.nodes.runtimes.qemu.record import CONSOLE_LOG, QEMU_LOG, Folder, MoveRecord
from herder.nodes.runtimes.qemu.room import Room
from herder.nodes.runtimes.qemu.usage import usage_of
from herder.nodes.runtimes.qemu.wire import Wire

log = structlog.get_logger()
# Guests are told apart by their own address; two that got the same one try another.
ATTEMPTS = 5
BUTTON_PATIENCE = 3.0
_ADDRESS_TAKEN = "host forwarding"


class QemuRuntime:
    def __init__(self, folder: Path, world: World, known: Facts, run_as: RunAs | None = None, wire: Wire | None = None) -> None:
        """Without a wire guests move between the nodes of this machine only."""
        self._folder = folder / "guests"
        self._world = world
        self._facts = known
        self._run_as = run_as
        self.description = facts.describe(known)
        self._guests: dict[str, Guest] = {}
        self._starting: dict[str, asyncio.Task[Guest]] = {}
        # Of those that are started: the processes that have not said a word yet, and who shall be gone before they do.
        self._booting: dict[str, Process] = {}
        self._unwanted: set[str] = set()
        self._channels = Channels(wire, run_as, world)
        self._room = Room()
        self._patience: float | None = None
        self._trimming: asyncio.Task[None] | None = None
        self._changed: Callable[[str], None] = lambda guest: None

    async def open(self, changed: Callable[[str], None]) -> None:
        self._changed = changed
        self._folder.mkdir(parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        for guest in await adopt_all(self._folder, self._tell):
            self._guests[guest.folder.guest] = guest
            if guest.state == "Running" and guest.record.started_at is None:
                guest.settle(started_at=self._world.now())
            if guest.record.reads is not None and guest.record.started_at is not None:
                guest.background(saving.let_go(guest))
        self._trimming = tasks.keep_running(trimming.keep_short(self._logs), "shortening of logs")

    @property
    def forgets(self) -> bool:
        return False

    async def room(self, *, short: bool, back: bool) -> None:
        """Of the storage: so little is left that nobody may take more of it; or there is enough again."""
        await self._room.told(self._guests.values(), short=short, back=back)

    def end_guests_on_close(self, patience: float) -> None:
        """The node is shut down on purpose. Without this they live on, as after a crash."""
        self._patience = patience

    async def close(self) -> None:
        if self._trimming is not None:
            self._trimming.cancel()
        await self._settle()
        if self._patience is not None:
            await self.end_all(self._patience)
        for guest in self._guests.values():
            guest.leave()

    async def end_all(self, patience: float) -> None:
        """The node shuts down: power buttons first, and whoever is still there then is switched off."""
        await self._settle()
        alive = [guest for guest in self._guests.values() if not guest.ended]
        await asyncio.gather(*(self.shut_down(guest.folder.guest) for guest in alive))
        waiting = [asyncio.create_task(guest.over.wait()) for guest in alive]
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=patience)
            for task in late:
                task.cancel()
        for guest in alive:
            guest.end("Failed", reasons.SWITCHED_OFF, "the node was shut down")
        await asyncio.gather(*(guest.quit() for guest in self._guests.values()))

    async def _settle(self) -> None:
        """What is being started is waited for: it would be nobody's."""
        if self._starting:
            await asyncio.wait(self._starting.values())

    async def host(self) -> Host:
        return self.description

    def guests(self) -> list[str]:
        return list(self._guests)

    def status(self, guest: str) -> GuestStatus | None:
        found = self._guests.get(guest)
        return found.status if found is not None else None

    def usage(self, guest: str) -> Usage | None:
        """While we watch the process, its number is nobody else's."""
        found = self._guests.get(guest)
        return usage_of(found.process.pid) if found is not None and found.process is not None else None

    async def start(self, order: Order) -> None:
        if order.guest not in self._guests:
            await self._once(self._plan(order))

    async def shut_down(self, guest: str) -> None:
        if (found := self._running(guest)) is not None:
            # One that takes no order now is not waited for: it is switched off in the end.
            with contextlib.suppress(QMPError, TimeoutError):
                async with asyncio.timeout(BUTTON_PATIENCE):
                    await found.control.do("system_powerdown")

    async def remove(self, guest: str) -> None:
        if (starting := self._starting.get(guest)) is not None:
            self._unwanted.add(guest)
            if (booting := self._booting.get(guest)) is not None:
                booting.kill()
            try:
                await asyncio.wait([starting])
            finally:
                self._unwanted.discard(guest)
        found = self._guests.get(guest)
        if found is not None:
            await found.remove()
            self._guests.pop(guest, None)

    async def pause(self, guest: str) -> None:
        """One that has come is taken over as it is, standing still. One that leaves stands still until it is known where it is."""
        found = self._running(guest)
        if found is not None and found.waits_for_room:
            # It stands still already; from now on because its owner wants it.
            found.settle(no_room=False)
            found.become("Paused")
        elif found is not None and found.state == "Running":
            with contextlib.suppress(QMPError):
                if found.move is not None and found.move.under_way:
                    await found.move.pause()
                else:
                    await found.control.do("stop")
                    found.become("Paused")
        elif found is not None and found.state == "Incoming" and found.has_memory:
            found.settle(started_at=self._world.now())
            found.become("Paused")

    async def resume(self, guest: str) -> None:
        found = self._running(guest)
        if (
            found is None
            or found.record.saving is not None
            or not (found.state == "Paused" or (found.state == "Incoming" and found.has_memory))
        ):
            return
        before = found.record
        since = before.started_at or self._world.now()
        found.record = msgspec.structs.replace(before, started_at=since, no_room=False)
        try:
            await found.control.do("cont")
        except QMPError as problem:
            log.warning("a guest does not go on", guest=guest, problem=str(problem))
            found.record = before
            return
        found.become("Running")
        if found.record != before:
            # Afterwards, as it waits for the disk. Should it never be written, QEMU itself tells that the guest runs.
            found.settle()

    async def prepare_incoming(self, order: Order, migration: str, settings: PolicySettings | None = None) -> str:
        wanted = settings or PolicySettings()
        if self.description.cannot_migrate:
            raise Refused(reasons.RUNTIME_NOT_LIVE_MIGRATABLE, self.description.cannot_migrate)
        guest = self._guests.get(order.guest) or await self._once(self._plan(order, incoming=True))
        if guest.ended:
            raise Refused(reasons.TARGET_POD_FAILED, f"the guest that waited for its memory has ended: {guest.message}")
        if not guest.waits_at and guest.state == "Incoming":
            guest.waits_at = await self._listen(guest, wanted)
        return guest.waits_at

    async def _listen(self, guest: Guest, settings: PolicySettings) -> str:
        try:
            return await self._channels.listen(guest, settings)
        except (QMPError, OSError) as problem:
            why = await guest.why_it_ended() or str(problem)
            raise Refused(reasons.TARGET_POD_FAILED, f"QEMU cannot wait for the guest's memory: {why}") from None

    def no_post_copy(self, guest: str) -> str:
        return self._guests[guest].no_post_copy

    def shape(self, guest: str) -> dict[str, str]:
        record = self._guests[guest].record
        return named_shape(record.definition, record.shape)

    async def migrate_out(self, guest: str, migration: str, address: str, settings: PolicySettings) -> None:
        if self.description.cannot_migrate:
            raise Refused(reasons.RUNTIME_NOT_LIVE_MIGRATABLE, self.description.cannot_migrate)
        if (found := self._running(guest)) is not None:
            if found.record.saving is not None:
                # Not once it is saved, either: then there is nobody to move.
                raise Refused(reasons.NOT_LIVE_MIGRATABLE, "its memory is being saved")
            async with found.leaving:
                if _may_leave(found, migration):
                    await self._begin(found, migration, await self._channels.connect(found, address), settings)

    async def _begin(self, guest: Guest, migration: str, connection: socket.socket, settings: PolicySettings) -> None:
        try:
            guest.keep(move=MoveRecord(migration=migration, began_at=self._world.now(), settings=settings))
        except OSError as error:
            connection.close()
            raise Refused(reasons.COPY_FAILED, f"that it leaves cannot be written down: {error.strerror or error}") from None
        guest.move = Move(guest)
        try:
            await guest.move.begin(await channels.hand_over(guest.control, connection))
        except QMPError as error:
            guest.move.did_not_begin(str(error))
            raise Refused(reasons.NOT_LIVE_MIGRATABLE, f"QEMU does not move it: {error}") from None

    def moved(self, guest: str) -> Moved | None:
        found = self._guests.get(guest)
        return found.move.moved if found is not None and found.move is not None else None

    async def cancel(self, guest: str) -> None:
        found = self._guests.get(guest)
        if found is not None and found.move is not None:
            with contextlib.suppress(QMPError):
                await found.move.cancel()

    async def start_post_copy(self, guest: str) -> None:
        found = self._guests.get(guest)
        if found is not None and found.move is not None and found.move.under_way:
            with contextlib.suppress(QMPError):
                await found.move.start_post_copy()

    async def save(self, guest: str, instance: str, path: Path | None, told: Callable[[int, int], None]) -> SavedGuest:
        if self.description.cannot_save_memory:
            raise Refused(reasons.CANNOT_SAVE_MEMORY, self.description.cannot_save_memory)
        found = self._guests.get(guest)
        if found is None or found.record.definition.instance.uid != instance:
            raise Refused(reasons.SAVE_FAILED, "there is no guest of that instance in this pod")
        assert path is not None, "real memory has a place"
        return await saving.save(found, path, self._facts.version, told)

    async def go_on(self, guest: str) -> None:
        if (found := self._running(guest)) is not None and not found.leaving.locked():
            async with found.leaving:
                await saving.go_on(found)

    async def restore(self, order: Order, path: Path | None) -> None:
        assert path is not None, "real memory has a place"
        known = self._guests.get(order.guest)
        if known is not None and known.state == "Incoming":
            await self._go_on_restoring(order, known, path)
        elif known is None:
            await self._restore(order, path)

    async def _go_on_restoring(self, order: Order, guest: Guest, path: Path) -> None:
        """What an agent has begun that is not there any more. What it had not read to its end nobody can read again: it was used.
        Unless it had not yet begun."""
        if guest.has_memory:
            return await self._run_restored(guest)
        await self.remove(order.guest)
        if not path.exists():
            raise Unfit("the node was interrupted while it read the memory that was saved")
        return await self._restore(order, path)

    async def _restore(self, order: Order, path: Path) -> None:
        file = MemoryFile(path)
        head = await asyncio.to_thread(file.head)
        started = msgspec.structs.replace(order.definition, incoming=self._head_of(order, head).saved.started)
        try:
            plan = self._plan(msgspec.structs.replace(order, definition=started), memory=path)
        except Refused as refusal:
            raise Unfit(str(refusal)) from None
        guest = await self._once(plan)
        try:
            disks = await asyncio.to_thread(states_of, guest.record.disks)
            if why := difference(head, guest.record.shape, guest.record.files, disks):
                raise Unfit(why)
            await asyncio.to_thread(file.use)
            await saving.load(guest)
        except Unfit:
            await self.remove(order.guest)
            raise
        await self._run_restored(guest)

    def _head_of(self, order: Order, head: Head) -> Head:
        """Of that very guest: what an order says of it is not enough."""
        owner, source = order.definition.instance, order.definition.memory
        if source is None or head.guest != source.pod or head.instance != f"{owner.namespace}/{owner.name}":
            raise Unfit(f"the memory that was saved is of another guest ({head.instance})")
        return head

    async def _run_restored(self, guest: Guest) -> None:
        definition = guest.record.definition
        stood = definition.memory is not None and definition.memory.saved.paused
        if stood or definition.spec.start_strategy == "Paused":
            await self.pause(guest.folder.guest)
        else:
            await self.resume(guest.folder.guest)
        await saving.let_go(guest)

    async def discard_memory(self, path: Path | None) -> None:
        if path is not None:
            await asyncio.to_thread(MemoryFile(path).discard)

    def has_open(self, path: Path) -> bool:
        """Whether a guest here has this disk, or is being started and may have it soon."""
        return bool(self._starting) or bool(resizing.users_of(self._guests.values(), resizing.file_of(path)))

    async def resize(self, path: Path, size: int) -> None:
        """The guests here that have this disk see that it is so large. Never makes one smaller. Raises `Busy`, and `Refused`."""
        if self._starting:
            # Whether it has the disk, and how large it found it, is known once it runs.
            raise Busy("a guest is being started on the node")
        file = resizing.file_of(path)
        for guest in resizing.users_of(self._guests.values(), file):
            try:
                await resizing.resize(guest, file, size)
            except QMPError as problem:
                raise Refused(reasons.IMPORT_FAILED, f"QEMU does not make the guest's disk larger: {problem}") from None

    async def console(self, guest: str) -> Console:
        try:
            return FileConsole(self._guests[guest])
        except OSError:
            why = "it has ended, or was made without one"
            if not can_type(self._facts):
                why = f"QEMU {self._facts.version} has none that can be typed to, 8.1 or newer has"
            raise Refused(reasons.GUEST_NOT_RUNNING, f"the guest has no console now: {why}") from None

    async def log(self, guest: str, *, follow: bool = False) -> AsyncIterator[bytes]:
        return read_log(self._guests[guest], follow)

    async def probe(self, guest: str, probe: Probe) -> bool:
        found = self._guests.get(guest)
        return found is not None and found.state == "Running" and await probes.ask(found, probe)

    def _logs(self) -> list[Path]:
        return [guest.folder / name for guest in self._guests.values() for name in (CONSOLE_LOG, QEMU_LOG)]

    def _running(self, guest: str) -> Guest | None:
        found = self._guests.get(guest)
        return found if found is not None and not found.ended and found.qmp is not None else None

    def _tell(self, guest: str) -> Callable[[], None]:
        return lambda: self._changed(guest)

    def _plan(self, order: Order, *, incoming: bool = False, memory: Path | None = None) -> Plan:
        return Plan(
            order=order,
            blueprint=draw(order, self._facts),
            facts=self._facts,
            run_as=self._run_as,
            now=self._world.now(),
            incoming=incoming,
            memory=memory,
        )

    async def _once(self, plan: Plan) -> Guest:
        """Whoever is in a hurry, or cancelled: a start is seen through, and only one at a time."""
        name = plan.order.guest
        if name in self._guests:
            return self._guests[name]
        task = self._starting.get(name)
        if task is None:
            task = self._starting[name] = asyncio.create_task(self._launch(plan))
            task.add_done_callback(lambda done: self._started(name, done))
        return await asyncio.shield(task)

    def _started(self, name: str, done: asyncio.Task[Guest]) -> None:
        self._starting.pop(name, None)
        if not done.cancelled() and (problem := done.exception()) is not None:
            log.info("a guest was not started", guest=name, problem=str(problem))

    async def _launch(self, plan: Plan) -> Guest:
        folder, why = Folder(self._folder / plan.order.guest), ""
        for attempt in range(ATTEMPTS):
            try:
                built = await asyncio.to_thread(building.build, msgspec.structs.replace(plan, attempt=attempt), folder)
                guest, why = await self._first_words(folder, built)
            except Refused:
                folder.remove()
                raise
            except OSError as error:
                folder.remove()
                raise Refused(reasons.GUEST_CRASHED, f"QEMU could not be started: {error}") from None
            if not why:
                self._guests[plan.order.guest] = guest
                self._changed(plan.order.guest)
                return guest
            if _ADDRESS_TAKEN not in why:
                break
        raise Refused(reasons.GUEST_CRASHED, f"QEMU could not be started: {why}")

    async def _first_words(self, folder: Folder, built: Built) -> tuple[Guest, str]:
        """The guest, and why it did not start, where it did not."""
        guest = Guest(folder, built.record, self._tell(folder.guest))
        guest.process = self._booting[folder.guest] = _watched(built)
        if folder.guest in self._unwanted:
            guest.process.kill()
        try:
            await guest.talk(built.qmp)
        except (QMPError, TimeoutError) as problem:
            await guest.process.wait(1.0)
            why = guest.last_line() or str(problem) or "it did not answer in time"
            await guest.remove()
            return guest, why
        finally:
            self._booting.pop(folder.guest, None)
        guest.watch(guest.process)
        return guest, ""


def _watched(built: Built) -> Process:
    """Raises OSError; then nothing runs that nobody would know of."""
    try:
        return Process(built.child.pid, built.child)
    except OSError:
        building.abandon(built.child, built.qmp)
        raise


def _may_leave(guest: Guest, migration: str) -> bool:
    """Not twice by the same migration, whatever became of it; and by one at a time."""
    if guest.record.saving is not None:
        raise Refused(reasons.NOT_LIVE_MIGRATABLE, "its memory is being saved")
    if guest.move is None:
        return not guest.ended
    last = guest.move.moved
    if last.state == "UnderWay" and last.migration != migration:
        raise Refused(reasons.NOT_LIVE_MIGRATABLE, f"it is on its way already, by migration {last.migration}")
    return last.migration != migration and not guest.ended
