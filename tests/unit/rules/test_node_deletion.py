"""A Node that is deleted goes by the word of its agent, or without it where the agent is silent."""

import msgspec
import pytest

from herder.api import labels
from herder.api.core import Node
from herder.rules.instances.observed import fenced
from herder.rules.node_deletion import plan_deletion
from tests.unit.rules.machines import later, node


def deleted(ready: str, *taints: str, finalizers: tuple[str, ...] = (labels.NODE_FINALIZER,)) -> Node:
    one = node("node-1", ready, *taints)
    at = msgspec.convert({"name": "node-1", "deletionTimestamp": later(0), "finalizers": list(finalizers)}, type(one.metadata))
    return msgspec.structs.replace(one, metadata=at)


@pytest.mark.parametrize("ready", ["True", "False"])
def test_a_node_whose_agent_answers_is_left_to_it_and_is_not_fenced(ready: str) -> None:
    assert plan_deletion(deleted(ready)) is None
    assert not fenced(deleted(ready))


def test_one_that_is_silent_is_given_up() -> None:
    told = plan_deletion(deleted("Unknown"))
    assert told is not None
    assert told.reason == "NodeGivenUp"
    assert not fenced(deleted("Unknown")), "not before it is gone"


def test_so_is_one_of_which_somebody_vouches_that_it_is_off() -> None:
    assert plan_deletion(deleted("False", labels.OUT_OF_SERVICE_TAINT)) is not None


def test_silence_alone_takes_nothing_away() -> None:
    assert plan_deletion(node("node-1", "Unknown")) is None
    assert plan_deletion(deleted("Unknown", finalizers=("example.com/other",))) is None
