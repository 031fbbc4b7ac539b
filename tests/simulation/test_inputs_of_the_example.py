"""Every field of the example's kind, changed in turn while its controller looks on; one that cannot cope is found."""

import pytest

from herder.kube.controller import Result
from herder.kube.resources import Key
from tests.simulation.example.controller import FlockController
from tests.simulation.example.kind import FLOCKS, Flock
from tests.simulation.example.rules import Stray
from tests.simulation.example.scenario import FLOCKS_ALONE, KEY, flocks
from tests.simulation.inputs_to import inputs_to

ORIGINAL = {
    "metadata": {"name": KEY.name, "namespace": KEY.namespace},
    "spec": {"sheep": 2, "pasture": "north", "shepherd": "Ann", "bells": ["ding", "dong"], "restAfterSeconds": 5},
}

test_every_field_can_be_changed_and_changed_back = inputs_to(FLOCKS_ALONE, FLOCKS, ORIGINAL)


class CannotCountToZero(FlockController):
    """Falls over an input that is right."""

    async def reconcile(self, key: Key) -> Result:
        flock = self.flocks.get(key)
        assert flock is None or 1 / flock.spec.sheep
        return await super().reconcile(key)


class NeverTakesAway(FlockController):
    """There is no way back from more sheep."""

    async def remove(self, flock: Flock, stray: Stray) -> None:
        return


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (CannotCountToZero, "spec.sheep: the least: .*division by zero"),
        (NeverTakesAway, "spec.sheep: the most: going back leads elsewhere"),
    ],
)
def test_a_controller_that_cannot_cope_is_found(mistake: type[FlockController], words: str, seed: int) -> None:
    with pytest.raises(AssertionError, match=f"(?s){words}"):
        inputs_to(flocks(mistake), FLOCKS, ORIGINAL)(seed)
