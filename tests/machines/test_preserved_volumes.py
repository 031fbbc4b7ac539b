"""Disks that a pool keeps while their machine is gone."""

from herder.api import registry
from tests.behaviour.our_kinds import resource_of
from tests.engines.resources import CLAIMS
from tests.machines.herd import DATA_VOLUMES, MACHINES, Herd, Json, machine
from tests.machines.volumes import BLANK, becomes

POOLS = resource_of(registry.POOL)


def _machine(pool: Json) -> Json:
    """With one disk that it mounts, and owned by the pool."""
    body = machine(volumes={"disk": BLANK}, name="web-1")
    body["metadata"]["ownerReferences"] = [{**pool, "controller": True}]
    spec = body["spec"]["template"]["spec"]
    spec["domain"]["devices"] = {"disks": [{"name": "root", "disk": {"bus": "virtio"}}]}
    spec["volumes"] = [{"name": "root", "dataVolume": {"name": "disk"}}]
    return body


async def _pool(herd: Herd) -> Json:
    """A reference to a pool that does nothing by itself."""
    body = {"metadata": {"name": "web"}, "spec": {"replicas": 1, "paused": True, "template": {"spec": machine()["spec"]}}}
    made = (await herd.api.create(POOLS, body, herd.namespace)).ok
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachinePool", "name": "web", "uid": made["metadata"]["uid"]}


async def test_a_machine_that_comes_back_takes_the_disk_that_its_pool_has_kept(herd: Herd) -> None:
    pool = await _pool(herd)
    (await herd.api.create(MACHINES, _machine(pool), herd.namespace)).ok  # noqa: B018
    before = await becomes(herd, "Succeeded")
    claim = (await herd.api.get(CLAIMS, "disk", herd.namespace)).ok
    await herd.running("web-1")

    # As the pool does it, but of a machine that is about to go: of one that stays, even a paused pool keeps no share in the disk.
    await herd.patch("web-1", {"metadata": {"finalizers": ["tests.example.com/held"]}})
    await herd.delete("web-1")
    owners = [*before["metadata"]["ownerReferences"], {**pool, "blockOwnerDeletion": False}]
    await herd.patch("disk", {"metadata": {"ownerReferences": owners}}, DATA_VOLUMES)
    await herd.patch("web-1", {"metadata": {"finalizers": []}})
    await herd.gone(MACHINES, "web-1")

    again = (await herd.api.create(MACHINES, _machine(pool), herd.namespace)).ok
    await herd.running("web-1")
    after = (await herd.api.get(DATA_VOLUMES, "disk", herd.namespace)).ok
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert [one["uid"] for one in after["metadata"]["ownerReferences"] if one.get("controller")] == [again["metadata"]["uid"]]
    assert (await herd.api.get(CLAIMS, "disk", herd.namespace)).ok["metadata"]["uid"] == claim["metadata"]["uid"]
    assert "took back DataVolume disk" in await herd.told("VirtualMachine", "VolumeTakenBack", "web-1")
