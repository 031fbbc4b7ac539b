"""How many machines a pool has: by kubectl, by an autoscaler, and where somebody refuses more."""

import pytest

from herder.api import labels
from tests.engines.resources import PODS, Resource
from tests.machines.herd import DATA_VOLUMES, MACHINES
from tests.machines.volumes import BLANK, make
from tests.pools.pool import POOLS, Pool, template

QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")


async def test_kubectl_scale_works_through_the_subresource(pool: Pool) -> None:
    await pool.make(1)
    stored = await pool.settled(1)
    scale = (await pool.api.get(POOLS, pool.name, pool.namespace, "scale")).ok
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (1, 1)

    async def selects(count: int) -> None:
        """A pod that is made before its machine is known gets the label in a moment."""

        async def look() -> bool:
            found = (await pool.api.list(PODS, pool.namespace, labelSelector=scale["status"]["selector"])).items
            assert len(found) == count
            return True

        await pool.herd.eventually(look)

    await selects(1)
    # As kubectl scale --resource-version: only of what was seen.
    (await pool.scale(2, resourceVersion="1")).refused(409, "Conflict")
    (await pool.scale(2, resourceVersion=(await pool.get())["metadata"]["resourceVersion"])).ok  # noqa: B018
    await pool.settled(2)
    await selects(2)
    assert stored["status"]["labelSelector"] == f"{labels.POOL}=web"


async def test_apply_with_replicas_against_an_hpa(pool: Pool) -> None:
    """Who applies a number that an autoscaler has taken over is told so, and wins only by force."""
    body = {"apiVersion": POOLS.api_version, "kind": POOLS.kind, "metadata": {"name": pool.name}}
    whole = {**body, "spec": {"replicas": 1, "template": template("Halted")}}
    (await pool.api.patch(POOLS, pool.name, whole, pool.namespace, kind="apply", fieldManager="person")).ok  # noqa: B018
    (await pool.scale(2)).ok  # noqa: B018
    await pool.has(1, 2)
    reply = await pool.api.patch(POOLS, pool.name, whole, pool.namespace, kind="apply", fieldManager="person")
    details = reply.refused(409, "Conflict")
    assert [cause["field"] for cause in details["causes"]] == [".spec.replicas"]
    await pool.has(1, 2)
    forced = await pool.api.patch(POOLS, pool.name, whole, pool.namespace, kind="apply", fieldManager="person", force=True)
    assert forced.ok["spec"]["replicas"] == 1
    await pool.shows(replicas=1)


@pytest.mark.only_on("kubernetes")
async def test_quota_refuses_the_5th_create(pool: Pool) -> None:
    """It is said and backs off; the others run; and nobody is told any more once it is not wanted."""
    hard = {f"count/{MACHINES.plural}.{MACHINES.group}": "4"}
    (await pool.api.create(QUOTAS, {"metadata": {"name": "few"}, "spec": {"hard": hard}}, pool.namespace)).ok  # noqa: B018

    async def counted() -> bool:
        quota = (await pool.api.get(QUOTAS, "few", pool.namespace)).ok
        return quota.get("status", {}).get("hard") == hard

    await pool.herd.eventually(counted)
    await pool.make(5)
    said = await pool.says("ReplicaFailure", status="True", reason="FailedCreate")
    assert "exceeded quota" in said["message"]
    await pool.shows(replicas=4, readyReplicas=4)
    await pool.change(replicas=4)
    await pool.says_not("ReplicaFailure")
    await pool.settled(4)


async def test_a_create_that_is_refused_is_said_and_does_not_stall_the_rest(pool: Pool) -> None:
    """What is there cannot be a volume of ours: a DataVolume of somebody else, under the name that the third would need."""
    stranger = await make(pool.herd, BLANK, "disk-3")
    await pool.make(4, template(disk=BLANK))
    said = await pool.says("ReplicaFailure", status="True")
    assert "web-3" in said["message"]
    assert "disk-3" in said["message"]
    await pool.shows(replicas=4, readyReplicas=3)
    disks = await pool.disks()
    assert disks[3]["metadata"]["uid"] == stranger["metadata"]["uid"]
    assert "ownerReferences" not in disks[3]["metadata"]
    await pool.herd.delete("disk-3", DATA_VOLUMES)
    await pool.settled(4)
    await pool.says_not("ReplicaFailure")
