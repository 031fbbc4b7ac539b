"""What a node says of its QEMU, and post-copy where the kernel helps."""

from __future__ import annotations

from pathlib import Path

import pytest

from herder.nodes.runtimes.qemu import ask, host
from tests.e2e.qemu.node import Node


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
