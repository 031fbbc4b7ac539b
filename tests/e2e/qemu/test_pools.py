"""Pools of real guests: a rolling change, user data, disks that grow, are refreshed, kept and given up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from herder.api import labels, reasons
from tests.e2e.guest.linux import initramfs
from tests.e2e.guest.test_linux import linux as linux_files  # a fixture
from tests.e2e.qemu.counters import HERE, INSTANCES, MACHINES, ticks_of
from tests.e2e.qemu.pools import DATA_VOLUMES, PATIENCE, POOLS, Herd, counting, linux, running_herd, volume, with_disks
from tests.engines.api import Json
from tests.engines.resources import CLAIMS
from tests.engines.waiting import eventually
from tests.engines.watching import Watch
from tools.guest.build import build_linux

__all__ = ["linux_files"]
MIB = 1 << 20
SOUND = b"sound\n".ljust(MIB, b"\0")
# A Linux boots for some seconds, and for many on a busy machine: what is asked meanwhile must not count against it.
WELL = {"httpGet": {"port": 8080, "path": "/index.html"}, "periodSeconds": 1, "timeoutSeconds": 1}


@pytest.fixture(scope="module")
async def herd(tmp_path_factory: pytest.TempPathFactory, qemu: str, guest: Path) -> AsyncIterator[Herd]:
    async with running_herd(tmp_path_factory.mktemp("pools"), guest) as running:
        yield running


@pytest.fixture(scope="module")
async def answering(herd: Herd, linux_files: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The DataVolume `linux`, which all machines of the pools here boot from, and the image that their disks begin with."""
    folder = tmp_path_factory.mktemp("linux")
    script = Path(__file__).with_name("answering.sh").read_text()
    (folder / "initrd").write_bytes(initramfs(linux_files / "busybox", script, linux_files / "modules"))
    build_linux(linux_files / "vmlinuz", folder / "initrd", herd.images / "linux.elf")
    (herd.images / "sound.img").write_bytes(SOUND)
    (await herd.api.create(DATA_VOLUMES, volume("linux", "32Mi", f"{herd.url}/linux.elf"), HERE)).ok  # noqa: B018


def seed(user_data: str) -> Json:
    return {"name": "seed", "cloudInitNoCloud": {"userData": user_data}}


def seeded(instance: Json, user_data: str) -> Json:
    return instance | {"volumes": [*instance["volumes"], seed(user_data)]}


class Unready:
    """Follows the instances of a pool: how many of its machines were not Ready at once, at most."""

    def __init__(self, names: set[str]) -> None:
        self._ready = dict.fromkeys(names, True)
        self.most = 0

    async def follow(self, watch: Watch) -> None:
        while True:
            event = await watch.next(PATIENCE)
            if event.name in self._ready:
                self._ready[event.name] = event.type != "DELETED" and is_true(event.object, "Ready")
                self.most = max(self.most, len(self._ready) - sum(self._ready.values()))


def is_true(instance: Json, condition: str) -> bool:
    conditions = instance.get("status", {}).get("conditions", [])
    return any(one["type"] == condition and one["status"] == "True" for one in conditions)


async def test_a_change_goes_through_ten_guests_and_never_takes_more_than_three_away(herd: Herd) -> None:
    await herd.make("ten", 10, counting("rate=1"), maxUnavailable=3)
    names = {f"ten-{number}" for number in range(1, 11)}
    assert {one["metadata"]["name"] for one in await herd.all(MACHINES)} == names
    unready = Unready(names)
    async with herd.api.watch(INSTANCES, HERE) as watch:
        following = asyncio.create_task(unready.follow(watch))
        await herd.roll("ten", 10, {"template": {"spec": counting("rate=2")}})
        assert not following.done(), following
        following.cancel()
    assert 1 <= unready.most <= 3
    revision = (await herd.get(POOLS, "ten"))["status"]["updateRevision"]
    assert {one["metadata"]["labels"][labels.POOL_REVISION] for one in await herd.all(INSTANCES)} == {revision}
    for name in sorted(names):
        text = await herd.says(name, "settings rate=2 ")
        assert text.count("settings ") == 2, "each is restarted once"
    await herd.end("ten")


@pytest.mark.usefixtures("answering")
async def test_changed_user_data_is_run_by_a_guest_that_goes_by_the_instance_id_as_cloud_init_does(herd: Herd) -> None:
    """With the same disk all the time: what was run for it once is run again only where the template asks for it."""
    image = volume("seeded-disk", "1Mi", f"{herd.url}/sound.img")
    plain = linux("seeded-disk", readinessProbe=WELL)
    await herd.make("seeded", 1, seeded(plain, "echo first data"), image)
    claim = await herd.uid(CLAIMS, "seeded-disk-1")
    assert "first data" in await herd.says("seeded-1", "linux is up")
    await herd.roll("seeded", 1, {"template": {"spec": seeded(plain, "echo second data")}})
    text = await herd.says("seeded-1", "linux is up", times=2)
    assert "known instance seeded-1.default\n" in text and "second data" not in text
    again = {"metadata": {"annotations": {labels.CLOUD_INIT_AGAIN: "true"}}, "spec": seeded(plain, "echo third data")}
    await herd.roll("seeded", 1, {"template": again})
    text = await herd.says("seeded-1", "linux is up", times=3)
    assert text.count("third data") == 1 and text.count("boot number 3 of this disk") == 1
    assert await herd.uid(CLAIMS, "seeded-disk-1") == claim
    await herd.end("seeded")


async def test_a_disk_grows_with_its_template_while_its_guest_runs(herd: Herd) -> None:
    await herd.make("grown", 1, with_disks(counting("rate=1"), "grown-disk"), volume("grown-disk", "5Mi"))
    await herd.says("grown-1", "size=5M")
    instance = await herd.uid(INSTANCES, "grown-1")
    await herd.roll("grown", 1, {"dataVolumeTemplates": [volume("grown-disk", "9Mi")]})

    async def has_grown() -> bool:
        status = (await herd.get(CLAIMS, "grown-disk-1"))["status"]
        assert status["capacity"]["storage"] == "9Mi", status
        return True

    await eventually(has_grown, PATIENCE)
    assert (await herd.disk("grown-disk-1")).stat().st_size == 9 * MIB
    # In the same QEMU: it tells the guest, which looks when it boots.
    herd.type("grown-1", "reboot")
    await herd.says("grown-1", "size=9M")
    assert (await herd.uid(INSTANCES, "grown-1"), herd.witness.places("grown-1")) == (instance, 1)
    await herd.end("grown")


async def test_an_image_is_refreshed_and_other_disks_stay_as_they_are(herd: Herd) -> None:
    for name in ("old", "new"):
        (herd.images / f"{name}.img").write_bytes(f"the {name} image".encode().ljust(MIB, b"."))
    old, new = (volume("image", "1Mi", f"{herd.url}/{name}.img") for name in ("old", "new"))
    data, machine = volume("data", "1Mi"), with_disks(counting("rate=1"), "image", "data")
    refreshing = {"proactive": {"volumes": "Reprovision"}}
    await herd.make("fresh", 2, machine, old, data, updateStrategy=refreshing, maxUnavailable=1)
    kept: dict[str, str] = {}
    for number in ("1", "2"):
        assert (await herd.disk(f"image-{number}")).read_bytes().startswith(b"the old image")
        (await herd.disk(f"data-{number}")).write_bytes(number.encode() * MIB)
        kept[number] = await herd.uid(CLAIMS, f"data-{number}")
    await herd.roll("fresh", 2, {"dataVolumeTemplates": [new, data]})
    for number, claim in kept.items():
        assert (await herd.disk(f"image-{number}")).read_bytes() == (herd.images / "new.img").read_bytes()
        assert await herd.uid(CLAIMS, f"data-{number}") == claim
        assert (await herd.disk(f"data-{number}")).read_bytes() == number.encode() * MIB
        await herd.says(f"fresh-{number}", "boot ", times=2)
    await herd.end("fresh")


@pytest.mark.usefixtures("answering")
async def test_a_guest_that_was_scaled_away_comes_back_to_what_it_had_written(herd: Herd) -> None:
    keeping = {"proactive": {"statePreservation": "Offline", "selectionPolicy": {"basePolicy": "Newest"}}}
    image = volume("kept-disk", "1Mi", f"{herd.url}/sound.img")
    await herd.make("kept", 1, seeded(linux("kept-disk", readinessProbe=WELL), "true"), image, scaleInStrategy=keeping)
    await herd.says("kept-1", "boot number 1 of this disk")
    claim, machine = await herd.uid(CLAIMS, "kept-disk-1"), await herd.uid(MACHINES, "kept-1")
    await herd.change("kept", {"replicas": 0})

    async def is_gone() -> bool:
        status = (await herd.get(POOLS, "kept"))["status"]
        assert (status["replicas"], status["preservedStates"]) == (0, 1), status
        return (await herd.api.get(MACHINES, "kept-1", HERE)).code == 404

    await eventually(is_gone, PATIENCE)
    await herd.change("kept", {"replicas": 1})
    await herd.settled("kept", 1)
    await herd.says("kept-1", "boot number 2 of this disk")
    assert await herd.uid(CLAIMS, "kept-disk-1") == claim
    assert await herd.uid(MACHINES, "kept-1") != machine
    await herd.end("kept")


@pytest.mark.parametrize("way", ["scaled in", "standby"])
async def test_a_guest_goes_on_counting_where_it_was_saved(herd: Herd, way: str) -> None:
    """Its memory was kept when it was scaled in; or it was booted once to be saved, and is what a scale-out finds."""
    name = way.replace(" ", "-")
    keeping = {"proactive": {"statePreservation": "Online"}}
    standby = {"replicas": 1, "state": "Online"} if way == "standby" else None
    await herd.make(name, 1 if standby is None else 0, counting("rate=20"), scaleInStrategy=keeping, standby=standby)
    first = f"{name}-1"
    if standby is None:
        await herd.says(first, "tick 5")
        await herd.change(name, {"replicas": 0})

    async def sleeps() -> bool:
        status = (await herd.get(POOLS, name))["status"]
        kept = status["preservedStates"] if standby is None else status.get("readyStandbyReplicas", 0)
        assert (status["replicas"], kept) == (0, 1), status
        return not [one for one in await herd.all(INSTANCES) if one["metadata"]["name"] == first]

    await eventually(sleeps, PATIENCE)
    said = len(ticks_of(herd.witness.text(first)))
    await herd.change(name, {"replicas": 1, "standby": None})
    await herd.settled(name, 1)

    async def counts() -> bool:
        return len(ticks_of(herd.witness.text(first))) > said + 5

    await eventually(counts, PATIENCE)
    herd.witness.assert_one_counter(first)
    await herd.end(name)


@pytest.mark.usefixtures("answering")
async def test_a_guest_whose_liveness_probe_finds_its_disk_spoilt_gets_a_fresh_one(herd: Herd) -> None:
    """First it is restarted with its disk. When that does not come up, it is made again without."""
    patient = linux("healed-disk", readinessProbe=WELL, livenessProbe={**WELL, "failureThreshold": 30})
    image = volume("healed-disk", "1Mi", f"{herd.url}/sound.img")
    await herd.make("healed", 2, seeded(patient, "true"), image, autohealing={"startupFailureThreshold": 1})

    async def about(number: int) -> dict[str, Any]:
        found = [(MACHINES, f"healed-{number}"), (INSTANCES, f"healed-{number}"), (CLAIMS, f"healed-disk-{number}")]
        return {resource.kind: await herd.uid(resource, name) for resource, name in found}

    well, sick = await about(1), await about(2)

    async def has_passed() -> bool:
        return is_true(await herd.get(INSTANCES, "healed-2"), reasons.ALIVE)

    await eventually(has_passed, PATIENCE)
    with (await herd.disk("healed-disk-2")).open("r+b") as disk:
        disk.write(b"spoilt")

    async def is_healed() -> bool:
        status = (await herd.get(POOLS, "healed"))["status"]
        assert [(one["name"], one["attempts"]) for one in status.get("healing", [])] == [("healed-2", 1)], status
        return status["readyReplicas"] == 2

    await eventually(is_healed, PATIENCE)
    text = await herd.says("healed-2", "boot number 1 of this disk", times=2)
    assert herd.witness.places("healed-2") == 3, text
    assert (await herd.disk("healed-disk-2")).read_bytes().startswith(b"sound")
    assert not set((await about(2)).values()) & set(sick.values())
    assert await about(1) == well
    await herd.end("healed")
