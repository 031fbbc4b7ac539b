"""Asks the QEMU of this machine what it can do, and whether KVM works here. Asked once; the answer is kept for the next start."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import structlog

from herder.api.kinds.migration_state import PolicySettings
from herder.nodes.runtimes.qemu import post_copy, process, qmp
from herder.nodes.runtimes.qemu.command import SANDBOX
from herder.nodes.runtimes.qemu.facts import Facts, Firmware, runs_baseline
from herder.nodes.runtimes.qemu.files import write_whole
from herder.nodes.runtimes.qemu.process import RunAs
from herder.nodes.runtimes.qemu.qmp import QMP

log = structlog.get_logger()
KVM = Path("/dev/kvm")
PROBE_PATIENCE = 4.0
# The number that the probe writes, as QEMU's debug device makes an exit code of it.
PROBE_ANSWER = 0x10
OVMF = (
    Firmware("/usr/share/OVMF/OVMF_CODE_4M.fd", "/usr/share/OVMF/OVMF_VARS_4M.fd"),
    Firmware("/usr/share/OVMF/OVMF_CODE.fd", "/usr/share/OVMF/OVMF_VARS.fd"),
)
VENDORS = {"AuthenticAMD": "AMD", "GenuineIntel": "Intel"}
# The firmware's or QEMU's own doing, and no matter of the model.
_NOT_OF_THE_MODEL = {"hypervisor"}


class Kept(msgspec.Struct, frozen=True):
    """Of one boot of this machine, one QEMU, one user to run it as, and what the kernel lets that user do."""

    key: str
    facts: Facts


async def ask(name: str, run_as: RunAs | None, keep_in: Path | None = None) -> Facts:
    found = shutil.which(name)
    if found is None:
        raise FileNotFoundError(f"{name} is not installed")
    program = Path(found)
    stat = os.stat(program)
    key = f"{process.boot_id()} {program} {stat.st_mtime_ns} {stat.st_size} {run_as} {post_copy.rights()}"
    kept = _read(keep_in)
    if kept is not None and kept.key == key:
        return kept.facts
    accelerator = "kvm" if await asyncio.to_thread(kvm_works, program, run_as) else "tcg"
    facts = await _interview(program, run_as, accelerator)
    if accelerator == "kvm" and not runs_baseline(facts):
        facts = await _interview(program, run_as, "tcg")
    log.debug("asked QEMU what it can do", version=facts.version, accelerator=facts.accelerator, host_model=facts.host_model)
    if keep_in is not None:
        try:
            write_whole(keep_in, msgspec.json.encode(Kept(key, facts)))
        except OSError as error:
            log.warning("what QEMU can do cannot be kept, and is asked again at the next start", error=str(error))
    return facts


def _read(path: Path | None) -> Kept | None:
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode(path.read_bytes(), type=Kept) if path is not None else None
    return None


def kvm_works(program: Path, run_as: RunAs | None) -> bool:
    """/dev/kvm may be there, and even run a few instructions, and no guest ever boots: only a boot tells."""
    if not KVM.exists():
        return False
    with tempfile.TemporaryFile() as image:
        image.write(_probe_image())
        image.flush()
        os.fchmod(image.fileno(), 0o444)
        command = [
            *(str(program), "-nodefaults", "-no-user-config", "-display", "none", "-machine", "q35", "-accel", "kvm", "-m", "32M"),
            *("-kernel", f"/proc/self/fd/{image.fileno()}", "-device", "isa-debug-exit,iobase=0xf4,iosize=4"),
        ]
        null = os.open(os.devnull, os.O_RDWR)
        try:
            child = process.start(command, Path("/"), null, (image.fileno(),), run_as)
        except OSError:
            return False
        finally:
            os.close(null)
        try:
            return child.wait(PROBE_PATIENCE) == PROBE_ANSWER * 2 + 1
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            return False


def _probe_image() -> bytes:
    """A multiboot kernel of eight bytes: by way of the firmware into protected mode, and out with a number."""
    code = bytes((0xB0, PROBE_ANSWER, 0x66, 0xBA, 0xF4, 0x00, 0xEE, 0xF4))  # mov al, 16; mov dx, 0xf4; out dx, al; hlt
    magic, flags, load, head = 0x1BADB002, 0x10000, 0x100000, 32
    return (
        struct.pack("<8I", magic, flags, -(magic + flags) & 0xFFFFFFFF, load, load, load + head + len(code), 0, load + head) + code
    )


async def _interview(program: Path, run_as: RunAs | None, accelerator: str) -> Facts:
    """A QEMU that runs nothing answers for all that will. It waits for a guest: what it needs for that, it says only then."""
    with tempfile.TemporaryDirectory(prefix="herder-qemu-") as folder, qmp.listen(Path(folder) / "qmp") as listener:
        command = [
            *(str(program), "-nodefaults", "-no-user-config", "-display", "none", "-sandbox", SANDBOX),
            *("-machine", "q35", "-accel", accelerator, "-S", "-incoming", "defer"),
            *("-chardev", f"socket,id=qmp,fd={listener.fileno()},server=on,wait=off", "-mon", "chardev=qmp,mode=control"),
        ]
        connection = qmp.connect(Path(folder) / "qmp")
        null = os.open(os.devnull, os.O_RDWR)
        child = process.start(command, Path("/"), null, (listener.fileno(),), run_as)
        os.close(null)
        listener.close()
        talk = QMP(connection, lambda name, data: None, lambda: None)
        try:
            await talk.greet()
            return await _facts(talk, program, accelerator)
        finally:
            talk.close()
            child.kill()
            child.wait()


async def _facts(talk: QMP, program: Path, accelerator: str) -> Facts:
    version: dict[str, Any] = (await talk.do("query-version"))["qemu"]
    machines: list[dict[str, Any]] = await talk.do("query-machines")
    models: list[dict[str, Any]] = await talk.do("query-cpu-definitions")
    best = "host" if accelerator == "kvm" else "max"
    features, vendor = await _expand(talk, best)
    lacking = {one["name"]: tuple(dict.fromkeys(one.get("unavailable-features", ()))) for one in models}
    named = [one["name"] for one in models if one.get("migration-safe") and not lacking[one["name"]] and not one.get("static")]
    # Without KVM the processor is QEMU's own, and of no vendor in particular.
    model, of_model, vendor = await _closest(talk, named, features, vendor if accelerator == "kvm" else "")
    return Facts(
        program=str(program),
        version=f"{version['major']}.{version['minor']}.{version['micro']}",
        accelerator=accelerator,
        machine_types=_machine_types(machines),
        models={name: lacks for name, lacks in lacking.items() if name not in ("host", "max", "base")},
        features=tuple(sorted(features)),
        vendor=VENDORS.get(vendor, vendor),
        host_model=model,
        host_model_features=tuple(sorted(features - of_model - _NOT_OF_THE_MODEL)),
        cannot_post_copy=await post_copy.set_capabilities(talk, PolicySettings(allow_post_copy=True)),
        efi=next((one for one in OVMF if Path(one.code).exists() and Path(one.variables).exists()), None),
    )


async def _expand(talk: QMP, model: str) -> tuple[set[str], str]:
    answer = await talk.do("query-cpu-model-expansion", type="static", model={"name": model})
    properties: dict[str, Any] = answer["model"]["props"]
    return {name for name, value in properties.items() if value is True}, str(properties.get("vendor", ""))


async def _closest(talk: QMP, names: list[str], features: set[str], vendor: str) -> tuple[str, set[str], str]:
    """Of the host's own vendor where that counts, and with the most of its features. Unversioned names come first among equals."""
    found: list[tuple[int, bool, str, str, set[str]]] = []
    for name in names:
        has, made_by = await _expand(talk, name)
        if has <= features and vendor in ("", made_by):
            found.append((len(has), "-v" not in name, name, made_by, has))
    if not found:
        return "qemu64", set(), vendor
    _, _, name, made_by, has = max(found, key=lambda one: one[:3])
    return name, has, made_by


def _machine_types(machines: list[dict[str, Any]]) -> dict[str, str]:
    """Of pc and q35, old ones that QEMU will drop too: guests that were started as such must find them."""
    names = {one["name"]: one["name"] for one in machines if one["name"].startswith(("pc-q35-", "pc-i440fx-"))}
    return names | {one["alias"]: one["name"] for one in machines if one.get("alias") in ("pc", "q35")}
