"""Labels, annotations and eviction strategy of a machine's template reach what runs, and nobody has to restart it."""

from typing import Any

from herder.api import labels
from tests.engines.resources import BUDGETS, PODS
from tests.machines.herd import INSTANCES, Herd, Json, condition


async def change(herd: Herd, metadata: Json, **spec: Any) -> None:
    await herd.patch("vm", {"spec": {"template": {"metadata": metadata, "spec": spec}}})


async def has(herd: Herd, given: Json, names: tuple[str, str], strategy: str | None) -> None:
    """The instance and its pod have these labels and annotations, or have them no more; and its budget follows the strategy."""

    async def look() -> bool:
        instance = await herd.instance()
        assert instance is not None
        assert instance["spec"].get("evictionStrategy") == strategy
        assert len((await herd.api.list(BUDGETS, herd.namespace)).items) == (strategy == "LiveMigrate")
        (pod,) = await herd.pods()
        for thing in (instance["metadata"], pod["metadata"]):
            seen = {field: {name: thing.get(field, {}).get(name) for name in wanted} for field, wanted in given.items()}
            assert seen == given, thing
        assert (instance["metadata"]["uid"], pod["metadata"]["uid"]) == names
        return True

    await herd.eventually(look)
    machine = await herd.shows("Running", ready=True, observedGeneration=(await herd.machine())["metadata"]["generation"])
    assert condition(machine, "RestartRequired") == {}


async def test_a_changed_template_reaches_the_running_guest_and_what_it_drops_goes(herd: Herd) -> None:
    await herd.make(marked={"tier": "a"})
    uid = (await herd.running())["metadata"]["uid"]
    (pod,) = await herd.pods()
    names = (uid, pod["metadata"]["uid"])
    await change(herd, {"labels": {"tier": "b", "zone": "x"}, "annotations": {"note": "x"}}, evictionStrategy="LiveMigrate")
    await has(herd, {"labels": {"tier": "b", "zone": "x"}, "annotations": {"note": "x"}}, names, "LiveMigrate")
    by_hand = {"metadata": {"labels": {"by-hand": "yes"}, "annotations": {"by-hand": "yes"}}}
    await herd.patch("vm", by_hand, INSTANCES)
    await herd.patch(pod["metadata"]["name"], {"metadata": {"labels": {"pods-own": "yes"}}}, PODS)
    await change(herd, {"labels": {"tier": None}, "annotations": {"note": None}}, evictionStrategy=None)
    left = {"labels": {"tier": None, "zone": "x", "by-hand": "yes"}, "annotations": {"note": None, "by-hand": "yes"}}
    await has(herd, left, names, None)
    (pod,) = await herd.pods()
    assert pod["metadata"]["labels"]["pods-own"] == "yes"
    assert pod["metadata"]["labels"][labels.APP] == labels.LAUNCHER
