"""Which machines of a pool are made now, where some were refused before."""

import msgspec

from herder.api.kinds import VirtualMachinePool
from herder.rules.pools import PoolSnapshot, scale
from herder.rules.pools.snapshot import Refusal

NOW = 1000.0


def snapshot(replicas: int, refused: dict[int, float], burst: int = 250) -> PoolSnapshot:
    body = {
        "metadata": {"name": "web", "namespace": "default", "uid": "u"},
        "spec": {"replicas": replicas, "template": {"spec": {"template": {"spec": {"domain": {}}}}}},
    }
    refusals = {f"web-{number}": Refusal("exceeded quota", retry) for number, retry in refused.items()}
    pool = msgspec.convert(body, VirtualMachinePool)
    return PoolSnapshot(pool=pool, template={}, name_generation={}, refusals=refusals, burst=burst)


def made(replicas: int, refused: dict[int, float], burst: int = 250) -> scale.ScaleOut:
    asked = snapshot(replicas, refused, burst)
    return scale.scale_out(asked, NOW, burst)


def test_one_that_is_refused_keeps_nobody_from_being_made() -> None:
    assert made(4, {2: NOW + 10}) == scale.ScaleOut((1, 3, 4), ("web-2",), 10)


def test_one_that_was_refused_is_tried_again_in_time() -> None:
    assert made(3, {2: NOW}) == scale.ScaleOut((1, 2, 3), ("web-2",), None)


def test_where_a_quota_refuses_all_the_thousands_behind_are_not_tried_one_by_one() -> None:
    """Eight wait; then one further at each look is enough."""
    plan = made(1000, {number: NOW + number for number in range(1, 9)})
    assert (plan.numbers, plan.next_look) == ((9,), 1)


def test_a_hundred_thousand_that_are_missing_are_not_counted_out() -> None:
    asked = snapshot(100_000, {5: NOW})
    assert scale.missing(asked, scale.needed(asked)) == tuple(range(1, 252))
    assert len(made(100_000, {5: NOW + 1}).numbers) == 250
