"""What becomes of disks whose template changes: kept, grown, or wiped and made again where that is asked for."""

import pytest

from herder.api import labels
from tests.engines.resources import CLAIMS
from tests.machines.herd import MACHINES, Json
from tests.machines.volumes import BLANK, becomes, fetched
from tests.pools.pool import Pool, template, uid

OTHER = "http://images.example.com/newer.img"


def two_disks() -> Json:
    made_of = template(disk=fetched())
    made_of["spec"]["dataVolumeTemplates"].append({"metadata": {"name": "data"}, "spec": BLANK})
    spec = made_of["spec"]["template"]["spec"]
    spec["domain"]["devices"]["disks"].append({"name": "data", "disk": {"bus": "virtio"}})
    spec["volumes"].append({"name": "data", "dataVolume": {"name": "data"}})
    return made_of


def with_disk(made_of: Json, disk: Json) -> Json:
    first, *others = made_of["spec"]["dataVolumeTemplates"]
    return {"spec": {"dataVolumeTemplates": [{**first, "spec": disk}, *others]}}


async def claims(pool: Pool) -> dict[str, str]:
    for name in ("disk-1", "data-1"):
        await becomes(pool.herd, "Succeeded", name)
    return {name: uid((await pool.api.get(CLAIMS, name, pool.namespace)).ok) for name in ("disk-1", "data-1")}


@pytest.mark.parametrize("volumes", ["Keep", "Reprovision"])
async def test_an_image_refresh_wipes_the_disks_whose_template_changed_and_no_others(pool: Pool, volumes: str) -> None:
    made_of = two_disks()
    await pool.make(1, made_of, updateStrategy={"proactive": {"volumes": volumes}})
    await pool.settled(1)
    before, machine = await claims(pool), uid(await pool.herd.machine("web-1"))
    await pool.roll(with_disk(made_of, fetched(OTHER)))
    await pool.settled(1)
    if volumes == "Reprovision":

        async def refreshed() -> bool:
            found = await pool.api.get(CLAIMS, "disk-1", pool.namespace)
            return found.code == 200 and uid(found.ok) != before["disk-1"]

        await pool.herd.eventually(refreshed)
    await pool.settled(1)
    after = await claims(pool)
    assert (after["disk-1"] != before["disk-1"]) == (volumes == "Reprovision")
    assert after["data-1"] == before["data-1"]
    assert uid(await pool.herd.machine("web-1")) == machine

    async def asks_for_nothing() -> bool:
        return labels.REPROVISION not in (await pool.herd.machine("web-1"))["metadata"]["annotations"]

    await pool.herd.eventually(asks_for_nothing)


async def test_a_template_changed_while_preserved_wipes_the_disks_that_it_changed_where_that_is_asked_for(pool: Pool) -> None:
    made_of = two_disks()
    kept = {"scaleInStrategy": {"proactive": {"statePreservation": "Offline"}}}
    await pool.make(1, made_of, updateStrategy={"proactive": {"volumes": "Reprovision"}}, **kept)
    await pool.settled(1)
    before = await claims(pool)
    await pool.change(replicas=0)
    await pool.herd.gone(MACHINES, "web-1")
    await pool.roll(with_disk(made_of, fetched(OTHER)))
    await pool.change(replicas=1)
    await pool.settled(1)
    after = await claims(pool)
    assert (after["disk-1"] != before["disk-1"], after["data-1"] == before["data-1"]) == (True, True)


async def test_a_larger_disk_is_grown_and_nobody_restarts(pool: Pool) -> None:
    """Even where changed disks are to be made again."""
    made_of = two_disks()
    await pool.make(1, made_of, updateStrategy={"proactive": {"volumes": "Reprovision"}})
    await pool.settled(1)
    before, instances = await claims(pool), await pool.uids()
    await pool.roll(with_disk(made_of, fetched(size="128Mi")))
    await pool.settled(1)

    async def grown() -> bool:
        claim = (await pool.api.get(CLAIMS, "disk-1", pool.namespace)).ok
        assert claim["spec"]["resources"]["requests"]["storage"] == "128Mi"
        return True

    await pool.herd.eventually(grown)
    assert await claims(pool) == before
    assert await pool.uids() == instances
