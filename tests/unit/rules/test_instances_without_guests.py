"""Whatever pods an instance has and whatever they report: it is only ready while its guest runs, and where nobody runs it, nor may
run it, the instance ends, so that its machine starts the next one."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from herder.api import labels
from herder.api.core import Node, Pod
from herder.api.guest import GuestReport, GuestState, MigrationReport, report_of
from herder.rules.instances import InstancePlan, InstanceSnapshot, plan_instance
from herder.rules.instances.observed import answers, fenced
from herder.rules.plans import moment
from tests.examples import examples
from tests.unit.rules.machines import NOW, Json, instance, instance_view, node, pod

LAUNCHER, TARGET = "virt-launcher-web-aaaaaaaa", "virt-launcher-web-aaaaaaaa-feedface"
MOVE = "feedface-0001"
LOST = GuestReport(state="Failed", reason="GuestLost", message="the node no longer knows of it: the machine was restarted")
ENDED_PHASES = ("Succeeded", "Failed")


def plan(document: Json, *pods: Pod, nodes: tuple[Node, ...] = (), migrations: tuple[str, ...] = ()) -> InstancePlan:
    known = {one.name: one for one in nodes or (node("node-1"), node("node-2"))}
    raw = msgspec.json.encode(document)
    return plan_instance(InstanceSnapshot(instance_view(document), raw, pods, known, migrations=frozenset(migrations)), NOW)


def target(report: GuestReport | None, phase: str = "Running", node: str = "node-2", **more: Any) -> Pod:
    return pod(report, phase=phase, node=node, name=TARGET, labels={labels.MIGRATION_UID: MOVE}, **more)


def ready(status: Json) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in status["conditions"])


def test_a_guest_that_was_moved_once_and_is_lost_fails_its_instance() -> None:
    """As after a restore: the pod is there, and its node knows neither the guest nor when it was started."""
    ended = plan(instance("Running", launcherPodName=TARGET), target(LOST, "Failed"))
    assert ended.gone is None
    assert ended.status is not None
    assert (ended.status["phase"], ended.status["reason"]) == ("Failed", "GuestLost")
    assert not ready(ended.status)


def test_a_source_that_is_lost_after_it_gave_the_guest_away_is_not_the_guests_end() -> None:
    running = GuestReport(state="Running", started_at=moment(NOW - 9))
    source = pod(LOST, phase="Failed", node="node-1", name=LAUNCHER)
    goes_on = plan(instance("Running", launcherPodName=LAUNCHER), source, target(running, ready=True))
    assert goes_on.status is not None
    assert (goes_on.status["phase"], goes_on.status["launcherPodName"]) == ("Running", TARGET)
    assert ready(goes_on.status)


def test_of_two_that_seem_to_run_the_target_has_the_guest() -> None:
    running = GuestReport(state="Running", started_at=moment(NOW - 9))
    source = pod(running, phase="Running", node="node-1", name=LAUNCHER)
    moved = plan(instance("Running", launcherPodName=LAUNCHER), source, target(running))
    assert moved.status is not None
    assert moved.status["launcherPodName"] == TARGET


def handed_over(seconds_ago: float) -> Pod:
    given = pod(GuestReport(state="HandedOver"), phase="Running", node="node-1", name=LAUNCHER, ready=True)
    conditions = [msgspec.structs.replace(one, last_transition_time=moment(NOW - seconds_ago)) for one in given.status.conditions]
    return msgspec.structs.replace(given, status=msgspec.structs.replace(given.status, conditions=tuple(conditions)))


def test_a_guest_that_waits_to_be_told_to_go_on_is_not_ready_once_it_waits_for_long() -> None:
    waits = target(GuestReport(state="Incoming", migration=MigrationReport(migration=MOVE, has_memory=True)), "Pending")
    document = instance("Running", launcherPodName=LAUNCHER)
    at_once = plan(document, handed_over(1), waits, migrations=(MOVE,))
    assert (at_once.status, at_once.next_look) == (None, pytest.approx(2.0))
    later = plan(document, handed_over(4), waits, migrations=(MOVE,))
    assert later.status is not None
    assert (later.status["phase"], ready(later.status)) == ("Running", False)
    assert "node-2" in later.status["conditions"][0]["message"]


def test_a_target_whose_migration_is_gone_is_not_waited_for() -> None:
    waits = target(GuestReport(state="Incoming", migration=MigrationReport(migration=MOVE, has_memory=True)), "Pending")
    ended = plan(instance("Running", launcherPodName=LAUNCHER), handed_over(1), waits)
    assert ended.migration_gone == MOVE, "asked of the server itself before it is believed"
    assert ended.forsaken == waits, "and so is whether it has begun to run since: that, too, ends a migration"
    assert ended.status is not None
    assert (ended.status["phase"], ended.status["reason"]) == ("Failed", "GuestLost")


# Any set of pods, and any reports of them.

STATES: tuple[GuestState, ...] = ("Preparing", "Incoming", "Running", "Paused", "HandedOver", "ShutDown", "Crashed", "Failed")
moves = st.builds(MigrationReport, migration=st.just(MOVE), has_memory=st.booleans(), taken_over=st.booleans())
reports = st.builds(
    GuestReport,
    state=st.sampled_from(STATES),
    started_at=st.sampled_from([None, moment(NOW - 60)]),
    migration=st.one_of(st.none(), moves),
)
about = st.fixed_dictionaries(
    {
        "report": st.one_of(st.none(), reports),
        "phase": st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]),
        "node": st.sampled_from(["node-1", "node-2", "node-3", "gone"]),
        "ready": st.sampled_from([None, True, False]),
        "deleted": st.booleans(),
    }
)
NODES = (node("node-1"), node("node-2"), node("node-3", "Unknown"))


def launcher_of(drawn: Json) -> Pod:
    return pod(drawn["report"], phase=drawn["phase"], node=drawn["node"], ready=drawn["ready"], deleted=drawn["deleted"])


def target_of(drawn: Json) -> Pod:
    return target(drawn["report"], drawn["phase"], drawn["node"], ready=drawn["ready"], deleted=drawn["deleted"])


def may_run(one: Pod) -> bool:
    """Its node will start it, or somebody has to find out: it has not said that it ended, and is not fenced."""
    report = report_of(one)
    found = {each.name: each for each in NODES}.get(one.spec.node_name)
    if labels.MIGRATION_UID in one.labels and (report is None or report.state in ("Preparing", "Incoming")) and answers(found):
        return False  # nobody sends it a guest
    if one.status.phase in ENDED_PHASES or (report is not None and report.state in ("HandedOver", "ShutDown", "Crashed", "Failed")):
        return False
    return not fenced(found)


def runs(one: Pod) -> bool:
    report = report_of(one)
    there = answers({each.name: each for each in NODES}.get(one.spec.node_name))
    return there and one.status.phase not in ENDED_PHASES and report is not None and report.state == "Running"


@pytest.mark.slow
@settings(max_examples=examples(1500), deadline=None)
@given(
    launcher=st.one_of(st.none(), about),
    moved=st.one_of(st.none(), about),
    known=st.sampled_from([LAUNCHER, TARGET, None]),
    was=st.sampled_from(["Pending", "Scheduling", "Scheduled", "Running", "Unknown"]),
    migrates=st.booleans(),
)
def test_whatever_the_pods_say(launcher: Json | None, moved: Json | None, known: str | None, was: str, migrates: bool) -> None:
    pods = [launcher_of(launcher)] if launcher is not None else []
    pods += [target_of(moved)] if moved is not None else []
    document = instance(was, launcherPodName=known)
    for _ in range(6):
        found = plan(document, *pods, nodes=NODES, migrations=(MOVE,) if migrates else ())
        assert found.gone not in {one.name for one in pods}, "waits for a pod to be gone that is there"
        if found.status is not None:
            assert not ready(found.status) or any(runs(one) for one in pods), "ready without a guest"
            document = {**document, "status": found.status}
        forced = {end.name for end in found.delete_pods if end.grace_period_seconds == 0}
        pods = [one for one in pods if one.name not in forced]
        if found.create_pod is not None:
            return  # it is started
    phase = document["status"]["phase"]
    # A migration that goes on decides about its target, and ends by itself.
    assert phase in ENDED_PHASES or any(may_run(one) for one in pods) or migrates, (phase, pods)
    assert phase in ENDED_PHASES or known is None or pods, "nothing is left of it"
