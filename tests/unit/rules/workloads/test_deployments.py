"""The next step of a Deployment, as a plan."""

from __future__ import annotations

import msgspec

from herder.api.world import timestamp
from herder.rules.workloads import DeploymentPlan, DeploymentSnapshot, plan_deployment
from herder.rules.workloads.deployment import collided, creation_failed, is_ours
from herder.rules.workloads.templates import Member, same_template, template_hash

from .things import NOW, Json, deployment, member, replica_set, template_with

REVISION = "deployment.kubernetes.io/revision"
SIZES = {"deployment.kubernetes.io/desired-replicas": "3", "deployment.kubernetes.io/max-replicas": "4"}
FIRST = {REVISION: "1", **SIZES}
DONE: Json = {"observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3}


def plan(snapshot: DeploymentSnapshot, now: float = NOW) -> DeploymentPlan:
    return plan_deployment(snapshot, now)


def said(plan: DeploymentPlan, kind: str = "Progressing") -> tuple[str, str]:
    found = next((one for one in plan.status["conditions"] if one["type"] == kind), {})
    return found.get("status", ""), found.get("reason", "")


def progressing(reason: str, status: str = "True", ago: float = 0.0) -> Json:
    time = timestamp(NOW - ago)
    return {
        "conditions": [
            {
                "type": "Progressing",
                "status": status,
                "reason": reason,
                "message": "",
                "lastUpdateTime": time,
                "lastTransitionTime": time,
            }
        ]
    }


def test_the_first_step_makes_a_set_of_its_own_name() -> None:
    made = plan(deployment(3, annotations={"a": "b", "kubectl.kubernetes.io/last-applied-configuration": "{}"}))
    assert made.create is not None
    metadata, spec = made.create["metadata"], made.create["spec"]
    ending = metadata["labels"]["pod-template-hash"]
    assert metadata["name"] == f"web-{ending}"
    assert metadata["annotations"] == {"a": "b", REVISION: "1", **SIZES}
    assert spec["replicas"] == 3
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"] == {"app": "web", "pod-template-hash": ending}
    assert made.revision == "1"
    assert said(made) == ("True", "NewReplicaSetCreated")
    assert [one.message for one in made.events] == [f"Scaled up replica set {metadata['name']} from 0 to 3"]
    assert made.next_look == 601.0


def test_a_new_template_begins_with_the_room_that_there_is() -> None:
    made = plan(deployment(3, "web:2", (member("old", 3, annotations=FIRST),), status=DONE))
    assert made.create is not None
    assert made.create["spec"]["replicas"] == 1
    assert made.create["metadata"]["annotations"][REVISION] == "2"
    assert not made.changes


def test_nothing_is_done_to_what_is_as_it_should_be() -> None:
    known = {**DONE, **progressing("NewReplicaSetAvailable")}
    settled = plan(deployment(3, sets=(member("one", 3, annotations=FIRST),), annotations={REVISION: "1"}, status=known))
    assert (settled.create, settled.changes, settled.delete, settled.revision, settled.events) == (None, (), (), None, ())
    assert settled.next_look is None
    again = plan(
        deployment(3, sets=(member("one", 3, annotations=FIRST),), annotations={REVISION: "1"}, status=settled.status), NOW + 9
    )
    assert again.status == settled.status


def test_who_goes_back_gets_the_set_that_was_and_the_next_number() -> None:
    old, new = member("one", 0, annotations=FIRST), member("two", 3, "web:2", annotations={**FIRST, REVISION: "2"})
    back = plan(deployment(3, "web:1", (old, new), annotations={REVISION: "2"}))
    assert back.create is None
    assert back.revision == "3"
    (change,) = back.changes
    assert change.name == "one"
    assert change.patch["metadata"]["annotations"] == {REVISION: "3", f"{REVISION}-history": "1"}
    assert change.patch["spec"] == {"replicas": 1}


def test_a_change_of_size_is_no_rollout() -> None:
    grown = plan(deployment(5, sets=(member("one", 3, annotations=FIRST),), status=DONE))
    (change,) = grown.changes
    assert change.patch["spec"] == {"replicas": 5}
    assert change.patch["metadata"]["annotations"]["deployment.kubernetes.io/desired-replicas"] == "5"
    assert said(grown) == ("", "")


def test_a_paused_one_is_scaled_but_makes_no_new_set() -> None:
    paused = plan(deployment(5, "web:2", (member("one", 3, annotations=FIRST),), spec={"paused": True}))
    assert paused.create is None
    assert [change.patch["spec"] for change in paused.changes] == [{"replicas": 5}]
    assert said(paused) == ("Unknown", "DeploymentPaused")
    assert paused.next_look is None
    resumed = plan(
        deployment(3, sets=(member("one", 3, annotations=FIRST),), status=progressing("DeploymentPaused", "Unknown", 9999))
    )
    assert said(resumed) == ("Unknown", "DeploymentResumed")


def test_one_that_is_deleted_only_says_how_it_is() -> None:
    going = plan(deployment(3, "web:2", (member("one", 3),), deleted=True))
    assert (going.create, going.changes, going.delete) == (None, (), ())
    assert going.status["replicas"] == 3


def test_recreating_waits_for_the_last_old_pod() -> None:
    recreate = {"strategy": {"type": "Recreate"}}
    old = member("old", 3, annotations=FIRST)
    first = plan(deployment(3, "web:2", (old,), spec=recreate))
    assert [change.patch["spec"] for change in first.changes] == [{"replicas": 0}]
    empty = member("old", 0, annotations=FIRST)
    waiting = plan(deployment(3, "web:2", (empty,), spec=recreate, running=frozenset({"old"})))
    assert (waiting.create, waiting.changes) == (None, ())
    last = plan(deployment(3, "web:2", (empty,), spec=recreate))
    assert last.create is not None and last.create["spec"]["replicas"] == 3


def test_it_is_late_only_after_its_deadline_and_stays_so() -> None:
    stuck = {"replicas": 3, "readyReplicas": 0, "availableReplicas": 0, "terminatingReplicas": 0}
    sets = (member("one", 3, annotations=FIRST, status=stuck),)
    known = {"observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "unavailableReplicas": 3}
    early = plan(deployment(3, sets=sets, status={**known, **progressing("ReplicaSetUpdated", ago=599)}))
    assert said(early) == ("True", "ReplicaSetUpdated")
    assert early.next_look == 2.0
    late = plan(deployment(3, sets=sets, status={**known, **progressing("ReplicaSetUpdated", ago=601)}))
    assert said(late) == ("False", "ProgressDeadlineExceeded")
    assert late.next_look is None
    assert said(plan(deployment(3, sets=sets, status=late.status), NOW + 50)) == ("False", "ProgressDeadlineExceeded")
    assert said(plan(deployment(3, sets=sets, status=known, spec={"progressDeadlineSeconds": 2**31 - 1}))) == ("", "")


def test_progress_is_news_each_time() -> None:
    sets = (member("one", 3, annotations=FIRST, status={"replicas": 3, "readyReplicas": 2, "availableReplicas": 2}),)
    known = {"observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 1, "availableReplicas": 1}
    further = plan(deployment(3, sets=sets, status={**known, **progressing("ReplicaSetUpdated", ago=500)}))
    (condition,) = [one for one in further.status["conditions"] if one["type"] == "Progressing"]
    assert condition["lastUpdateTime"] == timestamp(NOW)
    assert condition["lastTransitionTime"] == timestamp(NOW - 500)


def test_the_past_is_forgotten_once_the_rollout_is_complete() -> None:
    past = [member(f"old{number}", 0, f"web:{number}", annotations={REVISION: str(number)}) for number in range(2, 7)]
    busy = member("busy", 0, "web:0", annotations={REVISION: "1"}, status={"replicas": 1})
    new = member("new", 3, annotations={**FIRST, REVISION: "9"})
    limit = {"revisionHistoryLimit": 2}
    done = plan(deployment(3, sets=(new, busy, *past), status=DONE, spec=limit))
    assert [one.name for one in done.delete] == ["old2", "old3", "old4"]
    halfway = {**DONE, "availableReplicas": 2}
    assert plan(deployment(3, sets=(new, busy, *past), status=halfway, spec=limit)).delete == ()


def test_a_failure_of_a_set_is_one_of_the_deployment() -> None:
    time = timestamp(NOW)
    failed = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "no", "lastTransitionTime": time}
    one = member("one", 3, annotations=FIRST, status={"replicas": 0, "conditions": [failed]})
    assert said(plan(deployment(3, sets=(one,))), "ReplicaFailure") == ("True", "FailedCreate")


def test_a_set_that_cannot_be_made_is_told_of() -> None:
    status, event = creation_failed(deployment(3), "web-x", "no quota", NOW)
    (condition,) = [one for one in status["conditions"] if one["type"] == "Progressing"]
    assert (condition["status"], condition["reason"]) == ("False", "ReplicaSetCreateError")
    assert event.message == condition["message"] == 'Failed to create new replica set "web-x": no quota'


def test_two_templates_of_one_hash_get_two_names() -> None:
    snapshot = deployment(3)
    first = plan(snapshot).create
    counted = msgspec.convert(collided(snapshot, NOW), type=type(snapshot.deployment.status))
    again = msgspec.structs.replace(snapshot, deployment=msgspec.structs.replace(snapshot.deployment, status=counted))
    second = plan(again).create
    assert first is not None and second is not None
    assert counted.collision_count == 1
    assert first["metadata"]["name"] != second["metadata"]["name"]


def test_a_set_of_somebody_else_is_not_ours() -> None:
    assert not is_ours(Member(replica_set("web-x"), template_with("web:1")), deployment(3))


def test_templates_are_the_same_whatever_says_nothing() -> None:
    one, other = template_with("web:1"), template_with("web:1")
    other["metadata"]["labels"]["pod-template-hash"] = "x"
    other["metadata"]["creationTimestamp"] = None
    other["spec"]["volumes"] = []
    assert same_template(one, other)
    assert not same_template(one, template_with("web:2"))
    assert template_hash(one, None) == template_hash(dict(reversed(one.items())), None) != template_hash(one, 1)
    assert template_hash(one, None).isalnum()
