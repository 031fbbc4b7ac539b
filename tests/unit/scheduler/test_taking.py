"""A pod that has to wait wherever it would go waits, also where room is reserved for it."""

from __future__ import annotations

from tests.unit.scheduler.place import rest
from tests.unit.scheduler.reserving import Town, play_with_reservations, reserve, web


def test_a_pod_whose_claim_is_not_there_waits_for_it_and_not_for_a_mistake_of_the_scheduler() -> None:
    async def scenario(town: Town) -> None:
        await town.nodes("a")
        await reserve(town)
        await rest()
        await web(town, "web-1", volumes=[{"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}])
        await rest()
        assert await town.node_of("web-1") == ""
        assert 'persistentvolumeclaim "disk" not found' in await town.condition("web-1")

    play_with_reservations(scenario)
