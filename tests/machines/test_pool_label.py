"""The pool's label of launcher pods: it follows from who owns the machine, and is on one pod of each guest."""

from herder.api import labels, registry
from tests.behaviour.our_kinds import resource_of
from tests.engines.resources import PODS
from tests.machines.herd import INSTANCES, Herd, Json
from tests.machines.migrations import Movers

POOLS = resource_of(registry.POOL)


async def pool(herd: Herd) -> Json:
    """The reference to one that leaves machines alone which it did not name."""
    template = {"spec": {"runStrategy": "Always", "template": {"spec": {"domain": {}}}}}
    document = {"metadata": {"name": "web"}, "spec": {"paused": True, "replicas": 0, "template": template}}
    made = (await herd.api.create(POOLS, document, herd.namespace)).ok
    about = {"apiVersion": made["apiVersion"], "kind": made["kind"], "name": "web", "uid": made["metadata"]["uid"]}
    return {**about, "controller": True}


async def labelled(herd: Herd, value: str | None) -> None:
    async def look() -> bool:
        (pod,) = await herd.pods()
        assert pod["metadata"]["labels"].get(labels.POOL) == value
        return True

    await herd.eventually(look)


async def own(herd: Herd, *owners: Json) -> str:
    return (await herd.patch("vm", {"metadata": {"ownerReferences": list(owners)}}))["metadata"]["resourceVersion"]


async def version(herd: Herd) -> str:
    found = await herd.find(INSTANCES, "vm")
    assert found is not None
    return found["metadata"]["resourceVersion"]


async def test_who_is_detached_and_attached_loses_and_gets_the_label_and_nothing_else_is_written(herd: Herd) -> None:
    owner = await pool(herd)
    await herd.make(marked={labels.POOL: "forged"})
    await herd.running()
    await labelled(herd, None)
    before = await version(herd)
    attached = await own(herd, owner)
    await labelled(herd, "web")
    assert (await herd.machine())["metadata"]["resourceVersion"] == attached
    detached = await own(herd)
    await labelled(herd, None)
    assert (await herd.machine())["metadata"]["resourceVersion"] == detached
    assert await version(herd) == before


async def test_a_migration_takes_the_label_along_and_no_guest_is_ever_counted_twice(movers: Movers) -> None:
    herd = movers.herd
    owner = await pool(herd)
    await movers.make()
    await own(herd, owner)
    await labelled(herd, "web")
    (source,) = await herd.pods()
    since = (await herd.api.list(PODS, herd.namespace)).ok["metadata"]["resourceVersion"]
    counted, seen = {source["metadata"]["name"]}, [source["metadata"]["name"]]
    async with herd.api.watch(PODS, herd.namespace, resourceVersion=since) as pods:
        await movers.move()
        while len(seen) < 2:
            event = await pods.next(60.0)
            counts = event.type != "DELETED" and labels.POOL in event.object["metadata"]["labels"]
            counted = counted | {event.name} if counts else counted - {event.name}
            assert len(counted) <= 1, "two pods of one guest are counted"
            seen += [name for name in counted if name not in seen]
    migration = await movers.phase("Succeeded")
    assert seen[1:] == [migration["status"]["targetPod"]]
