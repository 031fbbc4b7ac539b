"""Post-copy where the kernel lets QEMU's user have no userfaultfd, which is the usual: known before, done without, and said."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from herder.api.guest import MigrationOrder, MigrationReport
from herder.api.kinds.migration_state import PolicySettings
from herder.nodes.moving import Mover
from herder.nodes.runtimes.qemu import RunAs, ask, post_copy
from herder.nodes.runtimes.qemu.facts import Facts, describe
from tests.conftest import EngineMissing
from tests.e2e.guest.machine import PATIENCE
from tests.e2e.qemu.moves import LOAD, assert_one_guest_said
from tests.e2e.qemu.node import Node, order
from tests.e2e.qemu.test_handing_over import mover, pod
from tests.engines.waiting import eventually

pytestmark = pytest.mark.usefixtures("migrations")
# Slower than the guest writes; the time is up after a second.
ALLOWED = PolicySettings(
    allow_post_copy=True,
    allow_workload_disruption=True,
    bandwidth_per_migration="16Mi",
    max_downtime_ms=1,
    completion_timeout_per_gib=1,
)


def is_forbidden() -> bool:
    """Whether the kernel of this machine refuses it to those who are not root, by what it says of itself."""
    return post_copy.SYSCTL.read_text().strip() == "0" and not os.stat(post_copy.DEVICE).st_mode & 0o006


async def test_a_node_knows_whether_guests_can_come_by_post_copy(facts: Facts) -> None:
    said = describe(facts).cannot_post_copy
    assert bool(said) is is_forbidden(), said
    assert not said or ("userfaultfd" in said and "sysctl vm.unprivileged_userfaultfd=1" in said)


async def test_root_may_always(qemu: str) -> None:
    facts = await ask(qemu, None)
    assert (facts.cannot_post_copy == "") is (os.geteuid() == 0 or not is_forbidden()), facts.cannot_post_copy


async def test_the_answer_is_asked_for_again_when_the_kernel_allows_something_else(
    tmp_path: Path, qemu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "qemu.json"
    first = await ask(qemu, None, kept)
    kept.write_bytes(kept.read_bytes().replace(first.version.encode(), b"99.0.0"))
    assert (await ask(qemu, None, kept)).version == "99.0.0", "it is kept"
    switch = tmp_path / "switch"
    switch.write_text("2\n")
    monkeypatch.setattr(post_copy, "SYSCTL", switch)
    assert (await ask(qemu, None, kept)).version == first.version


async def test_a_guest_that_may_come_by_post_copy_is_prepared_without_where_it_cannot(node: Node, guest: Path) -> None:
    _forbidden_or_skipped()
    started = node.status(await node.start()).started
    incoming = order(guest, incoming=started)
    assert await node.runtime.prepare_incoming(incoming, "migration-1", ALLOWED)
    assert "vm.unprivileged_userfaultfd=1" in node.runtime.no_post_copy(incoming.guest)
    other = order(guest, incoming=started)
    assert await node.runtime.prepare_incoming(other, "migration-2", PolicySettings(allow_post_copy=False))
    assert node.runtime.no_post_copy(other.guest) == "", "nobody asked for it"


async def test_at_the_deadline_it_is_paused_instead_and_both_sides_know_why(node: Node, other: Node, guest: Path) -> None:
    _forbidden_or_skipped()
    source = await node.start(LOAD)
    await node.ticked(source, 10)
    async with mover(node, "n1") as here, mover(other, "n2") as there:
        target, heard = await _begin(here, there, node, source, guest, ALLOWED)
        assert heard.no_post_copy.startswith("node n2: ")

        async def over() -> bool:
            told, heard = here.moving(source).report, there.moving(target).report
            assert told is not None and not told.failed, told
            return told.completed and heard is not None and heard.taken_over

        await eventually(over, 2 * PATIENCE)
        told = here.moving(source).report
        assert told is not None and told.progress is not None and told.progress.mode == "Paused"
        await other.ticked(target, 10)
        await assert_one_guest_said((node, source), (other, target))


async def test_where_a_pause_is_not_allowed_it_stays_and_says_what_would_have_helped(node: Node, other: Node, guest: Path) -> None:
    _forbidden_or_skipped()
    source = await node.start(LOAD)
    await node.ticked(source, 10)
    settings = msgspec.structs.replace(ALLOWED, allow_workload_disruption=False)
    async with mover(node, "n1") as here, mover(other, "n2") as there:
        await _begin(here, there, node, source, guest, settings)

        async def given_up() -> MigrationReport | None:
            told = here.moving(source).report
            return told if told is not None and told.failed else None

        told = await eventually(given_up, 2 * PATIENCE)
        assert told is not None and told.failed == "CompletionTimeout"
        assert "post-copy, which is allowed, cannot be had: node n2: " in told.message
        assert "vm.unprivileged_userfaultfd=1" in told.message
        assert node.status(source).state == "Running"


async def test_a_source_needs_nothing_for_it(tmp_path: Path, qemu: str, guest: Path, node: Node) -> None:
    """Only the target does: from a node that may not to one that may, a guest goes by post-copy."""
    if os.geteuid() != 0:
        raise EngineMissing("post-copy needs root, or vm.unprivileged_userfaultfd=1")
    there = Node(tmp_path / "there", await ask(qemu, None), None, guest)
    await there.open()
    source = await node.start(LOAD)
    await node.ticked(source, 10)
    try:
        async with mover(node, "n1") as source_mover, mover(there, "n2") as target_mover:
            target, heard = await _begin(source_mover, target_mover, node, source, guest, ALLOWED)
            assert heard.no_post_copy == ""

            async def over() -> bool:
                told, heard = source_mover.moving(source).report, target_mover.moving(target).report
                assert told is not None and not told.failed, told
                return told.completed and heard is not None and heard.taken_over

            await eventually(over, 2 * PATIENCE)
            told = source_mover.moving(source).report
            assert told is not None and told.progress is not None and told.progress.mode == "PostCopy"
            await assert_one_guest_said((node, source), (there, target))
    finally:
        await there.end()


async def _begin(
    here: Mover, there: Mover, node: Node, source: str, guest: Path, settings: PolicySettings
) -> tuple[str, MigrationReport]:
    incoming = order(guest, LOAD, incoming=node.status(source).started)
    wanted = MigrationOrder(migration="m", settings=settings)
    await there.prepare(pod(incoming.guest, wanted), incoming)
    heard = there.moving(incoming.guest).report
    assert heard is not None
    wanted = msgspec.structs.replace(wanted, target_pod=incoming.guest, target_node="n2", address=heard.address)
    await here.look(pod(source, wanted))
    return incoming.guest, heard


def _forbidden_or_skipped() -> None:
    if not is_forbidden():
        raise EngineMissing("this kernel lets everybody have userfaultfd (vm.unprivileged_userfaultfd=1)")


def test_the_user_of_these_tests_is_not_root(run_as: RunAs | None) -> None:
    assert (run_as.uid if run_as is not None else os.geteuid()) != 0
