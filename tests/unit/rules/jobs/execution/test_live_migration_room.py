"""A job that moves a guest to room that is reserved for it: only where it asks for that."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from herder.api import labels, reasons
from herder.api.core import Pod
from herder.api.kinds import ReservationView
from herder.api.kinds.migration_state import PolicySettings
from herder.api.validation import problems_of
from herder.rules.jobs.execution.live_migration import LIVE_MIGRATION
from herder.rules.jobs.execution.plan import JobPlan
from herder.rules.migration import MigrationSnapshot
from herder.rules.migration.target_pod import target_pod
from herder.rules.placement import RULES
from herder.rules.placement.needs import needs_of
from herder.rules.plans import Delete
from herder.rules.reservations import Candidate, held_key, matches, place_reservation, placing_needs, take_reservation
from tests.unit.rules.jobs.execution.guests import (
    HOST,
    TARGET,
    conditions,
    guest,
    job,
    launcher,
    looked,
    others,
    own,
    reference,
    reservation,
)
from tests.unit.rules.machines import NOW, Json, instance_view
from tests.unit.rules.migrations import UID, view
from tests.unit.rules.placement.cluster import Cluster, node

TEMPLATE: Json = {"template": {"spec": {"ttl": "1h"}}}
REFERRED: Json = {**TEMPLATE, "reservationRef": {"name": "job-job-uid"}}
MADE = {"migrationRef": reference(uid=UID)}


def made() -> Json:
    plan = LIVE_MIGRATION.advance(looked(job(TEMPLATE)), NOW)
    assert plan.create_reservation is not None
    assert (plan.refer, plan.hold, plan.disrupts) == ("job-job-uid", True, False)
    return plan.create_reservation


def held(on: str = "node-2", **more: Any) -> ReservationView:
    return reservation(made(), phase="Available", nodeName=on, **more)


def advance(options: Json, *migrations: Json, status: Json | None = None, **seen: Any) -> JobPlan:
    return LIVE_MIGRATION.advance(looked(job(options, **(status or {})), *migrations, **seen), NOW)


def test_room_is_reserved_for_the_target_of_the_guest_and_is_closed_at_first() -> None:
    document = made()
    assert problems_of(document) == []
    assert document["spec"]["unschedulable"] is True
    target = launcher(TARGET, "")
    assert matches(reservation(document), target)
    assert not matches(
        reservation(document),
        msgspec.structs.replace(target, metadata=msgspec.structs.replace(target.metadata, owner_references=())),
    )


def test_room_is_only_where_the_guest_could_go_on() -> None:
    """Of the pod that the guest is in only its instance counts: it may have been the target of a migration to one certain node."""
    cluster = Cluster(
        node("node-1", labels=HOST), node("node-2", labels=HOST), node("other-kind", labels={**HOST, labels.RUNTIME: "qemu"})
    )
    needs = placing_needs(reservation(made()))
    decision = place_reservation(needs, cluster.snapshot, RULES)
    assert decision.node == "node-2"
    assert [name for name, row in cluster.snapshot.nodes.rows.items() if decision.fitting[row]] == ["node-2"]


def test_nothing_is_moved_before_the_room_has_a_node() -> None:
    plan = advance(REFERRED, reservation=reservation(made(), phase="Pending"))
    assert (plan.disrupts, plan.open_reservation) == (False, False)
    assert conditions(plan)[reasons.RESERVATION_SCHEDULED] == ("False", reasons.UNSCHEDULABLE)


def test_room_that_is_there_is_opened_and_the_guest_goes_to_its_node_and_no_other() -> None:
    plan = advance(REFERRED, reservation=held())
    assert plan.open_reservation
    assert plan.create_migration is not None
    assert problems_of(plan.create_migration) == []
    term = plan.create_migration["spec"]["addedNodeSelectorTerm"]
    assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-2"]}]}
    assert conditions(plan)[reasons.RESERVATION_SCHEDULED] == ("True", reasons.RESERVATION_SCHEDULED)


def test_the_scheduler_gives_the_room_to_the_target_although_another_node_is_emptier() -> None:
    plan, room = advance(REFERRED, reservation=held()), held()
    assert plan.create_migration is not None
    cluster = Cluster(*(node(name, labels=HOST, cpu=cpu) for name, cpu in (("node-1", "4"), ("node-2", "1"), ("node-3", "64"))))
    cluster.snapshot.put_pod(
        msgspec.structs.replace(placing_needs(room), namespace="", name=held_key(room.name)[1], claims=()), "node-2"
    )
    needs = needs_of(_target_of(plan.create_migration))
    taken = take_reservation(needs, [Candidate(room)], cluster.snapshot, RULES)
    assert taken is not None
    assert (taken.reservation.name, taken.node, taken.waits_for) == (room.name, "node-2", ())


def test_where_its_room_is_lost_the_target_goes_nowhere_else() -> None:
    plan = advance(REFERRED, reservation=held())
    assert plan.create_migration is not None
    cluster = Cluster(node("node-2", labels=HOST, cpu="0"), node("node-3", labels=HOST))
    target = {**msgspec.to_builtins(_target_of(plan.create_migration))}
    assert cluster.fitting(target) == []


def test_a_target_that_took_the_room_shows_it() -> None:
    target = launcher(TARGET, "node-2")
    taken = {"siblings": (launcher(), target), "takers": (target,)}
    waits = advance(REFERRED, own("Scheduling"), status=MADE, reservation=held(), siblings=(launcher(), launcher(TARGET, "")))
    assert conditions(waits)[reasons.POD_BOUND_RESERVATION] == ("False", reasons.WAIT_FOR_POD_BIND_RESERVATION)
    assert waits.delete_reservation is None
    plan = advance(REFERRED, own("Running"), status=MADE, reservation=held(), **taken)
    assert conditions(plan)[reasons.POD_BOUND_RESERVATION] == ("True", reasons.POD_BOUND_RESERVATION)
    assert plan.delete_reservation is None
    moved = {"document": guest(pod=TARGET, node="node-2"), "pod": None, **taken}
    unsaid = advance(REFERRED, own("Succeeded"), status=MADE, reservation=held(), **moved)
    assert unsaid.status is not None and unsaid.status["phase"] == "Running"
    owners = [{"uid": target.uid, "name": target.name, "namespace": "shop"}]
    done = advance(REFERRED, own("Succeeded"), status=MADE, reservation=held(currentOwners=owners), **moved)
    assert done.status is not None and done.status["phase"] == "Succeed"
    assert conditions(done)[reasons.RESERVATION_BOUND] == ("True", reasons.RESERVATION_BOUND)


@pytest.mark.parametrize(
    ("migration", "target"), [(others("Scheduling"), launcher(TARGET, "")), (own("Running"), launcher(TARGET, "node-3"))]
)
def test_room_that_no_target_will_take_is_given_back(migration: Json, target: Pod) -> None:
    """Somebody else's migration was faster; or the room was lost."""
    plan = advance(REFERRED, migration, reservation=held(), siblings=(launcher(), target))
    assert plan.delete_reservation == Delete("job-job-uid", "r-1")


def test_undoing_gives_back_both() -> None:
    undo = LIVE_MIGRATION.undo(looked(job(REFERRED), own("Scheduling"), reservation=held()))
    assert (undo.delete_migration, undo.delete_reservation) == (Delete("job-job-uid", UID), Delete("job-job-uid", "r-1"))


def test_a_given_reservation_is_used_as_it_is_and_never_deleted() -> None:
    given = made()
    given["metadata"] = {"name": "mine"}
    given["spec"] = {**given["spec"], "unschedulable": False}
    options: Json = {"reservationRef": {"name": "mine"}}
    room = reservation(given, phase="Available", nodeName="node-2")
    plan = advance(options, reservation=room)
    assert (plan.open_reservation, plan.create_migration is not None) == (False, True)
    assert LIVE_MIGRATION.undo(looked(job(options), reservation=room)) == JobPlan()
    here = advance(options, reservation=reservation(given, phase="Available", nodeName="node-1"))
    assert here.status is not None
    assert (here.status["phase"], here.status["reason"]) == ("Failed", reasons.FORBIDDEN_MIGRATE_POD)


def _target_of(document: Json) -> Pod:
    """The pod that the migration's controller makes for it."""
    begun = own("Scheduling")
    begun["spec"] = document["spec"]
    whole = guest()
    migration = view(begun)
    assert migration.status is not None
    status = msgspec.structs.replace(migration.status, effective_settings=PolicySettings())
    seen = MigrationSnapshot(msgspec.structs.replace(migration, status=status), instance_view(whole), whole, (launcher(),), {})
    return msgspec.convert(target_pod(seen), Pod)
