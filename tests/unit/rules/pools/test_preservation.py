"""What stays of machines that are taken away, and who gets it back."""

from typing import Any

import pytest

from herder.rules.pools import PoolPlan, plan_pool
from herder.rules.pools.snapshot import Attachable

from .things import NOW, A, B, member, name_of, pool, snapshot, volume

OFFLINE = {"scaleInStrategy": {"proactive": {"statePreservation": "Offline"}}}


def scaled(replicas: int, *members: Any, spec: Any = OFFLINE, **more: Any) -> PoolPlan:
    return plan_pool(snapshot(pool(replicas, **spec), *members, **more), NOW)


@pytest.mark.parametrize(
    ("strategy", "kept"),
    [
        ({}, False),
        ({"proactive": {}}, False),
        ({"proactive": {"statePreservation": "Disabled"}}, False),
        ({"proactive": {"statePreservation": "Offline"}}, True),
        ({"proactive": {"statePreservation": "Online"}}, True),
        ({"opportunistic": {"statePreservation": "Offline"}}, True),
    ],
)
def test_volumes_stay_as_the_strategy_says_and_online_is_never_less_than_offline(strategy: Any, kept: bool) -> None:
    plan = scaled(0, member(1, running=False, halted=True, off=True), spec={"scaleInStrategy": strategy})
    assert [one.preserve for one in plan.remove] == [kept]
    assert plan.remove[0].ready_revision == name_of(A)


def test_a_machine_gets_back_its_own_name_and_what_is_kept_under_it() -> None:
    plan = scaled(3, member(1), member(3), volumes=(volume("web-2"),))
    assert [(one.name, one.returning) for one in plan.create] == [("web-2", True)]
    assert plan.status["preservedStates"] == 1


def test_crash_between_second_owner_patch_and_delete_then_scale_out_releases_the_volume() -> None:
    begun = volume("web-2", controller="uid-web-2")
    living = frozenset({"uid-web-1", "uid-web-2"})
    plan = scaled(2, member(1), member(2), volumes=(begun,), living=living)
    assert [(one.name, one.resource_version, one.references) for one in plan.release] == [
        ("disk-of-web-2", "5", ({"uid": "uid-web-2", "controller": True},))
    ]
    goes_on = scaled(1, member(1), member(2, scale_in="first"), volumes=(begun,), living=living)
    assert (goes_on.release, [one.name for one in goes_on.remove]) == ((), ["web-2"])


@pytest.mark.parametrize("controller", ["uid-web-2", ""], ids=["taken back", "preserved"])
def test_a_paused_pool_keeps_no_share_in_what_a_machine_has_taken_back(controller: str) -> None:
    """Deleted by hand, that machine is made afresh; while nobody has taken it back it stays."""
    kept = volume("web-2", controller=controller)
    plan = scaled(2, member(1), member(2), spec={**OFFLINE, "paused": True}, volumes=(kept,), living=frozenset({"uid-web-2"}))
    assert [one.name for one in plan.release] == (["disk-of-web-2"] if controller else [])


def test_crash_between_second_owner_patch_and_delete_then_detach_releases_the_volume() -> None:
    begun = volume("web-2", controller="uid-of-the-detached")
    plan = scaled(1, member(1), volumes=(begun,), living=frozenset({"uid-web-1", "uid-of-the-detached"}), held=frozenset({"web-2"}))
    assert [one.name for one in plan.release] == ["disk-of-web-2"]


@pytest.mark.parametrize(
    "kept",
    [volume("web-2", controller="uid-gone"), volume("web-2"), volume("web-2", controller="uid-web-2", deleting=True)],
    ids=["its machine is on its way out", "preserved", "being deleted"],
)
def test_what_is_kept_of_a_machine_that_goes_is_not_released(kept: Any) -> None:
    assert scaled(1, member(1), volumes=(kept,), living=frozenset({"uid-web-1", "uid-web-2"})).release == ()


def test_a_strategy_changed_to_disabled_later_still_uses_what_is_kept() -> None:
    plan = scaled(1, spec={}, volumes=(volume("web-1"),))
    assert (plan.create[0].returning, plan.release) == (True, ())


def test_pool_deleted_in_mid_preservation_does_nothing_more() -> None:
    begun = volume("web-2", controller="uid-web-2")
    going = pool(1, A, deleted=True, **OFFLINE)
    plan = plan_pool(snapshot(going, member(1), member(2), volumes=(begun,), living=frozenset({"uid-web-2"})), NOW)
    assert (plan.release, plan.remove, plan.create, plan.update, plan.status) == ((), (), (), (), {})


def test_a_reference_without_controller_true_is_completed_and_other_owners_stay() -> None:
    mine, other = {"uid": "pool-uid", "name": "web", "kind": "VirtualMachinePool"}, {"uid": "someone"}
    one = Attachable(name="web-5", uid="u", resource_version="3", references=(other, mine))
    adopted = scaled(1, member(1), attachable=(one,)).adopt[0]
    assert (adopted.name, adopted.uid, adopted.resource_version, adopted.references[0]) == ("web-5", "u", "3", other)
    assert adopted.references[1]["controller"] is True


def test_a_revision_on_which_a_preserved_machine_was_ready_is_not_forgotten() -> None:
    spec = {**OFFLINE, "revisionHistoryLimit": 0}
    plan = scaled(1, member(1), spec=spec, stored=(B,), volumes=(volume("web-2", ready_revision=name_of(B)),))
    assert plan.forget == ()
    assert [one.name for one in scaled(1, member(1), spec=spec, stored=(B,)).forget] == [name_of(B)]
