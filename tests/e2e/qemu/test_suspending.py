"""Real guests that are suspended under `herder up`, and parts of it that die at whichever step: the guest goes on, or is suspended,
or boots from its disks with a reason. Its counter never runs backwards, and no number comes twice."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from herder.api import labels
from tests.e2e.qemu.counters import HERE, INSTANCES, MACHINES, PATIENCE, Counters, counters
from tests.engines.api import Json
from tests.engines.resources import CLAIMS, EVENTS, NODES, PODS
from tests.engines.waiting import eventually

pytestmark = pytest.mark.usefixtures("migrations")
LOAD = "rate=20 dirty=2M/s working-set=40M"
MERGE = "merge"


async def ask(herd: Counters, name: str, suspended: bool | None) -> None:
    patch = {"spec": {"suspended": suspended}}
    (await herd.api.patch(MACHINES, name, patch, HERE, kind=MERGE)).ok  # noqa: B018


async def shows(herd: Counters, name: str, word: str) -> Json:
    async def look() -> Json:
        (machine,) = [one for one in await herd.all(MACHINES) if one["metadata"]["name"] == name]
        assert machine.get("status", {}).get("printableStatus") == word, machine.get("status")
        return machine

    return await eventually(look, PATIENCE)


async def asleep(herd: Counters, name: str) -> None:
    await shows(herd, name, "Suspended")

    async def nothing_runs() -> bool:
        assert [one for one in await herd.all(INSTANCES) if one["metadata"]["name"] == name] == []
        return True

    await eventually(nothing_runs, PATIENCE)


async def test_a_guest_is_suspended_everything_is_restarted_and_it_goes_on_elsewhere(tmp_path: Path, guest: Path) -> None:
    async with counters(tmp_path, guest, nodes=2, tireless=True) as herd:
        await herd.make("web", LOAD)
        before = await herd.runs("web")
        await ask(herd, "web", True)
        await asleep(herd, "web")
        await herd.nothing_is_left()
        os.kill(herd.up.pid, signal.SIGKILL)
        herd.start_again()
        await shows(herd, "web", "Suspended")
        (await herd.api.patch(NODES, before["status"]["nodeName"], {"spec": {"unschedulable": True}}, kind=MERGE)).ok  # noqa: B018
        await ask(herd, "web", None)
        after = await herd.runs("web")
        assert after["status"]["nodeName"] != before["status"]["nodeName"]
        herd.witness.assert_one_counter("web")
        assert herd.witness.places("web") == 2


async def test_memory_that_fits_no_more_is_thrown_away_and_the_reason_is_said(tmp_path: Path, guest: Path) -> None:
    """By the program with the rights that it has: whoever may not throw it away could not start the machine, either."""
    async with counters(tmp_path, guest, nodes=1) as herd:
        await herd.make("web", LOAD)
        await herd.runs("web")
        await ask(herd, "web", True)
        await asleep(herd, "web")
        changed = {"spec": {"template": {"spec": {"domain": {"memory": {"guest": "80Mi"}}}}}}
        (await herd.api.patch(MACHINES, "web", changed, HERE, kind=MERGE)).ok  # noqa: B018
        await ask(herd, "web", None)
        await herd.runs("web")
        machine = await shows(herd, "web", "Running")
        (said,) = [one for one in machine["status"]["conditions"] if one["type"] == "Suspended"]
        assert (said["status"], said["reason"]) == ("False", "NotResumed")
        assert "its template has changed since the memory was saved" in said["message"]
        # And is saved anew, into a claim that is large enough by now.
        await ask(herd, "web", True)
        await asleep(herd, "web")
        assert (await _claim(herd))["spec"]["resources"]["requests"]["storage"] == "178Mi"
        (await herd.api.delete(MACHINES, "web", HERE)).ok  # noqa: B018
        await herd.nothing_is_left()


async def test_what_a_claim_says_of_memory_that_was_used_is_believed_by_no_node(tmp_path: Path, guest: Path) -> None:
    """As after a restore from an older backup, or written by somebody: whose memory it is stands in the file."""
    async with counters(tmp_path, guest, nodes=1) as herd:
        await herd.make("web", LOAD)
        await herd.runs("web")
        await ask(herd, "web", True)
        await asleep(herd, "web")
        older = await _record(herd, "Saved")
        await ask(herd, "web", None)
        await herd.runs("web")
        await ask(herd, "web", True)
        await asleep(herd, "web")
        newer = await _record(herd, "Saved")
        said = msgspec.json.encode({**older, "instance": newer["instance"]}).decode()
        patch = {"metadata": {"annotations": {labels.MEMORY: said}}}
        (await herd.api.patch(CLAIMS, "web-memory", patch, HERE, kind=MERGE)).ok  # noqa: B018
        await ask(herd, "web", None)
        await herd.runs("web")
        assert herd.witness.text("web").count("boot ") == 2

        async def why() -> str:
            (machine,) = await herd.all(MACHINES)
            (found,) = [one["message"] for one in machine["status"]["conditions"] if one["type"] == "Suspended"] or [""]
            return found

        assert "the memory that was saved is of another guest" in await eventually(why, PATIENCE)
        assert not list(herd.up.data.rglob("memory")), "nobody goes on from it later, either"


Step = Callable[[Counters], object]


async def _claim(herd: Counters) -> Json:
    found = [one for one in await herd.all(CLAIMS) if one["metadata"]["name"].endswith("-memory")]
    assert found
    return found[0]


async def _record(herd: Counters, *states: str) -> Json:
    record = msgspec.json.decode((await _claim(herd))["metadata"]["annotations"][labels.MEMORY])
    assert record["state"] in states, record
    return record


async def _saver(herd: Counters) -> Json:
    found = [one for one in await herd.all(PODS) if labels.IMPORT in one["metadata"].get("annotations", {})]
    assert found or await _record(herd, "Saved")
    return found[0] if found else {"done": True}


async def _resuming(herd: Counters) -> Json:
    return await _record(herd, "Resuming", "Used")


async def _placed(herd: Counters) -> Json:
    found = [one for one in await herd.all(PODS) if one["spec"].get("nodeName")]
    assert found
    return found[0]


async def _half_written(herd: Counters) -> bool:
    assert any(herd.up.data.rglob("memory.part")) or await _record(herd, "Saved")
    return True


async def _half_read(herd: Counters) -> bool:
    assert any(herd.up.data.rglob("memory.used")) or await _record(herd, "Used")
    return True


SAVING = {
    "asked": None,
    "the claim is there": _claim,
    "the pod that saves is there": _saver,
    "half of it is written": _half_written,
}
RESUMING = {"asked": None, "the memory is somebody's": _resuming, "the pod is placed": _placed, "half of it is read": _half_read}
NOBODY = -1
VICTIMS = ["engine", "controllers", "agents", "supervisor"]


@pytest.mark.parametrize("victim", VICTIMS)
async def test_whichever_part_dies_at_whichever_step(tmp_path: Path, guest: Path, victim: str) -> None:
    async with counters(tmp_path, guest, nodes=2, tireless=True) as herd:
        for number, (saving, resuming) in enumerate(zip(SAVING.items(), RESUMING.items(), strict=True)):
            name = f"web-{number}"
            await herd.make(name, LOAD)
            await herd.runs(name)
            await ask(herd, name, True)
            await _kill(herd, victim, saving[1])
            await asleep(herd, name)
            await ask(herd, name, None)
            await _kill(herd, victim, resuming[1])
            await herd.runs(name)
            await _one_counter_or_a_reason(herd, name, f"{saving[0]}, {resuming[0]}")
            (await herd.api.delete(MACHINES, name, HERE)).ok  # noqa: B018
            await herd.nothing_is_left()


async def test_a_qemu_that_dies_at_whichever_step(tmp_path: Path, guest: Path) -> None:
    """With it the guest dies. What was saved of it then is nothing, or all: it boots and says why, or goes on."""
    async with counters(tmp_path, guest, nodes=2, tireless=True) as herd:
        steps = [(name, step, None) for name, step in SAVING.items()] + [(name, None, step) for name, step in RESUMING.items()]
        for number, (when, saving, resuming) in enumerate(steps):
            name = f"web-{number}"
            await herd.make(name, LOAD)
            await herd.runs(name)
            await ask(herd, name, True)
            if number < len(SAVING):
                await _kill(herd, "qemu", saving)
            await asleep(herd, name)
            await ask(herd, name, None)
            if number >= len(SAVING):
                await _kill(herd, "qemu", resuming)
            await herd.runs(name)
            await _one_counter_or_a_reason(herd, name, when)
            (await herd.api.delete(MACHINES, name, HERE)).ok  # noqa: B018
            await herd.nothing_is_left()


async def _kill(herd: Counters, victim: str, step: Callable[[Counters], object] | None) -> None:
    process = herd.up.pid if victim in ("supervisor", "qemu") else herd.up.child(victim)
    if step is not None:
        await eventually(lambda: step(herd), PATIENCE, 0.001)  # pyright: ignore[reportArgumentType]
    if victim == "qemu":
        process = await eventually(lambda: _qemu(herd), PATIENCE)
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL) if process != NOBODY else None
    if victim == "supervisor":
        herd.start_again()


async def _qemu(herd: Counters) -> int:
    """The process of the one guest that there is, or will be; or was: then nobody is harmed."""
    found = [int(one.parent.name) for one in Path("/proc").glob("[0-9]*/cwd") if _is_below(one, herd.up.data)]
    if not found and any(one["status"].get("printableStatus") == "Suspended" for one in await herd.all(MACHINES)):
        return NOBODY
    assert found
    return found[0]


def _is_below(link: Path, folder: Path) -> bool:
    with suppress(OSError):
        return link.readlink().is_relative_to(folder.resolve() / "nodes")
    return False


async def _one_counter_or_a_reason(herd: Counters, name: str, when: str) -> None:
    text = herd.witness.text(name)
    if text.count("boot ") == 1:
        herd.witness.assert_one_counter(name)
        return

    async def why() -> list[str]:
        """An event is lost with who dies before it is written; the condition stays for as long as the guest runs. Both come a
        moment after the guest."""
        (machine,) = [one for one in await herd.all(MACHINES) if one["metadata"]["name"] == name]
        events = [one for one in await herd.all(EVENTS) if one["involvedObject"]["name"] == name]
        said = [one["message"] for one in (*machine["status"].get("conditions", ()), *events) if one.get("reason") in REASONS]
        assert said, f"it booted, and nobody says why ({when}):\n{text}"
        return said

    await eventually(why, PATIENCE)


# Of one whose QEMU was killed, what was said of that is enough.
REASONS = ("NotResumed", "MemoryDropped", "GuestCrashed")
