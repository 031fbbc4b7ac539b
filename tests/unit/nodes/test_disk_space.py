"""The file system of the volumes, as its node tells of it and acts on it."""

import asyncio
import os
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from herder.api import reasons
from herder.api.core import Node
from herder.api.world import RealWorld
from herder.app.inside import InsideTransport
from herder.kube.client import Client
from herder.nodes import disk_space
from herder.nodes.agent import NodeAgent, Parts
from herder.nodes.disk_space import DiskSpace, measured
from herder.nodes.guests import NoVolumes
from herder.nodes.node import NodeSettings
from herder.nodes.runtimes.simulated import Network, SimulatedRuntime
from herder.rules.disk_space import Space, parse_reserve
from herder.rules.node_lifecycle.taints import closing
from tests.engines.waiting import eventually
from tests.unit.nodes.test_fencing import AGENT, NODE
from tests.unit.nodes.test_volumes import FIRST, Rig, rig, waits_for
from tests.unit.server.inside import Inside, engine_inside

__all__ = ["rig"]
GIB = 1024**3


class Measured:
    """A disk of 100 GiB of which so much is left."""

    def __init__(self, free: float) -> None:
        self.free = free

    def __call__(self, folder: Path) -> Space:
        return Space(100 * GIB, int(self.free * GIB))


async def nobody(short: bool, back: bool) -> None:
    pass


async def pressure(inside: Inside) -> tuple[str, str]:
    node = (await inside.ask("GET", NODE))[1]
    (told,) = [one for one in node["status"]["conditions"] if one["type"] == "DiskPressure"]
    return told["status"], told["reason"]


@pytest.mark.slow
async def test_a_node_says_that_its_storage_is_full_and_that_it_is_not_any_more(tmp_path: Path) -> None:
    disk = Measured(50)
    space = DiskSpace(tmp_path, parse_reserve("8Gi"), disk)
    async with engine_inside(tmp_path) as inside:
        client = Client(InsideTransport(inside.router, "agent", user=AGENT), "agent")
        runtime = SimulatedRuntime("n1", RealWorld(), Network(), version="1")
        parts = Parts(volumes=NoVolumes(), space=space)
        agent = NodeAgent(client, RealWorld(), NodeSettings(name="n1", tainted=True), runtime, parts, CollectorRegistry())
        task = asyncio.create_task(agent.run())
        try:
            await asyncio.wait_for(agent.registered.wait(), 30)
            assert await pressure(inside) == ("False", "AgentHasNoDiskPressure")
            for free, status in ((7, "True"), (9, "True"), (11, "False")):
                disk.free = free
                await space.look(nobody)

                async def told(wanted: str = status) -> bool:
                    return (await pressure(inside))[0] == wanted

                await eventually(told)
        finally:
            task.cancel()
            await asyncio.wait([task])


def test_the_condition_closes_the_node() -> None:
    """As on any cluster: its taint follows from it."""
    conditions = [{"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "True"}]
    node = msgspec.convert({"metadata": {"name": "n"}, "status": {"conditions": conditions}}, Node)
    assert closing(node) == ["node.kubernetes.io/disk-pressure"]


async def test_whoever_watches_is_told_and_looks_more_often_the_less_is_left(tmp_path: Path) -> None:
    disk = Measured(50)
    told: list[tuple[bool, bool]] = []

    async def remember(short: bool, back: bool) -> None:
        told.append((short, back))

    space = DiskSpace(tmp_path, parse_reserve("8Gi"), disk)
    calm = await space.look(remember)
    for free in (7, 3, 7, 20):
        disk.free = free
        assert await space.look(remember) <= calm
    assert told == [(False, True), (False, False), (True, False), (False, False), (False, True)]
    disk.free = 3
    assert await space.look(remember) < calm


async def test_a_machine_with_a_disk_is_not_started_and_a_claim_not_made_while_there_is_no_room(rig: Rig) -> None:
    disk = Measured(7)
    rig.use(DiskSpace(rig.storage, parse_reserve("8Gi"), disk))
    await rig.claim("blank", f"/herder/volumes/{FIRST}")
    wanted = {"persistentVolumeClaim": {"claimName": "blank"}}
    why = "the node's storage has 7Gi left, 8Gi of its 100Gi are kept for the store; none can be taken"
    await waits_for(rig, wanted, reasons.INSUFFICIENT_STORAGE, f"waits for room for claim blank: {why}")
    assert not (rig.storage / FIRST).exists()
    await waits_for(rig, {"emptyDisk": {"capacity": "1Gi"}}, reasons.INSUFFICIENT_STORAGE, f"waits for room: {why}")
    disk.free = 9
    assert await rig.resolve(**wanted) is not None
    disk.free = 7
    await waits_for(rig, wanted, reasons.INSUFFICIENT_STORAGE, f"waits for room: {why}")
    read_only = {"persistentVolumeClaim": {"claimName": "blank", "readOnly": True}}
    assert await rig.resolve(**read_only) is not None, "who only reads takes no room"
    assert await rig.resolve(cloudInitNoCloud={"userData": "#cloud-config"}) is not None


async def test_an_empty_disk_that_could_never_be_filled_is_told(rig: Rig) -> None:
    rig.use(DiskSpace(rig.storage, parse_reserve("8Gi"), Measured(99)))
    sentence = "volume one: a disk of 200Gi can never be filled: the node's storage has 92Gi for all guests together"
    await waits_for(rig, {"emptyDisk": {"capacity": "200Gi"}}, reasons.INSUFFICIENT_STORAGE, sentence)


def test_two_that_write_at_once_do_not_get_the_same_room(tmp_path: Path) -> None:
    space = DiskSpace(tmp_path, parse_reserve("8Gi"), Measured(18))
    first, second = tmp_path / "first", tmp_path / "second"
    with space.writing(first, 6 * GIB):
        assert space.lack(4 * GIB, file=second) == ""
        assert "6Gi are taken by what is written now; 5Gi are needed" in space.lack(5 * GIB, file=second)
        assert space.lack(10 * GIB, file=first) == "", "its own is not counted twice"
    assert space.lack(10 * GIB) == ""


def test_what_is_being_written_is_counted_as_far_as_it_is_not_there_yet(tmp_path: Path) -> None:
    space = DiskSpace(tmp_path, parse_reserve("8Gi"), Measured(8 + 1 / 1024))
    file = tmp_path / "half"
    file.write_bytes(os.urandom(512 * 1024))
    with space.writing(file, 1024**2):
        assert space.lack(512 * 1024) == "", "what is written already is missing from what is left"
        assert space.lack(512 * 1024 + 4096)
    with file.open("r+b") as sparse:
        sparse.truncate(64 * 1024**2)
    with space.writing(file, 1024**2):
        assert space.lack(512 * 1024 + 4096), "a hole takes no room"


def test_a_folder_that_is_not_there_yet_has_the_room_of_the_one_that_it_will_be_in(tmp_path: Path) -> None:
    looked_at: list[Path] = []

    def measure(folder: Path) -> Space:
        looked_at.append(folder)
        return Space(100 * GIB, 50 * GIB)

    assert DiskSpace(tmp_path / "not" / "there", parse_reserve("8Gi"), measure).lack(1) == ""
    assert looked_at == [tmp_path]


def test_what_is_kept_for_root_is_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = SimpleNamespace(f_frsize=4096, f_blocks=100, f_bfree=50, f_bavail=45)
    monkeypatch.setattr(os, "statvfs", lambda _: found)  # pyright: ignore[reportUnknownLambdaType]
    assert measured(tmp_path) == Space(100 * 4096, 45 * 4096)


async def test_it_is_looked_at_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_space, "LOOK_EVERY", 0.01)
    looks: list[bool] = []

    async def remember(short: bool, back: bool) -> None:
        looks.append(back)

    watching = asyncio.create_task(DiskSpace(tmp_path, parse_reserve("8Gi"), Measured(50)).watch(remember))

    async def often() -> bool:
        return len(looks) >= 3

    await eventually(often)
    watching.cancel()
