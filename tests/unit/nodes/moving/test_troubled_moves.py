"""Agents whose disks take nothing while a guest is moved: it is told, tried again, and nobody runs twice meanwhile."""

from __future__ import annotations

import errno
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec
import pytest
import structlog

from herder.api import labels, reasons
from herder.api.core import Pod
from herder.api.guest import GuestDefinition, MigrationOrder, Owner
from herder.api.kinds.domain import Devices, Domain
from herder.api.kinds.instance import VirtualMachineInstanceSpec
from herder.api.kinds.migration_state import PolicySettings
from herder.api.world import RealWorld
from herder.nodes import failures
from herder.nodes.moving import MemoryNotes, Mover, Switchboard
from herder.nodes.moving.notes import Coming, Leaving
from herder.nodes.runtimes.base import Order
from herder.nodes.runtimes.simulated import Network, SimulatedRuntime
from tests.engines.waiting import eventually

SPEC = VirtualMachineInstanceSpec(domain=Domain(devices=Devices()))
DEFINITION = GuestDefinition(instance=Owner(namespace="d", name="i", uid="u"), spec=SPEC, simulated={"boot": "0s"})


class Disk(MemoryNotes):
    full = False

    async def write(self, guest: str, note: Leaving | Coming) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device", "/data/moves/x")
        await super().write(guest, note)


class Side:
    def __init__(self, name: str, network: Network, board: Switchboard) -> None:
        self.disk = Disk()
        self.runtime = SimulatedRuntime(name, RealWorld(), network)
        self.mover = Mover(name, self.runtime, self.disk, board.link(name), RealWorld())

    def state(self, guest: str) -> str:
        status = self.mover.shown(guest, self.runtime.status(guest))
        return status.state if status is not None else "gone"


@asynccontextmanager
async def sides() -> AsyncGenerator[tuple[Side, Side]]:
    network, board = Network(), Switchboard("test")
    both = Side("n1", network, board), Side("n2", network, board)
    for side in both:
        await side.runtime.open(side.mover.told)
        await side.mover.open(lambda guest: None)
    await both[0].runtime.start(Order("source", DEFINITION, {}))

    async def runs() -> bool:
        return both[0].state("source") == "Running"

    await eventually(runs)
    try:
        yield both
    finally:
        for side in both:
            await side.mover.close()
            await side.runtime.close()


def pod(uid: str, order: MigrationOrder) -> Pod:
    annotations = {labels.MIGRATION: msgspec.json.encode(order).decode()}
    return msgspec.convert({"metadata": {"name": "p", "namespace": "d", "uid": uid, "annotations": annotations}}, Pod)


async def begin(here: Side, there: Side, settings: PolicySettings | None = None) -> None:
    status = here.runtime.status("source")
    assert status is not None
    incoming = msgspec.structs.replace(DEFINITION, incoming=status.started)
    order = MigrationOrder(migration="m", settings=settings or PolicySettings())
    await there.mover.prepare(pod("target", order), Order("target", incoming, {}))
    heard = there.mover.moving("target").report
    assert heard is not None
    order = msgspec.structs.replace(order, target_pod="target", target_node="n2", address=heard.address)
    await here.mover.look(pod("source", order))


async def is_moved(here: Side, there: Side) -> None:
    async def over() -> bool:
        return (here.state("source"), there.state("target")) == ("HandedOver", "Running")

    await eventually(over, patience=30)


@pytest.mark.slow
async def test_a_source_that_cannot_note_that_it_sends_says_so_and_goes_on_when_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "FIRST_WAIT", 0.01)
    async with sides() as (here, there):
        here.disk.full = True
        with structlog.testing.capture_logs() as logged:
            await begin(here, there)

            async def told() -> bool:
                report = here.mover.moving("source").report
                often = len([line for line in logged if line.get("failures", 0) >= 4]) > 0
                return often and report is not None and "No space left on device" in report.trouble and not report.failed

            await eventually(told, patience=30)
        assert (here.state("source"), there.state("target")) == ("Running", "Incoming")
        assert len([line for line in logged if line.get("exc_info")]) == 1, logged
        report = here.mover.moving("source").report
        assert report is not None and "/data" not in report.trouble
        here.disk.full = False
        await is_moved(here, there)
        report = here.mover.moving("source").report
        assert report is not None and report.trouble == ""


@pytest.mark.slow
async def test_a_target_that_cannot_note_that_it_may_go_on_says_so_and_goes_on_when_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "FIRST_WAIT", 0.01)
    async with sides() as (here, there):
        await begin(here, there)
        there.disk.full = True

        async def told() -> bool:
            shown = there.mover.shown("target", there.runtime.status("target"))
            assert shown is not None and shown.state == "Incoming", "it goes on only once that is noted"
            return shown.reason == reasons.START_FAILED and "No space left on device" in shown.message

        await eventually(told, patience=30)
        there.disk.full = False
        await is_moved(here, there)
        shown = there.mover.shown("target", there.runtime.status("target"))
        assert shown is not None and shown.reason == ""


@pytest.mark.slow
async def test_both_sides_do_without_post_copy_where_the_target_cannot() -> None:
    settings = PolicySettings(allow_post_copy=True, allow_workload_disruption=True)
    async with sides() as (here, there):
        there.runtime.have(None, "no userfaultfd")
        await begin(here, there, settings)
        heard = there.mover.moving("target").report
        assert heard is not None and heard.no_post_copy == "node n2: no userfaultfd"
        await is_moved(here, there)
        (note,) = (await here.disk.leaving()).values()
        assert note.no_post_copy == "node n2: no userfaultfd"
