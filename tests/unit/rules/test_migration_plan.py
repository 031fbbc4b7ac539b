"""What becomes of a migration, as its objects show it: who is told what, and who may be removed."""

import msgspec
import pytest

from herder.api import labels, reasons
from herder.api.guest import definition_of, order_of
from herder.rules.migration.snapshot import Prepared
from tests.unit.rules.machines import NOW, instance, later
from tests.unit.rules.migrations import PREPARED, SETTINGS, UID, migration, named, ordered, phase, plan, source, target, why

ADDRESS = {"address": "simulated://node-2"}
COMPLETE = {"handed_over": True, "completed": True}


def test_one_that_may_go_asks_for_its_turn_with_all_that_it_will_run_with() -> None:
    made = plan(migration(), source())
    assert made.status is None
    begun = made.begins
    assert begun is not None
    assert (begun["phase"], begun["sourceNode"]) == ("Scheduling", "node-1")
    assert begun["migrationPolicy"]["name"] == "fast"
    assert begun["effectiveSettings"] == {"completionTimeoutPerGiB": 150}
    assert begun["targetPod"] == "virt-launcher-web-aaaaaaaa-feedface"


def test_one_that_waits_may_go_at_once_and_one_that_has_begun_is_kept_before_a_pod_is_made_for_it() -> None:
    waits, begun = migration(), migration("Scheduling")
    for one in (waits, begun):
        one["metadata"]["finalizers"] = []
    assert not plan(waits, source()).add_finalizer
    made = plan(begun, source())
    assert made.add_finalizer
    assert made.create_pod is not None


@pytest.mark.parametrize(
    ("of", "reason"),
    [
        ({}, reasons.VMI_NOT_FOUND),
        (instance("Succeeded"), reasons.SOURCE_STOPPED),
        (instance("Running", deleted=True), reasons.SOURCE_STOPPED),
    ],
)
def test_without_a_guest_it_fails_and_says_so(of: dict[str, object], reason: str) -> None:
    assert (phase(made := plan(migration(), of=of)), why(made)[0]) == ("Failed", reason)


def test_one_that_cannot_be_moved_fails_with_the_reason_of_the_condition() -> None:
    stuck = {"type": "LiveMigratable", "status": "False", "reason": "DisksNotLiveMigratable", "message": "claim a is ReadWriteOnce"}
    made = plan(migration(), source(), of=instance("Running", conditions=[{**stuck, "lastTransitionTime": None}]))
    assert why(made) == (reasons.NOT_LIVE_MIGRATABLE, "DisksNotLiveMigratable: claim a is ReadWriteOnce")


def test_a_guest_that_does_not_run_yet_is_waited_for() -> None:
    made = plan(migration(), of=instance("Scheduled"))
    assert (phase(made), why(made)[0]) == ("Pending", reasons.GUEST_NOT_RUNNING)


def test_what_no_node_can_satisfy_fails_before_any_pod_is_made() -> None:
    hopeless = Prepared(PREPARED.policy, SETTINGS, (reasons.NODE_NOT_FOUND, "node x does not exist"))
    made = plan(migration(), source(), prepared=hopeless)
    assert (phase(made), why(made)) == ("Failed", (reasons.NODE_NOT_FOUND, "node x does not exist"))
    assert made.create_pod is None


def test_the_target_is_the_same_machine_elsewhere() -> None:
    made = plan(migration("Scheduling"), source()).create_pod
    assert made is not None
    assert made["metadata"]["labels"][labels.MIGRATION_UID] == UID
    pod = msgspec.convert(made, type=type(source()))
    definition, order = definition_of(pod), order_of(pod)
    assert definition is not None
    assert definition.incoming is not None
    assert definition.incoming.machine_type == "q35"
    assert order is not None
    assert (order.migration, order.address) == (UID, "")
    terms = made["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert terms[0]["matchFields"] == [{"key": "metadata.name", "operator": "NotIn", "values": ["node-1"]}]
    assert "nodeName" not in made["spec"]


def test_crowded_nodes_are_only_wished_away() -> None:
    made = plan(migration("Scheduling"), source(), crowded=("node-3",)).create_pod
    assert made is not None
    wishes = made["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert wishes[0]["preference"]["matchFields"][0]["values"] == ["node-3"]


def test_a_bound_target_asks_to_come_in() -> None:
    made = plan(migration("Scheduling"), source(), target(None))
    assert made.comes_in is not None
    assert (made.comes_in["phase"], made.comes_in["targetNode"]) == ("PreparingTarget", "node-2")
    assert made.order is None


def test_the_source_is_told_once_the_target_waits() -> None:
    made = plan(migration("PreparingTarget"), source(), target(said=ADDRESS))
    assert phase(made) == "TargetReady"
    assert made.order is not None
    pod, order = made.order
    assert pod == "virt-launcher-web-aaaaaaaa"
    assert order is not None
    assert (order.migration, order.address, order.target_node, order.settings) == (UID, ADDRESS["address"], "node-2", SETTINGS)


def test_progress_is_shown_as_the_source_tells_it() -> None:
    moving = source(said={"progress": {"mode": "PreCopy", "percent": 40}}, order=ordered())
    made = plan(migration("TargetReady"), moving, target(said=ADDRESS))
    assert made.status is not None
    assert (phase(made), made.status["progress"]["percent"]) == ("Running", 40)


def test_a_phase_never_goes_back() -> None:
    """The report of the source may be lost with its agent."""
    assert phase(plan(migration("Running"), source(order=ordered()), target(said=ADDRESS))) == "Running"


def test_it_has_succeeded_when_the_target_runs_and_the_source_is_not_needed() -> None:
    moved = (source("HandedOver", said=COMPLETE, order=ordered(), phase="Succeeded"), target("Running", said={"taken_over": True}))
    made = plan(migration("Running"), *moved)
    assert phase(made) == "Succeeded"
    assert not made.delete_pods, "only once that is written"
    tidied = plan(migration("Succeeded"), *moved)
    assert [one.name for one in tidied.delete_pods] == ["virt-launcher-web-aaaaaaaa"]
    assert plan(migration("Succeeded"), moved[1]).remove_finalizer


def test_in_post_copy_the_source_is_needed_until_all_memory_has_come() -> None:
    still = source("HandedOver", said={"handed_over": True}, order=ordered())
    assert phase(plan(migration("Running"), still, target("Running", said={"taken_over": True}))) == "Running"


def test_a_source_that_failed_to_send_goes_on_and_the_target_goes() -> None:
    failed = source(said={"failed": reasons.NO_PROGRESS, "message": "nothing fell"}, order=ordered())
    made = plan(migration("Running"), failed, target(said=ADDRESS))
    assert (phase(made), why(made)) == ("Failed", (reasons.NO_PROGRESS, "nothing fell"))
    tidied = plan(migration("Failed"), failed, target(said=ADDRESS))
    assert [one.name for one in tidied.delete_pods] == ["virt-launcher-web-aaaaaaaa-feedface"]
    assert tidied.order == ("virt-launcher-web-aaaaaaaa", None)
    assert not tidied.remove_finalizer


def test_cancelled_before_the_order_it_just_ends() -> None:
    made = plan(migration("PreparingTarget", deleted=True), source(), target(said=ADDRESS))
    assert (phase(made), why(made)[0]) == ("Failed", reasons.CANCELLED)


def test_cancelled_after_the_order_the_source_is_asked_first() -> None:
    made = plan(migration("Running", deleted=True), source(said={}, order=ordered()), target(said=ADDRESS))
    assert phase(made) == "Running"
    assert made.order is not None
    assert made.order[1] is not None
    assert made.order[1].cancelled
    assert not made.delete_pods
    told = plan(migration("Running", deleted=True), source(said={}, order=ordered(cancelled=True)), target(said=ADDRESS))
    assert told.order is None, "once is enough"
    answered = source(said={"failed": reasons.CANCELLED}, order=ordered(cancelled=True))
    assert why(plan(migration("Running", deleted=True), answered, target(said=ADDRESS)))[0] == reasons.CANCELLED


def test_what_was_given_away_can_no_longer_be_cancelled() -> None:
    gone = source("HandedOver", said={"handed_over": True}, order=ordered())
    made = plan(migration("Running", deleted=True), gone, target(said={"has_memory": True}))
    assert (phase(made), made.order, made.delete_pods) == ("Running", None, ())


def test_a_target_that_dies_after_the_order_does_not_end_it_before_the_source_has_spoken() -> None:
    made = plan(migration("Running"), source(said={}, order=ordered()), target("Failed", phase="Failed", said={}))
    assert phase(made) == "Running"
    assert made.order is not None
    assert made.order[1] is not None
    assert made.order[1].cancelled


def test_a_target_that_dies_before_the_order_ends_it() -> None:
    made = plan(migration("PreparingTarget"), source(), target("Failed", phase="Failed"))
    assert (phase(made), why(made)[0]) == ("Failed", reasons.TARGET_POD_FAILED)


def test_agents_that_cannot_reach_each_other_get_the_grant_through_the_api_server() -> None:
    gone = source("HandedOver", said={"handed_over": True}, order=ordered())
    waiting = target(said={"has_memory": True})
    first = plan(migration("Running"), gone, waiting)
    assert (first.grant, first.next_look) == ("", 2.0), "they tell each other at once, as a rule"
    known = migration("Running")
    assert first.status is not None
    known["status"] = first.status
    later = plan(known, gone, waiting, now=NOW + 3)
    assert later.grant == "virt-launcher-web-aaaaaaaa-feedface"
    told = target(said={"has_memory": True}, annotations={labels.RESUME: UID})
    assert plan(known, gone, told, now=NOW + 3).grant == ""


def test_a_source_that_is_lost_leaves_the_target_paused_until_its_node_is_fenced() -> None:
    lost, waiting = source(said={}, order=ordered()), target(said={"has_memory": True})
    assert plan(migration("Running"), lost, waiting).grant == ""
    fenced = plan(migration("Running"), lost, waiting, nodes=("node-2",))
    assert fenced.grant == "virt-launcher-web-aaaaaaaa-feedface"


def test_a_source_that_is_lost_before_all_memory_has_come_is_the_end() -> None:
    made = plan(migration("Running"), source(said={}, order=ordered()), target(said=ADDRESS), nodes=("node-2",))
    assert (phase(made), why(made)[0]) == ("Failed", reasons.NODE_LOST)


def test_a_source_that_was_not_told_and_is_fenced_is_the_end() -> None:
    made = plan(migration("PreparingTarget"), target(said={}))
    assert (phase(made), why(made)[0], made.gone) == ("Failed", reasons.SOURCE_STOPPED, "virt-launcher-web-aaaaaaaa")


def test_a_guest_that_shuts_itself_down_ends_its_migration() -> None:
    ended = source("ShutDown", said={}, order=ordered(), phase="Succeeded")
    made = plan(migration("Running"), ended, target(said=ADDRESS))
    assert (phase(made), why(made)[0]) == ("Failed", reasons.SOURCE_STOPPED)


@pytest.mark.parametrize(("bound", "limit"), [("", 300), ("node-2", 900)])
def test_a_target_that_does_not_get_ready_is_given_up(bound: str, limit: int) -> None:
    waiting = target(None, on=bound)
    before = plan(migration("Scheduling"), source(), waiting, now=NOW + limit - 1)
    assert before.next_look == pytest.approx(1.0)
    after = plan(migration("Scheduling"), source(), waiting, now=NOW + limit)
    assert (phase(after), why(after)[0]) == ("Failed", reasons.PENDING_TIMEOUT)


def test_while_it_waits_for_a_place_it_says_why_node_by_node() -> None:
    made = plan(migration("Scheduling"), source(), target(None, on=""), no_place="0/5 nodes: 2 lack cpu")
    assert why(made)[1] == "0/5 nodes: 2 lack cpu"


def test_a_target_that_lost_what_was_handed_over_to_it_is_not_waited_for() -> None:
    given = source("HandedOver", said={"handed_over": True}, order=ordered())
    arriving = migration("Running")
    arriving["status"]["migrationState"]["handedOverTimestamp"] = later(-59)
    waits = plan(arriving, given, target(said=ADDRESS))
    assert (phase(waits), waits.next_look) == ("Running", 1.0)
    arriving["status"]["migrationState"]["handedOverTimestamp"] = later(-60)
    assert (phase(made := plan(arriving, given, target(said=ADDRESS))), why(made)[0]) == ("Failed", reasons.TARGET_POD_FAILED)


def test_but_one_whose_node_does_not_answer_may_have_it() -> None:
    given = source("HandedOver", said={"handed_over": True}, order=ordered())
    arriving = migration("Running")
    arriving["status"]["migrationState"]["handedOverTimestamp"] = later(-600)
    nodes = {"node-1": named("node-1"), "node-2": named("node-2", ready="Unknown")}
    assert phase(plan(arriving, given, target(said=ADDRESS), nodes=nodes)) == "Running"
