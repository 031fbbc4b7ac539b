"""The simulated runtime of one node."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec

from herder.api import reasons
from herder.api.guest import SavedGuest, Started
from herder.api.kinds.domain import CPUFeature
from herder.api.kinds.instance import StartedCPU
from herder.api.kinds.migration_state import PolicySettings
from herder.api.kinds.probes import Probe
from herder.api.world import World
from herder.nodes.runtimes.base import (
    Busy,
    Console,
    GuestStatus,
    Host,
    HostCPU,
    Moved,
    MoveState,
    Order,
    Refused,
    Unfit,
    Usage,
    named_shape,
)
from herder.nodes.runtimes.simulated import copying, saving
from herder.nodes.runtimes.simulated.console import LogReader, SimulatedConsole
from herder.nodes.runtimes.simulated.guest import Guest
from herder.nodes.runtimes.simulated.moving import Move, Moves
from herder.nodes.runtimes.simulated.network import Network
from herder.nodes.runtimes.simulated.settings import settings_of
from herder.rules.instances.launcher import guest_memory

RUNTIME = "simulated"
MACHINE_TYPE = "simulated-q35"
CPU = HostCPU(
    model="Skylake-Client-IBRS",
    vendor="Intel",
    required_features=("aes", "avx2", "pcid"),
    features=("aes", "avx", "avx2", "pcid", "sse4.2", "x2apic"),
    models=("Haswell", "Nehalem", "Penryn", "Skylake-Client-IBRS", "Westmere", "qemu64"),
)


class SimulatedRuntime:
    def __init__(self, node: str, world: World, network: Network | None = None, cpu: HostCPU = CPU, version: str = "1") -> None:
        self._node = node
        self._world = world
        self._network = network or Network()
        self.description = Host(RUNTIME, version, "none", cpu, (MACHINE_TYPE,))
        self._guests: dict[str, Guest] = {}
        self._addresses: dict[str, str] = {}
        # Of incoming guests that were allowed to come by post-copy, and cannot.
        self._no_post_copy: dict[str, str] = {}
        self._moves = Moves(self._network, self._sent, self._completed, self._move_failed)
        # How the last move of each guest ended, or stood when the guest died.
        self._moved: dict[str, Moved] = {}
        self._changed: Callable[[str], None] = lambda guest: None

    def have(self, cpu: HostCPU | None, cannot_post_copy: str = "", cannot_save_memory: str = "") -> None:
        """For guests that are started, or come, from now on: another processor, where it is not None; and why they cannot come by
        post-copy, or be suspended, where they cannot."""
        self.description = msgspec.structs.replace(
            self.description,
            cpu=cpu or self.description.cpu,
            cannot_post_copy=cannot_post_copy,
            cannot_save_memory=cannot_save_memory,
        )

    async def open(self, changed: Callable[[str], None]) -> None:
        self._changed = changed

    async def close(self) -> None:
        """They live in this process: with it they end."""
        self._moves.close()
        for guest in self._guests.values():
            guest.vanish()

    @property
    def forgets(self) -> bool:
        return True

    async def host(self) -> Host:
        return self.description

    def guests(self) -> list[str]:
        return list(self._guests)

    def status(self, guest: str) -> GuestStatus | None:
        found = self._guests.get(guest)
        return found.status if found is not None else None

    def usage(self, guest: str) -> Usage | None:
        found = self._guests.get(guest)
        return found.usage if found is not None else None

    async def start(self, order: Order) -> None:
        if order.guest in self._guests:
            return
        guest = self._make(order)
        if guest.settings.fails_at == "start":
            raise Refused(reasons.GUEST_CRASHED, "it could not be started, as it was told to")
        self._guests[order.guest] = guest
        guest.boot(paused=order.definition.spec.start_strategy == "Paused")

    def adopt(self, order: Order, *, paused: bool, started_at: float | None) -> None:
        """The process was restarted, and with it all that was simulated. To everybody else the guest runs on, so it does here."""
        guest = self._guests[order.guest] = self._make(order)
        guest.started_at = started_at
        guest.has_memory = True
        if paused:
            guest.stand_still()
        else:
            guest.run()

    async def shut_down(self, guest: str) -> None:
        if found := self._guests.get(guest):
            found.press_power_button()

    async def remove(self, guest: str) -> None:
        if move := self._moves.drop(guest):
            move.arrival.broken_off("the source has ended")
        if address := self._addresses.pop(guest, None):
            self._network.leave(address)
        self._moved.pop(guest, None)
        self._no_post_copy.pop(guest, None)
        if found := self._guests.pop(guest, None):
            found.vanish()

    async def pause(self, guest: str) -> None:
        found = self._guests.get(guest)
        if found is not None and found.state == "Running":
            found.stand_still()
            self._moves.change(guest, lambda copy: copying.to_paused(copy) if copy.mode == "PreCopy" else copy)
        elif found is not None and found.state == "Incoming" and found.has_memory:
            # Taken over as it is, standing still.
            found.started_at = self._world.now()
            found.stand_still()

    async def resume(self, guest: str) -> None:
        found, move = self._guests.get(guest), self._moves.find(guest)
        if move is not None and move.sent:
            # Its last page is on its way: it goes on there, or here once it is known to stay.
            return
        if found is not None and (found.state == "Paused" or (found.state == "Incoming" and found.has_memory)):
            self._moves.change(guest, copying.to_running)
            found.run()

    async def prepare_incoming(self, order: Order, migration: str, settings: PolicySettings | None = None) -> str:
        address = f"simulated://{self._node}/{order.guest}"
        if order.guest in self._guests:
            return address
        self._check(order.definition.incoming)
        guest = self._make(order)
        if guest.settings.fails_at == "incoming":
            raise Refused(reasons.TARGET_POD_FAILED, "it could not be prepared, as it was told to")
        if settings is not None and settings.allow_post_copy and self.description.cannot_post_copy:
            self._no_post_copy[order.guest] = self.description.cannot_post_copy
        guest.state = "Incoming"
        self._guests[order.guest] = guest
        self._addresses[order.guest] = address
        self._network.listen(address, _Arrival(guest, lambda: self._guest_changed(order.guest)))
        self._changed(order.guest)
        return address

    def no_post_copy(self, guest: str) -> str:
        return self._no_post_copy.get(guest, "")

    def shape(self, guest: str) -> dict[str, str]:
        started = self._guests[guest].started
        cpu = started.cpu or StartedCPU()
        definition = self._guests[guest].order.definition
        devices = definition.spec.domain.devices
        shape = {
            "machine": started.machine_type,
            "cpu": f"{cpu.vendor} {cpu.model}",
            "smp": f"{cpu.sockets} sockets, {cpu.cores} cores, {cpu.threads} threads",
            "memory": f"{started.memory_bytes} bytes",
            "devices": ", ".join(one.name for one in (devices.disks if devices else None) or ()) or "none",
        }
        return named_shape(definition, shape)

    async def migrate_out(self, guest: str, migration: str, address: str, settings: PolicySettings) -> None:
        found = self._guests.get(guest)
        if found is None or found.ended or self._moves.find(guest) is not None:
            return
        arrival = self._network.find(address)
        if arrival is None:
            raise Refused(reasons.TARGET_POD_FAILED, f"nobody waits for a guest at {address}")
        self._moves.begin(found, migration, arrival, settings, self._world.now())

    def moved(self, guest: str) -> Moved | None:
        move = self._moves.find(guest)
        return self._as_it_is(move) if move is not None else self._moved.get(guest)

    def _as_it_is(self, move: Move, state: MoveState = "UnderWay", why: str = "") -> Moved:
        """The numbers as they are now."""
        guest = move.guest.order.guest
        progress = self._moves.progress(guest) or copying.progress(move.copy, 0.0)
        state = "PostCopy" if state == "UnderWay" and move.copy.mode == "PostCopy" else state
        return Moved(move.migration, state, why, progress, move.began_at)

    async def cancel(self, guest: str) -> None:
        """Not once the guest is given away: it could not come back."""
        move = self._moves.find(guest)
        if move is None or move.copy.mode == "PostCopy":
            return
        self._moves.drop(guest)
        self._stays(move, "Cancelled", "cancelled")

    async def start_post_copy(self, guest: str) -> None:
        move = self._moves.find(guest)
        if move is not None and move.copy.mode == "PreCopy" and not move.sent and move.settings.allow_post_copy:
            ran = move.guest.ran
            self._moves.change(guest, copying.to_post_copy)
            move.guest.stand_still("HandedOver")
            move.arrival.arrived(ran=ran, whole=False)

    async def save(self, guest: str, instance: str, path: Path | None, told: Callable[[int, int], None]) -> SavedGuest:
        if self.description.cannot_save_memory:
            raise Refused(reasons.CANNOT_SAVE_MEMORY, self.description.cannot_save_memory)
        found = self._guests.get(guest)
        if found is None or found.order.definition.instance.uid != instance:
            raise Refused(reasons.SAVE_FAILED, "there is no guest of that instance in this pod")
        if self._moves.find(guest) is not None or found.state == "Incoming":
            raise Busy("the guest is on its way from one node to another")
        return await saving.save(found, self.description.version, told)

    async def go_on(self, guest: str) -> None:
        """Whoever stands still to be saved is saved by this very process, and goes on where that ends."""

    async def restore(self, order: Order, path: Path | None) -> None:
        if order.guest in self._guests:
            return
        saved, ran = saving.memory_of(order, RUNTIME)
        try:
            self._check(saved.started)
        except Refused as refusal:
            raise Unfit(str(refusal)) from None
        definition = msgspec.structs.replace(order.definition, incoming=saved.started)
        guest = self._guests[order.guest] = self._make(msgspec.structs.replace(order, definition=definition))
        guest.resume_with(ran, self._world.now(), runs=not saved.paused)

    async def discard_memory(self, path: Path | None) -> None:
        """Of what a simulated guest remembers nothing is kept here."""

    async def console(self, guest: str) -> Console:
        return SimulatedConsole(self._guests[guest])

    async def log(self, guest: str, *, follow: bool = False) -> AsyncIterator[bytes]:
        return LogReader(self._guests[guest], follow).read()

    async def probe(self, guest: str, probe: Probe) -> bool:
        """Answered by what the annotations say: ready after a while, dead after a while."""
        found = self._guests.get(guest)
        if found is None or found.state != "Running":
            return False
        alive = found.settings.dies_after is None or found.ran < found.settings.dies_after
        return alive and found.ran >= found.settings.ready_after

    def _make(self, order: Order) -> Guest:
        definition = order.definition
        settings = settings_of(definition.simulated)
        started = definition.incoming or self._started(order)
        return Guest(order, settings, started, self._world.now, lambda: self._guest_changed(order.guest))

    def _check(self, started: Started | None) -> None:
        """As QEMU does: a guest can only be the same where the node has all that it was started with."""
        cpu = started.cpu if started is not None else None
        has = self.description.cpu
        needed = [one.name for one in (cpu.features if cpu is not None else None) or () if one.policy in (None, "require")]
        lacking = [name for name in needed if name not in has.features]
        if cpu is not None and cpu.model not in (None, has.model, *has.models):
            lacking.insert(0, f"model {cpu.model}")
        if lacking:
            why = f"the guest was started with {', '.join(lacking)}, which node {self._node} lacks"
            raise Refused(reasons.MISSING_CPU_FEATURES, why)

    def _started(self, order: Order) -> Started:
        domain = order.definition.spec.domain
        cpu = domain.cpu
        wanted = cpu.model if cpu is not None and cpu.model else "host-model"
        host = wanted in ("host-model", "host-passthrough")
        features = {name: CPUFeature(name=name, policy="require") for name in self.description.cpu.required_features if host}
        features |= {one.name: one for one in (cpu.features if cpu is not None else None) or ()}
        model = StartedCPU(
            model=self.description.cpu.model if host else wanted,
            vendor=self.description.cpu.vendor or None,
            features=tuple(features[name] for name in sorted(features)) or None,
            sockets=(cpu.sockets if cpu else None) or 1,
            cores=(cpu.cores if cpu else None) or 1,
            threads=(cpu.threads if cpu else None) or 1,
        )
        memory = guest_memory(order.definition.spec).value()
        return Started(machine_type=MACHINE_TYPE, accelerator="none", runtime=RUNTIME, cpu=model, memory_bytes=memory)

    def _sent(self, move: Move) -> None:
        """The guest stands still with its last page, and the target has all of it."""
        if not move.guest.ended:
            move.ran = move.guest.ran
            move.guest.hold()
        move.arrival.arrived(ran=move.ran, whole=True)

    def _completed(self, move: Move) -> None:
        self._moved[move.guest.order.guest] = self._as_it_is(move, "Completed")
        if not move.guest.ended:
            move.guest.stand_still("HandedOver")
        else:
            self._changed(move.guest.order.guest)

    def _move_failed(self, move: Move, why: str) -> None:
        self._stays(move, "Failed", why)

    def _stays(self, move: Move, state: MoveState, why: str) -> None:
        """It goes on where it is, unless it was given away already or stood still before."""
        self._moved[move.guest.order.guest] = self._as_it_is(move, state, why)
        move.arrival.broken_off(why)
        if move.guest.held:
            move.guest.run()
        self._changed(move.guest.order.guest)

    def _guest_changed(self, guest: str) -> None:
        """Who ends while it is moved leaves a copy that is not whole, or is: nobody here knows."""
        move, found = self._moves.find(guest), self._guests.get(guest)
        if move is not None and found is not None and found.ended and found.state != "HandedOver":
            moved = self._as_it_is(move)
            self._moves.drop(guest)
            self._moved[guest] = moved
            move.arrival.broken_off("the source has ended")
        self._changed(guest)


class _Arrival:
    def __init__(self, guest: Guest, changed: Callable[[], None]) -> None:
        self._guest = guest
        self._tell = changed
        self._whole = False

    def arrived(self, *, ran: float, whole: bool) -> None:
        self._whole = whole
        if self._guest.state == "Incoming" and not self._guest.has_memory:
            self._guest.received(ran)
        self._tell()

    def broken_off(self, why: str) -> None:
        """What is whole needs nobody any more; what runs without the rest of its memory cannot go on."""
        if self._whole or self._guest.ended:
            return
        if self._guest.has_memory:
            self._guest.end("Crashed", reasons.GUEST_CRASHED, f"the rest of its memory did not arrive: {why}")
        else:
            self._guest.end("Failed", reasons.TARGET_POD_FAILED, f"the memory did not arrive: {why}")
