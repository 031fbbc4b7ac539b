"""From one sample to the next: what is used now, and for how long that may be said."""

import pytest

from herder.server.resource_metrics.reading import ContainerName, NodeReading, Reading
from herder.server.resource_metrics.samples import SHOWN_FOR, Measured, Samples

NOW = 1_750_000_000.0
UIDS = {("shop", "web"): "web-uid"}


class Told:
    """A node whose one pod says what the test wants."""

    def __init__(self) -> None:
        self.samples = Samples()

    def at(
        self, now: float, cpu: float, *, uid: str = "web-uid", started: float = 0.0, clock: float | None = None, **more: float
    ) -> None:
        reading = Reading(cpu, 1 << 20, started, now if clock is None else clock)
        named = {ContainerName("shop", "web", "compute"): reading}
        named |= {ContainerName("shop", "web", name): Reading(value, 1, 0.0, now) for name, value in more.items()}
        self.samples.store("n", NodeReading(Reading(cpu, 5, 0.0, now), named), {("shop", "web"): uid}, now)

    def pod(self, now: float, uid: str = "web-uid") -> dict[str, Measured] | None:
        return self.samples.pod("n", uid, now)

    def cpu(self, now: float) -> float | None:
        found = self.pod(now)
        return found["compute"].cpu if found else None


@pytest.fixture
def told() -> Told:
    return Told()


def test_one_sample_says_nothing_and_two_say_how_much(told: Told) -> None:
    told.at(NOW, 100)
    assert told.pod(NOW) is None
    assert told.samples.node("n", NOW) is None
    told.at(NOW + 15, 107.5)
    assert told.pod(NOW + 15) == {"compute": Measured(NOW + 15, 15, 0.5, 1 << 20)}
    node = told.samples.node("n", NOW + 15)
    assert node is not None and (node.cpu, node.memory_bytes) == (0.5, 5)


def test_a_container_that_began_after_the_last_sample_is_judged_by_its_life(told: Told) -> None:
    told.at(NOW, 6, started=NOW - 12)
    assert told.cpu(NOW) == 0.5


@pytest.mark.parametrize("lived", [0, 9, 41, 1e6])
def test_a_life_that_is_too_short_or_too_long_tells_nothing(told: Told, lived: float) -> None:
    told.at(NOW, 6, started=NOW - lived)
    assert told.cpu(NOW) is None


def test_a_counter_that_fell_was_begun_anew(told: Told) -> None:
    told.at(NOW, 100)
    told.at(NOW + 15, 115)
    told.at(NOW + 30, 3)
    assert told.cpu(NOW + 30) is None
    told.at(NOW + 45, 18)
    assert told.cpu(NOW + 45) == 1


def test_a_pod_that_came_again_under_its_name_begins_anew(told: Told) -> None:
    told.at(NOW, 100)
    told.at(NOW + 15, 115)
    assert told.pod(NOW + 15, uid="another") is None
    told.at(NOW + 30, 130, uid="another")
    assert told.pod(NOW + 30, uid="another") is None
    assert told.pod(NOW + 30) is None


def test_what_has_not_been_heard_of_for_long_is_not_said(told: Told) -> None:
    told.at(NOW, 1)
    told.at(NOW + 15, 2)
    assert told.pod(NOW + 15 + SHOWN_FOR) is not None
    assert told.pod(NOW + 16 + SHOWN_FOR) is None


def test_a_node_that_is_gone_is_forgotten(told: Told) -> None:
    told.at(NOW, 1)
    told.at(NOW + 15, 2)
    told.samples.keep({"other"})
    assert told.pod(NOW + 15) is None


def test_a_clock_that_is_far_off_is_not_believed(told: Told) -> None:
    told.at(NOW, 1, clock=NOW - 5000)
    told.at(NOW + 15, 16, clock=NOW + 90_000)
    assert told.pod(NOW + 15) == {"compute": Measured(NOW + 15, 15, 1.0, 1 << 20)}


def test_a_clock_that_hardly_goes_gives_no_giant_numbers(told: Told) -> None:
    told.at(NOW, 1)
    told.at(NOW + 15, 1000, clock=NOW + 0.001)
    assert told.pod(NOW + 15) is None


def test_half_of_a_pod_is_not_shown_as_all(told: Told) -> None:
    told.at(NOW, 1)
    told.at(NOW + 15, 2, sidecar=5)
    assert told.pod(NOW + 15) is None
    told.at(NOW + 30, 3, sidecar=6)
    assert set(told.pod(NOW + 30) or ()) == {"compute", "sidecar"}
