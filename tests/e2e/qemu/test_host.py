"""What a node says of its QEMU, and post-copy where the kernel helps."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from herder.api.kinds.migration_state import PolicySettings
from herder.nodes.runtimes.qemu import ask, host
from herder.nodes.runtimes.qemu.facts import Facts, describe
from tests.e2e.guest.machine import PATIENCE, assert_unbroken
from tests.e2e.qemu.node import Node, order
from tests.engines.waiting import eventually


async def test_the_node_describes_models_that_it_can_run(node: Node) -> None:
    found = await node.runtime.host()
    assert found.runtime == "qemu" and found.accelerator in ("kvm", "tcg")
    assert found.cpu.model in found.cpu.models
    assert set(found.cpu.required_features) <= set(found.cpu.features)
    assert {"q35", "pc"}.isdisjoint(found.machine_types)
    assert any(name.startswith("pc-q35-") for name in found.machine_types)


async def test_the_answer_is_kept_and_asked_again_for_another_qemu(tmp_path: Path, qemu: str) -> None:
    first = await ask(qemu, None, tmp_path / "qemu.json")
    kept = (tmp_path / "qemu.json").read_bytes()
    (tmp_path / "qemu.json").write_bytes(kept.replace(first.version.encode(), b"99.0.0"))
    assert (await ask(qemu, None, tmp_path / "qemu.json")).version == "99.0.0"
    (tmp_path / "qemu.json").write_bytes(kept.replace(b'"key":"', b'"key":"another '))
    assert await ask(qemu, None, tmp_path / "qemu.json") == first


async def test_kvm_is_only_believed_when_a_boot_with_it_ends(monkeypatch: pytest.MonkeyPatch, qemu: str, tmp_path: Path) -> None:
    """A device that is there and is none."""
    (tmp_path / "kvm").touch()
    monkeypatch.setattr(host, "KVM", tmp_path / "nothing")
    assert host.kvm_works(Path("/bin/true"), None) is False
    monkeypatch.setattr(host, "KVM", tmp_path / "kvm")
    monkeypatch.setattr(host, "PROBE_PATIENCE", 0.5)
    for program in ("true", "false"):
        assert host.kvm_works(Path("/bin") / program, None) is False
    sleeper = tmp_path / "sleeper"
    sleeper.write_text("#!/bin/sh\nexec sleep 60\n")
    sleeper.chmod(0o755)
    assert host.kvm_works(sleeper, None) is False


@pytest.mark.usefixtures("migrations")
async def test_a_guest_too_busy_for_pre_copy_moves_by_post_copy(tmp_path: Path, qemu: str, guest: Path) -> None:
    """As root, told so: an unprivileged user needs the kernel's leave for it."""
    facts = await ask(qemu, None)
    if facts.cannot_post_copy:
        assert os.geteuid() != 0, "root may always"
        return
    here, there = _node(tmp_path / "here", facts, guest), _node(tmp_path / "there", facts, guest)
    load = "rate=50 dirty=64M/s working-set=16M"
    settings = PolicySettings(allow_post_copy=True, bandwidth_per_migration="8Mi", max_downtime_ms=1)
    await here.open()
    await there.open()
    try:
        source = await here.start(load)
        await here.ticked(source, 5)
        incoming = order(guest, load, incoming=here.status(source).started)
        address = await there.runtime.prepare_incoming(incoming, "m", settings)
        await here.runtime.migrate_out(source, "m", address, settings)
        await eventually(lambda: _active(here, source), PATIENCE)
        await here.runtime.start_post_copy(source)
        await here.becomes(source, "HandedOver")
        await here.runtime.cancel(source)  # forbidden by now: the guest would be lost

        async def resumed() -> bool:
            await there.runtime.resume(incoming.guest)
            return there.status(incoming.guest).state == "Running"

        await eventually(resumed, PATIENCE)
        await there.ticked(incoming.guest, 20)
        text = await there.text(incoming.guest)
        assert_unbroken(await here.text(source) + text[: text.rfind("\n") + 1])
    finally:
        await here.end()
        await there.end()


def _node(folder: Path, facts: Facts, guest: Path) -> Node:
    assert not describe(facts).cannot_post_copy
    return Node(folder, facts, None, guest)


async def _active(node: Node, guest: str) -> bool:
    progress = node.moved(guest).progress
    return progress is not None and (progress.transferred_bytes or 0) > 1 << 20
