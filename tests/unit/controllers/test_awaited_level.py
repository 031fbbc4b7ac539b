"""Whom the levels of nodes concern."""

import msgspec
import pytest
from prometheus_client import Counter

from herder.controllers.instances import BY_AWAITED_LEVEL
from herder.kube.cache.reading import Reader
from herder.kube.resources import INSTANCES

READER = Reader(INSTANCES, Counter("unreadable", "", registry=None))


@pytest.mark.parametrize(
    ("reason", "concerned"),
    [
        ("MigratabilityLevelNotReached", True),
        # Of a node that had no level yet it could not be said that it is too low.
        ("Unschedulable", True),
        ("GuestStarting", False),
        (None, False),
    ],
)
def test_who_waits_for_a_node_looks_again_when_one_has_another_level(reason: str | None, concerned: bool) -> None:
    metadata = {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "1"}
    document = {"metadata": metadata, "spec": {"domain": {}}, "status": {"phase": "Scheduling", "reason": reason}}
    stored = READER.stored(msgspec.json.encode(document))
    assert stored is not None
    assert bool(tuple(BY_AWAITED_LEVEL.values(stored))) is concerned
