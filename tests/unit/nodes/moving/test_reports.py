"""What a node says of a guest that came to it, and of its migration, is of one and the same moment."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from herder.api.core import Pod
from herder.api.guest import MigrationReport
from herder.nodes import pods
from herder.nodes.guests import Guests
from herder.nodes.health import Health
from herder.nodes.moving.moving import Moving
from herder.nodes.pod_status import pod_status
from herder.nodes.runtimes.base import GuestStatus
from tests.engines.waiting import eventually
from tests.unit.nodes.test_failing_work import node


@pytest.mark.slow
async def test_a_guest_that_is_taken_over_while_it_is_told_of_is_never_one_that_was_taken_over_and_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The migration is over as soon as it was taken over, and a guest that waits for one that is over was lost."""
    running = False
    # Whether it waits, and whether it was taken over.
    reports: set[tuple[bool, bool]] = set()

    def taken_over() -> None:
        nonlocal running
        running = True

    def moving(self: Guests, uid: str) -> Moving:
        # As soon as what was looked at is done, and before it is written.
        asyncio.get_running_loop().call_soon(taken_over)
        return Moving(MigrationReport(migration="m", has_memory=True, taken_over=running))

    def written(pod: Pod, status: GuestStatus, address: str, now: float, health: Health, report: MigrationReport) -> Any:
        reports.add((status.state == "Incoming", report.taken_over))
        return pod_status(pod, status, address, now, health, report)

    monkeypatch.setattr(Guests, "status", lambda self, uid: GuestStatus("Running" if running else "Incoming"))
    monkeypatch.setattr(Guests, "moving", moving)
    monkeypatch.setattr(pods, "pod_status", written)
    async with node(tmp_path) as site:
        await site.pod(incoming=True)

        async def told() -> bool:
            return (False, True) in reports

        await eventually(told, patience=30)
    assert (True, False) in reports
    assert (True, True) not in reports
