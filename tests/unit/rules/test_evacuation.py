"""Who leaves a node that is emptied, what an eviction does, and what a drain would do."""

from typing import Any

import msgspec
import pytest

from herder.api import labels, reasons
from herder.api.core import Pod
from herder.rules.configuration import ClusterMigrationSettings
from herder.rules.evacuation import EvacuationPlan, EvacuationSnapshot, plan_evacuation
from herder.rules.evictions import judge_eviction
from tests.unit.rules.machines import NOW, Json, instance, instance_view, later, node
from tests.unit.rules.migrations import migration, source, target, view

DRAIN = "kubevirt.io/drain"
MOVABLE = [{"type": "LiveMigratable", "status": "True", "reason": "Migratable", "lastTransitionTime": None}]
STUCK = [{**MOVABLE[0], "status": "False", "reason": "DisksNotLiveMigratable", "message": "claim a is ReadWriteOnce"}]


def guest(strategy: str | None = None, conditions: list[Json] | None = None, wish: str = "", phase: str = "Running") -> Json:
    spec: Json = {"domain": {}, **({"evictionStrategy": strategy} if strategy else {})}
    annotations = {labels.EVACUATE: wish} if wish else {}
    return instance(phase, spec=spec, annotations=annotations, nodeName="node-1", conditions=conditions or MOVABLE)


NO_NODE = (reasons.MISSING_CPU_FEATURES, "0/2 nodes: 1 lacks the CPU")


def plan(
    document: Json,
    *migrations: Json,
    tainted: bool = True,
    budget: bool = False,
    now: float = NOW,
    no_node: tuple[str, str] | None = None,
    **more: Any,
) -> EvacuationPlan:
    there = node("node-1", "True", *([DRAIN] if tainted else []))
    known = ("herder-disruption-budget-web", "b-1") if budget else None
    cluster = ClusterMigrationSettings(**more)
    snapshot = EvacuationSnapshot(instance_view(document), there, tuple(view(one) for one in migrations), cluster, known, no_node)
    return plan_evacuation(snapshot, now)


def evacuation(phase: str, number: int = 1, ended: float = 0.0, attempt: str = "") -> Json:
    document = migration(phase if phase != "Pending" else "", name=f"evacuation-web-aaaaaaaa-{number}")
    document["metadata"]["labels"] = {labels.EVACUATION: "true"}
    document["metadata"]["uid"] = f"feedface-{number:04}"
    document["metadata"]["annotations"] = {labels.EVACUATION_ATTEMPT: attempt} if attempt else {}
    if phase in ("Failed", "Succeeded"):
        document["status"]["endTimestamp"] = later(ended)
    return document


def test_the_drain_taint_moves_a_guest() -> None:
    made = plan(guest()).create_migration
    assert made is not None
    assert made["metadata"]["name"] == "evacuation-web-aaaaaaaa-1"
    assert made["spec"] == {"vmiName": "web", "priority": "system-maintenance"}


def test_no_taint_moves_nobody() -> None:
    assert plan(guest(), tainted=False).create_migration is None


def test_another_key_may_be_the_drain_taint() -> None:
    assert plan(guest(), node_drain_taint_key="example.com/empty").create_migration is None


def test_a_guest_is_not_moved_twice_at_once() -> None:
    assert plan(guest(), migration("Running")).create_migration is None


def test_a_guest_that_has_just_left_is_not_moved_on() -> None:
    """The migration is over, and the instance does not show it yet."""
    assert plan(guest(), evacuation("Succeeded")).create_migration is None
    shown = guest()
    shown["status"]["migrationState"] = {"migrationUid": "feedface-0001", "completed": True}
    assert plan(shown, evacuation("Succeeded")).create_migration is not None, "back on a node that is drained"


def test_a_guest_that_has_just_left_is_not_moved_on_because_of_a_migration_that_never_began() -> None:
    """Made by a person or a job while the evacuation was under way, it has failed, in the same second or later."""
    gave_way = migration("Failed", name="move", uid="feedface-0002")
    gave_way["status"] = {"phase": "Failed", "reason": reasons.ANOTHER_MIGRATION, "endTimestamp": later(1)}
    assert plan(guest(), evacuation("Succeeded"), gave_way).create_migration is None
    began = migration("Failed", name="move", uid="feedface-0002")
    began["status"]["endTimestamp"] = later(1)
    assert plan(guest(), evacuation("Succeeded"), began).create_migration is not None, "back on a node that is drained"


def test_taking_the_taint_away_stops_what_has_not_begun() -> None:
    made = plan(guest(), evacuation("Pending"), tainted=False)
    assert [one.name for one in made.delete_migrations] == ["evacuation-web-aaaaaaaa-1"]
    assert plan(guest(), evacuation("Running"), tainted=False).delete_migrations == ()
    assert plan(guest(), migration(), tainted=False).delete_migrations == (), "what a person made is theirs"


def test_after_a_failure_it_is_tried_again_ever_more_slowly() -> None:
    once = plan(guest(), evacuation("Failed", 1, 0.0))
    assert (once.create_migration, once.next_look) == (None, pytest.approx(10.0))
    twice = plan(guest(), evacuation("Failed", 1, -50.0), evacuation("Failed", 2, 0.0))
    assert twice.next_look == pytest.approx(20.0)
    again = plan(guest(), evacuation("Failed", 1, -50.0), evacuation("Failed", 2, -21.0)).create_migration
    assert again is not None
    assert again["metadata"]["name"].endswith("-3")


def test_of_the_tries_that_failed_only_the_last_is_kept_and_it_knows_which_it_was() -> None:
    failed = [evacuation("Failed", number, float(number)) for number in (1, 2, 3)]
    made = plan(guest(), *failed, evacuation("Succeeded", 4, -9.0), tainted=False)
    assert [one.name for one in made.delete_migrations] == ["evacuation-web-aaaaaaaa-1", "evacuation-web-aaaaaaaa-2"]
    third = plan(guest(), evacuation("Failed", 3, 0.0, "3"))
    assert (third.delete_migrations, third.next_look) == ((), pytest.approx(40.0))
    fourth = plan(guest(), evacuation("Failed", 3, -41.0, "3")).create_migration
    assert fourth is not None
    assert fourth["metadata"]["annotations"][labels.EVACUATION_ATTEMPT] == "4"
    back = guest()
    back["status"]["migrationState"] = {"migrationUid": "feedface-0009", "completed": True}
    first = plan(back, evacuation("Failed", 3, -41.0, "3"), evacuation("Succeeded", 9, -1.0)).create_migration
    assert first is not None
    assert first["metadata"]["annotations"][labels.EVACUATION_ATTEMPT] == "1", "one has succeeded since"


@pytest.mark.parametrize("attempt", ["9" * 400, "-1", "x", "²"])
def test_whatever_is_written_as_the_number_of_a_try_the_next_one_comes(attempt: str) -> None:
    assert plan(guest(), evacuation("Failed", 1, 0.0, attempt)).next_look == pytest.approx(10.0)
    assert (plan(guest(), evacuation("Failed", 1, 0.0, "999999")).next_look or 0) <= 300.0


def test_why_the_last_try_failed_is_shown_until_the_next() -> None:
    failed = evacuation("Failed", 1, 0.0)
    failed["status"] |= {"reason": "PendingTimeout", "message": "no target was ready"}
    shown = plan(guest(), failed).condition
    assert shown is not None
    assert (shown["type"], shown["status"], shown["reason"]) == (reasons.EVACUATING, "False", "PendingTimeout")
    assert "no target was ready; it is tried again at" in shown["message"]
    assert plan(guest(), failed, now=NOW + 11).condition is None, "it is on its way again"


@pytest.mark.parametrize(
    ("conditions", "no_node", "reason", "why"),
    [(STUCK, None, "DisksNotLiveMigratable", "ReadWriteOnce"), (MOVABLE, NO_NODE, NO_NODE[0], NO_NODE[1])],
)
def test_one_that_cannot_leave_says_so_once_and_no_migration_is_made(
    conditions: list[Json], no_node: tuple[str, str] | None, reason: str, why: str
) -> None:
    made = plan(guest(conditions=conditions), no_node=no_node)
    assert made.create_migration is None
    assert made.condition is not None
    assert (made.condition["reason"], why in made.condition["message"]) == (reason, True)
    assert [(one.reason, why in one.message) for one in made.events] == [(reasons.EVACUATION_IMPOSSIBLE, True)]
    again = plan(guest(conditions=[*conditions, {**made.condition, "lastTransitionTime": None}]), no_node=no_node)
    assert (again.condition, again.events) == (made.condition, ())
    assert plan(guest(conditions=conditions), no_node=no_node, tainted=False).condition is None


def test_an_external_one_is_left_to_others() -> None:
    assert plan(guest("External")).create_migration is None


def test_the_wish_to_leave_is_forgotten_when_it_has_left() -> None:
    assert plan(guest(wish="node-1"), tainted=False).create_migration is not None
    gone = plan(guest(wish="node-0"), tainted=False)
    assert (gone.create_migration, gone.clear_wish) == (None, True)


def test_those_that_must_not_be_ended_have_a_budget() -> None:
    made = plan(guest("LiveMigrate"), tainted=False).create_budget
    assert made is not None
    assert made["spec"] == {"minAvailable": 1, "selector": {"matchLabels": {labels.CREATED_BY: "aaaaaaaa-0001"}}}
    assert plan(guest("LiveMigrate"), tainted=False, budget=True).create_budget is None
    assert plan(guest("LiveMigrateIfPossible", STUCK), tainted=False).create_budget is None
    assert plan(guest(), tainted=False, eviction_strategy="LiveMigrate").create_budget is not None
    assert plan(guest("None"), tainted=False, budget=True).delete_budget is not None
    assert plan(guest("LiveMigrate", phase="Succeeded"), tainted=False, budget=True).delete_budget is not None


def launcher() -> Pod:
    return owned(source())


def owned(pod: Pod) -> Pod:
    document = msgspec.to_builtins(pod)
    document["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachineInstance",
            "name": "web",
            "uid": "aaaaaaaa-0001",
            "controller": True,
        }
    ]
    return msgspec.convert(document, Pod)


@pytest.mark.parametrize(
    ("strategy", "conditions", "refused", "moved"),
    [
        ("LiveMigrate", MOVABLE, "is moved to another node instead", True),
        ("LiveMigrate", STUCK, "cannot be moved: DisksNotLiveMigratable", False),
        ("LiveMigrateIfPossible", MOVABLE, "is moved to another node instead", True),
        ("LiveMigrateIfPossible", STUCK, "", False),
        ("External", MOVABLE, "is left to who handles it", True),
        ("None", MOVABLE, "", False),
        (None, MOVABLE, "", False),
    ],
)
def test_an_eviction_follows_the_strategy(strategy: str | None, conditions: list[Json], refused: str, moved: bool) -> None:
    verdict = judge_eviction(launcher(), instance_view(guest(strategy, conditions)), "None")
    assert (bool(verdict.refused), verdict.evacuate) == (bool(refused), "node-1" if moved else "")
    assert refused in verdict.refused


def test_a_pod_that_waits_for_a_guest_is_not_evicted() -> None:
    verdict = judge_eviction(owned(target()), instance_view(guest("LiveMigrate")), "None")
    assert "waits for the guest" in verdict.refused


def test_a_pod_that_is_over_may_go() -> None:
    assert judge_eviction(owned(source(phase="Succeeded")), instance_view(guest("LiveMigrate")), "None").refused == ""
