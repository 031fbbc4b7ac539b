"""Real guests that were moved, backed up and restored: no guest is there, and each machine does as its run strategy says."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

from tests.e2e.kubectl import Kubectl
from tests.e2e.program import Up, until
from tests.e2e.qemu.test_up import PATIENCE, Herd, machine
from tests.engines.embedded import find_program

# What each does when its guest is lost.
AGAIN, STAYS = {"always": "Always", "rerun": "RerunOnFailure"}, {"manual": "Manual", "once": "Once"}
STRATEGIES = {**AGAIN, **STAYS}


def herder(*words: str | Path) -> None:
    ended = subprocess.run([str(find_program()), *map(str, words)], capture_output=True, text=True, timeout=90, check=False)
    assert ended.returncode == 0, ended.stderr


def runs(herd: Herd, name: str) -> bool:
    """By its own word."""
    return any("tick 2 " in log.read_text() for log in logs(herd, name))


def logs(herd: Herd, name: str) -> list[Path]:
    uids = herd.kubectl("get", "pod", "-l", f"kubevirt.io/vm={name}", "-o", "jsonpath={.items[*].metadata.uid}").split()
    return [log for uid in uids for log in herd.up.data.glob(f"nodes/*/guests/{uid}/console.log")]


def shown(herd: Herd, name: str) -> tuple[str, str]:
    what = "jsonpath={.status.printableStatus} {.status.ready}"
    word, ready = herd.kubectl("get", "vm", name, "-o", what).split(" ")
    return word, ready


def migrate(herd: Herd, name: str) -> None:
    move = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration", "metadata": {"name": name}}
    herd.kubectl.create({**move, "spec": {"vmiName": name}})
    phase = ("get", "vmim", name, "-o", "jsonpath={.status.phase}")
    until(
        lambda: herd.kubectl(*phase) == "Succeeded", f"{name} is not moved: {herd.kubectl('get', 'vmim', '-o', 'yaml')}", PATIENCE
    )


def restored_while_it_runs(herd: Herd, file: Path) -> None:
    """A machine that was deleted is brought back, as it was when it ran."""
    herd.kubectl("delete", "vmim", "--all")
    migrate(herd, "always")
    herder("backup", file, "--data", herd.up.data)
    herd.kubectl("delete", "vm", "always", "--timeout=60s")
    herder("restore", file, "--data", herd.up.data)
    until(lambda: runs(herd, "always"), f"it says {shown(herd, 'always')}, and no guest of it counts", PATIENCE)
    until(lambda: shown(herd, "always") == ("Running", "true"), f"it says {shown(herd, 'always')}", PATIENCE)


def test_machines_that_were_moved_run_again_after_a_restore_elsewhere(
    tmp_path: Path, qemu: str, guest: Path, kubectl_program: Path
) -> None:
    file = tmp_path / "backup"
    old, new = tmp_path / "old", tmp_path / "new"
    for folder in (old, new):
        folder.mkdir()
    with Up(old, "--runtime", "qemu", nodes=2) as up:
        herd = Herd(up, Kubectl(kubectl_program, up.kubeconfig, old))
        content = base64.b64encode(guest.read_bytes()).decode()
        kernel = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kernel"}, "binaryData": {"guest.elf": content}}
        herd.kubectl.create(kernel)
        for name, strategy in STRATEGIES.items():
            wanted = machine(name)
            wanted["spec"]["runStrategy"] = strategy
            herd.kubectl.create(wanted)
        herd.kubectl("annotate", "vm", "manual", "herder.dev/start-requested=now")
        for name in STRATEGIES:
            until(lambda name=name: runs(herd, name), f"{name} does not count", PATIENCE)
            migrate(herd, name)
        herder("backup", file, "--data", up.data)
    assert herd.processes() == []
    herder("restore", file, "--data", new / "data")
    with Up(new, "--runtime", "qemu", nodes=2) as up:
        herd = Herd(up, Kubectl(kubectl_program, up.kubeconfig, new))
        for name in AGAIN:
            until(lambda name=name: runs(herd, name), f"{name} says {shown(herd, name)}, and no guest of it counts", PATIENCE)
            until(lambda name=name: shown(herd, name) == ("Running", "true"), f"{name} says {shown(herd, name)}", PATIENCE)
        for name in STAYS:
            until(lambda name=name: shown(herd, name) == ("Stopped", "false"), f"{name} says {shown(herd, name)}", PATIENCE)
        assert len(herd.processes()) == len(AGAIN)
        restored_while_it_runs(herd, file)
        herd.kubectl("delete", "vm", "--all", "--timeout=60s")
