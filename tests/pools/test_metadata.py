"""Labels and annotations of both levels of a pool's template, what people add to machines, and what the template drops."""

from herder.api import labels
from tests.engines.resources import PODS
from tests.machines.herd import Json
from tests.pools.pool import Pool, memory, template, uid

OUTER: Json = {"labels": {"outer": "a", "dropped": "yes"}, "annotations": {"outer": "a"}}


async def test_a_change_of_labels_alone_restarts_nobody_and_reaches_machine_instance_and_pod(pool: Pool) -> None:
    await pool.make(2, template(metadata=OUTER, marked={"inner": "a", "inner-dropped": "yes"}))
    first = (await pool.settled(2))["status"]["currentRevision"]
    instances = await pool.uids()
    machine = await pool.herd.machine("web-1")
    assert {**OUTER["labels"], labels.POOL_REVISION: first}.items() <= machine["metadata"]["labels"].items()
    assert machine["metadata"]["annotations"]["outer"] == "a"
    assert "inner" not in machine["metadata"]["labels"]
    await pool.herd.patch("web-1", {"metadata": {"labels": {"by-hand": "yes"}, "annotations": {"by-hand": "yes"}}})
    await pool.herd.patch("web-1", {"spec": {"template": {"metadata": {"labels": {"inner-by-hand": "yes"}}}}})
    # What somebody changed by hand waits for a restart, and the rollout does not wait for that.
    await pool.herd.patch("web-2", {"spec": {"template": {"spec": {"hostname": "by-hand"}}}})

    inner = {"labels": {"inner": "b", "inner-dropped": None}, "annotations": {"note": "b"}}
    moved = {"metadata": inner, "spec": {"evictionStrategy": "LiveMigrate"}}
    await pool.roll({"metadata": {"labels": {"outer": "b", "dropped": None}}, "spec": {"template": moved}})
    second = (await pool.settled(2))["status"]["currentRevision"]
    assert second != first
    assert await pool.uids() == instances
    machine = await pool.herd.machine("web-1")
    marks = machine["metadata"]["labels"]
    assert (marks["outer"], marks["by-hand"], marks[labels.POOL_REVISION]) == ("b", "yes", second)
    assert "dropped" not in marks
    assert machine["metadata"]["annotations"]["by-hand"] == "yes"

    async def reached() -> bool:
        instance = await pool.herd.instance("web-1")
        assert instance is not None
        pods = (await pool.api.list(PODS, pool.namespace, labelSelector=f"{labels.CREATED_BY}={uid(instance)}")).items
        for thing in (instance, *pods):
            marks = thing["metadata"]["labels"]
            assert (marks["inner"], marks["inner-by-hand"], marks.get("inner-dropped")) == ("b", "yes", None)
            assert thing["metadata"]["annotations"]["note"] == "b"
        assert instance["metadata"]["labels"][labels.POOL_REVISION] == second
        assert instance["spec"]["evictionStrategy"] == "LiveMigrate"
        return len(pods) == 1

    await pool.herd.eventually(reached)


async def test_labels_of_a_change_that_needs_a_restart_go_with_that_restart(pool: Pool) -> None:
    """With the rollout paused nobody has them; and under Unmanaged nobody ever has."""
    await pool.make(1, template(metadata=OUTER), updateStrategy={"proactive": {"paused": True}})
    await pool.shows(replicas=1, readyReplicas=1, updatedReplicas=1)
    before = await pool.uids()
    await pool.roll({"metadata": {"labels": {"outer": "b"}}, **memory("65Mi")})
    await pool.says("Progressing", reason="RolloutPaused")
    await pool.change(updateStrategy={"proactive": None, "unmanaged": {}})
    await pool.roll({"metadata": {"labels": {"outer": "c"}}})
    await pool.shows(updatedReplicas=0, replicas=1)
    assert (await pool.herd.machine("web-1"))["metadata"]["labels"]["outer"] == "a"
    assert await pool.uids() == before
    await pool.change(updateStrategy=None)
    await pool.settled(1)
    assert (await pool.herd.machine("web-1"))["metadata"]["labels"]["outer"] == "c"
    assert await pool.uids() != before


async def test_vm_edited_by_hand_so_that_the_merged_spec_is_refused(pool: Pool) -> None:
    """It is named, and the rest goes on; once it is mended it is updated as well."""
    await pool.make(3, template())
    await pool.settled(3)
    by_hand = {"requests": {"memory": "1Gi"}}
    await pool.herd.patch("web-2", {"spec": {"template": {"spec": {"domain": {"resources": by_hand}}}}})
    limited = {"memory": {"guest": "65Mi"}, "resources": {"limits": {"memory": "512Mi"}}}
    await pool.roll({"spec": {"template": {"spec": {"domain": limited}}}})
    said = await pool.says("ReplicaFailure", status="True", reason="FailedUpdate")
    assert "web-2" in said["message"]
    await pool.shows(updatedReplicas=2, readyReplicas=3)
    await pool.herd.patch("web-2", {"spec": {"template": {"spec": {"domain": {"resources": None}}}}})
    # It would be tried again by itself, and is tried at once where the pool is changed, too.
    await pool.roll(memory("66Mi"))
    await pool.settled(3)
    await pool.says_not("ReplicaFailure")
