"""What `herder pool plan`, `status`, `preserved` and `rollout history|status` say, from what there is."""

import msgspec
import pytest

from herder.api.core import ControllerRevision
from herder.api.kinds import VirtualMachinePool
from herder.rules.plans import condition
from herder.rules.pools.explain import MOST_LATER, explain_plan, pool_report
from herder.rules.pools.gather import Everything, snapshot_of
from herder.rules.pools.history import changes, history_rows
from herder.rules.pools.plan import plan_pool
from herder.rules.pools.preservation import kept_volumes, preserved_report
from herder.rules.pools.snapshot import Refusal
from herder.rules.pools.waiting import rollout_standing
from tests.unit.rules.pools.objects import (
    BY_HAND,
    NEW,
    NOW,
    OLD,
    OWNER,
    Json,
    instance,
    machine,
    member,
    pool,
    revision,
    snapshot,
    stored,
    volume,
    written,
)

DONE = {"currentRevision": OLD.name, "updateRevision": OLD.name}
OLDEST = {"proactive": {"selectionPolicy": {"basePolicy": "Oldest"}}}


def test_a_plan_is_the_controllers_own_and_says_what_follows_it() -> None:
    found = snapshot(written(4, DONE, memory="96Mi", updateStrategy=OLDEST), [machine(f"web-{n}") for n in range(1, 5)])
    said = explain_plan(found, NOW)
    plan = plan_pool(found, NOW)
    assert [step.name for step in said.steps] == [one.name for one in plan.update] == ["web-1"]
    assert (said.steps[0].action, said.steps[0].revision, said.new_revision) == ("Restart", NEW.name, True)
    assert [step.name for step in said.later] == ["web-2", "web-3", "web-4"]
    assert said.then == ("then 3 more are restarted, at most 1 unavailable at a time: web-2, web-3, web-4",)


def test_a_plan_says_who_goes_and_what_becomes_of_its_volumes() -> None:
    machines = [machine("web-1"), machine("web-2", scale_in="first"), machine("web-3", scale_in="never")]
    gone = explain_plan(snapshot(written(2, DONE), machines), NOW).steps
    assert [(step.action, step.name, step.why) for step in gone] == [
        ("Delete", "web-2", "beyond 2 replicas, marked to go first; its volumes go with it")
    ]
    kept = {"proactive": {"statePreservation": "Offline"}}
    said = explain_plan(snapshot(written(0, DONE, scaleInStrategy=kept), machines), NOW)
    assert {step.why for step in said.steps} >= {"beyond 0 replicas; its volumes are kept"}
    assert said.held_back[0] == "1 beyond replicas stays: web-3 may not be taken (herder.dev/scale-in: never)"


@pytest.mark.parametrize(
    ("strategy", "replicas", "sentence"),
    [
        ("unmanaged", 2, "1 beyond replicas stays: scaleInStrategy is unmanaged"),
        ("unmanaged", 1, "2 beyond replicas stay: scaleInStrategy is unmanaged"),
        ("opportunistic", 2, "1 beyond replicas stays until it is off: scaleInStrategy is opportunistic"),
        ("opportunistic", 1, "2 beyond replicas stay until they are off: scaleInStrategy is opportunistic"),
    ],
)
def test_a_plan_says_how_many_stay_and_why(strategy: str, replicas: int, sentence: str) -> None:
    machines = [machine(f"web-{n}") for n in (1, 2, 3)]
    found = snapshot(written(replicas, DONE, scaleInStrategy={strategy: {}}), machines)
    assert explain_plan(found, NOW).held_back == (sentence,)


def test_a_plan_for_one_replica_says_so() -> None:
    found = snapshot(written(1, DONE), [machine("web-1"), machine("web-2", scale_in="first")])
    assert explain_plan(found, NOW).steps[0].why.startswith("beyond 1 replica, ")


@pytest.mark.parametrize("name", ["web-1", "web-2"])
def test_a_plan_says_what_was_refused_of_a_machine_that_is_there_and_of_one_that_is_not(name: str) -> None:
    found = snapshot(written(2, DONE), [machine("web-1")])
    refused = msgspec.structs.replace(found, refusals={name: Refusal("quota", NOW + 9)})
    assert explain_plan(refused, NOW).held_back == (f"{name}: quota",)


def test_a_burst_makes_the_rest_come_later() -> None:
    found = msgspec.structs.replace(snapshot(written(5, DONE), []), burst=2)
    said = explain_plan(found, NOW)
    assert [(step.action, step.name) for step in said.steps] == [("Create", "web-1"), ("Create", "web-2")]
    assert said.then == ("then 3 more are created, at most 2 on the way at a time: web-3, web-4, web-5",)


def test_a_plan_for_more_machines_than_anybody_has_is_cut_and_says_so() -> None:
    said = explain_plan(msgspec.structs.replace(snapshot(written(2**31 - 1, DONE), []), burst=2), NOW)
    assert len(said.steps) == 2 and len(said.later) == MOST_LATER - 2
    assert said.then[0].startswith(f"then at least {MOST_LATER - 2} more are created, ")


def test_a_plan_for_a_pool_that_is_held_says_why_nothing_is_done() -> None:
    said = explain_plan(snapshot(written(5, DONE, paused=True), [machine()]), NOW)
    assert (said.steps, said.later) == ((), ())
    assert any("spec.paused is true" in sentence for sentence in said.held_back)


def test_what_the_snapshot_is_made_of() -> None:
    pending = {key: OWNER[key] for key in ("apiVersion", "kind", "name", "uid")}
    machines = [
        machine("web-10"),
        machine("web-2"),
        machine("web-3", owners=[]),
        machine("web-4", owners=[pending]),
        machine("db-1", owners=[]),
    ]
    forged = {**stored(NEW, 2), "data": stored(OLD, 2)["data"]}
    revisions = [msgspec.convert(one, ControllerRevision) for one in (stored(OLD, 1), forged)]
    volumes = [volume("disk-5", "web-5"), volume("disk-2", "web-2", controller="uid-web-2")]
    found = snapshot_of(pool(), written(), Everything(machines=machines, volumes=volumes, revisions=revisions))
    assert [one.name for one in found.members] == ["web-2", "web-10"]
    assert (found.held, set(found.detached)) == ({"web-3", "web-4"}, {"web-3", "web-4"})
    assert [one.name for one in found.attachable] == ["web-4"]
    assert [(one.machine, one.controller) for one in found.volumes] == [("web-5", ""), ("web-2", "uid-web-2")]
    assert [one.name for one in found.revisions] == [OLD.name], "another template under the name of one is none of the pool's"
    assert found.template == written()["spec"]["template"]


def test_each_machine_says_why_it_is_not_as_it_should_be() -> None:
    machines = {
        "web-1": machine("web-1"),
        "web-2": machine("web-2", revision=NEW.name, scale_in="never"),
        "web-3": machine("web-3", deleted=True),
    }
    members = [
        member(machines["web-1"], instance("web-1")),
        member(machines["web-2"], instance("web-2", revision=NEW.name, ready=False)),
        member(machines["web-3"], instance("web-3")),
    ]
    rows = pool_report(pool(3, {**DONE, "updateRevision": NEW.name}), machines, members).machines
    assert [(row.name, row.revision, row.updated, row.ready) for row in rows] == [
        ("web-1", OLD.name, False, True),
        ("web-2", NEW.name, True, False),
        ("web-3", OLD.name, False, True),
    ]
    assert [row.why for row in rows] == ["to be updated", "Unknown; never taken by a scale-in", "it is being deleted"]


def _shown(reason: str, holds: bool, **more: Json) -> VirtualMachinePool:
    status = {"observedGeneration": 2, "replicas": 4, "updatedReplicas": 1, "updateRevision": NEW.name}
    conditions = [condition("Progressing", holds, reason, "1 of 4 has it")]
    return pool(4, {**status, **more.pop("status", {}), "conditions": conditions}, **more)


@pytest.mark.parametrize(
    ("found", "state", "sentence"),
    [
        (_shown("RolloutComplete", True), "done", "is complete: 4 of 4 have it"),
        (_shown("RolloutComplete", True, status={"replicas": 1}), "done", "is complete: 1 of 1 has it"),
        (_shown("RollingOut", True), "going", "1 of 4 has it"),
        (_shown("RolloutComplete", True, status={"observedGeneration": 1}), "going", "have not looked at the latest change"),
        (
            _shown("ProgressDeadlineExceeded", False, status={"currentRevision": OLD.name}),
            "held",
            "failed: 1 of 4 has it; `herder pool rollout undo web`",
        ),
        (_shown("ProgressDeadlineExceeded", False), "held", "failed: 1 of 4 has it; `herder pool status web` says why"),
        (_shown("ProgressDeadlineExceeded", False), "held", "`kubectl edit vmpool web` mends"),
        (_shown("RolledBack", False), "held", "`herder pool rollout undo web`"),
        (_shown("RolloutPaused", False, updateStrategy={"proactive": {"paused": True}}), "held", "rollout resume web"),
        (_shown("WaitingForRestarts", True, updateStrategy={"unmanaged": {}}), "held", "rollout replace VM"),
        (_shown("WaitingForRestarts", True, updateStrategy={"opportunistic": {}}), "held", "at its next start"),
        (_shown("RolloutLimited", True), "done", "as far as it may go"),
        (_shown("RolloutLimited", True, status={"unavailableReplicas": 1}), "going", "1 not available"),
        (_shown("RollingOut", True, paused=True), "held", "spec.paused of pool web is true"),  # type: ignore[arg-type]
    ],
)
def test_who_waits_for_a_rollout_is_told_when_it_is_over_or_does_not_go_on(
    found: VirtualMachinePool, state: str, sentence: str
) -> None:
    standing = rollout_standing(found)
    assert standing.state == state
    assert sentence in standing.text
    assert standing.percent in (0, 25, 100)


def test_history_lists_who_has_what_and_what_changed_in_short() -> None:
    secret = revision("96Mi" + "x" * 50)
    known = [msgspec.structs.replace(one, number=number) for number, one in ((3, NEW), (1, OLD), (4, secret))]
    members = [member(machine("web-1"), instance("web-1")), member(machine("web-2", revision=NEW.name))]
    rows = history_rows(known, {OLD.name: BY_HAND}, members, NEW.name, OLD.name)
    assert [(row.number, row.machines, row.wanted, row.current) for row in rows] == [
        (1, ("web-1",), False, True),
        (3, ("web-2",), True, False),
        (4, (), False, False),
    ]
    path = "template.spec.template.spec.domain.memory.guest"
    assert [row.changes for row in rows] == [(), (f"{path}: 64Mi → 96Mi",), (f"{path}: 96Mi → …",)]


def test_a_field_that_came_or_went_and_a_longer_list_are_one_change_each() -> None:
    before = msgspec.structs.replace(OLD, template={"spec": {"a": 1, "list": [1]}})
    after = msgspec.structs.replace(OLD, template={"spec": {"b": True, "list": [1, 2]}})
    assert set(changes(before, after)) == {
        "template.spec.a: 1 → nothing",
        "template.spec.b: nothing → true",
        "template.spec.list: [1] → [1,2]",
    }


def test_preserved_volumes_are_those_that_nobody_controls() -> None:
    volumes = [volume("disk-2", "web-2"), volume("data-2", "web-2"), volume("disk-1", "web-1", controller="uid-web-1")]
    kept = kept_volumes(pool(), volumes)
    assert {name: [one.name for one in found] for name, found in kept.items()} == {"web-2": ["disk-2", "data-2"]}
    row = preserved_report(pool(), kept).machines[0]
    assert (row.name, row.volumes, row.ready_revision) == ("web-2", ("disk-2", "data-2"), OLD.name)
    again = msgspec.convert({**written(), "metadata": {"name": "web", "uid": "pool-2"}}, VirtualMachinePool)
    assert kept_volumes(again, volumes) == {}, "a pool that was made again under its name keeps nothing of the one before"
