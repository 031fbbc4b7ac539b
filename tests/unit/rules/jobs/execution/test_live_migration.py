"""A job of a machine's pod: its guest is moved, by a migration of the job's own or by one that is under way already."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from herder.api import labels, reasons
from herder.api.kinds import PodMigrationJob
from herder.api.validation import problems_of
from herder.rules.herder_config import JobsConfig
from herder.rules.jobs.execution.lifecycle import plan_job
from herder.rules.jobs.execution.live_migration import LIVE_MIGRATION
from herder.rules.jobs.execution.plan import JobPlan
from herder.rules.jobs.execution.snapshot import JobSnapshot
from herder.rules.jobs.execution.status import sent_back_status
from herder.rules.jobs.execution.strategy import strategy_name
from herder.rules.plans import Delete
from tests.unit.rules.jobs.execution.guests import (
    OWN,
    TARGET,
    after,
    conditions,
    guest,
    job,
    launcher,
    looked,
    others,
    own,
    reference,
)
from tests.unit.rules.machines import NOW, Json, later
from tests.unit.rules.migrations import UID

MADE = job(migrationRef=reference(uid=UID))
TARGET_POD = launcher(TARGET, "node-2")


def advance(snapshot: JobSnapshot) -> JobPlan:
    return LIVE_MIGRATION.advance(snapshot, NOW)


def ended(plan: JobPlan) -> tuple[str, str]:
    assert plan.status is not None
    assert not plan.disrupts
    return plan.status["phase"], plan.status.get("reason", "")


def failing(phase: str, reason: str, message: str = "so it was") -> Json:
    document = own(phase)
    document["status"] |= {"reason": reason, "message": message}
    return document


# --- a migration of its own ------------------------------------------------------------------------------------------------------


def test_a_running_guest_gets_a_migration_whose_name_is_written_down_before_it_is_made() -> None:
    plan = advance(looked())
    assert (plan.hold, plan.evict, plan.create_reservation) == (True, None, None)
    assert plan.create_migration is not None
    assert problems_of(plan.create_migration) == []
    metadata, spec = plan.create_migration["metadata"], plan.create_migration["spec"]
    assert (metadata["name"], metadata["namespace"], spec) == (OWN, "shop", {"vmiName": "web", "priority": "system-maintenance"})
    assert "ownerReferences" not in metadata, "a job that is deleted would cancel a guest that has left"
    assert plan.status is not None
    assert plan.status["migrationRef"] == reference()
    assert conditions(plan) == {reasons.EVICTION: ("False", reasons.EVICTING)}


def test_what_was_interrupted_is_made_under_the_same_name_and_told_once() -> None:
    first = advance(looked())
    again = advance(looked(after(job(), first)))
    assert again.create_migration == first.create_migration
    assert (again.status, again.events) == (None, ())


@pytest.mark.parametrize(
    ("migration", "target", "reason", "placed"),
    [
        (own(), None, reasons.EVICTING, None),
        (own("Scheduling"), launcher(TARGET, ""), reasons.EVICTING, None),
        (
            failing("Scheduling", reasons.TARGET_UNSCHEDULABLE),
            launcher(TARGET, ""),
            reasons.UNSCHEDULABLE,
            ("False", "Unschedulable"),
        ),
        (own("PreparingTarget"), TARGET_POD, reasons.EVICTING, ("True", "PodScheduled")),
        (own("Running"), TARGET_POD, reasons.EVICTING, ("True", "PodScheduled")),
        (own("Running", handed_over=True), TARGET_POD, reasons.EVICTING, ("True", "PodScheduled")),
    ],
)
def test_it_tells_how_far_the_migration_is(migration: Json, target: Any, reason: str, placed: Any) -> None:
    plan = advance(looked(MADE, migration, siblings=(launcher(), *((target,) if target else ()))))
    assert plan.status is not None
    assert (plan.status["phase"], plan.status["reason"], plan.disrupts) == ("Running", reason, False)
    assert conditions(plan)[reasons.EVICTION] == ("False", reasons.EVICTING)
    assert conditions(plan).get(reasons.POD_SCHEDULED) == placed
    on_a_node = placed == ("True", "PodScheduled")
    assert plan.status.get("nodeName") == ("node-2" if on_a_node else None)
    assert plan.status.get("podRef", {}).get("name") == (TARGET if on_a_node else None)


def test_a_step_that_was_told_is_not_written_or_told_again() -> None:
    snapshot = looked(MADE, own("Running"), siblings=(launcher(), TARGET_POD))
    first = advance(snapshot)
    second = LIVE_MIGRATION.advance(looked(after(MADE, first), own("Running"), siblings=(launcher(), TARGET_POD)), NOW + 60)
    assert second.status == first.status
    assert (len(first.events), second.events) == (1, ())


def test_it_succeeds_when_the_guest_runs_elsewhere_and_its_old_pod_is_gone() -> None:
    moved = guest(pod=TARGET, node="node-2")
    waits = advance(looked(MADE, own("Succeeded"), document=moved, siblings=(launcher(deleted=True), TARGET_POD)))
    assert waits.status is not None
    assert (waits.status["phase"], conditions(waits)[reasons.EVICTION]) == ("Running", ("False", reasons.EVICTING))
    done = advance(looked(MADE, own("Succeeded"), document=moved, pod=None, siblings=(TARGET_POD,)))
    assert done.status is not None
    assert ended(done) == ("Succeed", "")
    assert conditions(done)[reasons.EVICTION] == ("True", reasons.EVICT_COMPLETE)
    assert (done.status["nodeName"], done.status["podRef"]["uid"]) == ("node-2", TARGET_POD.uid)


@pytest.mark.parametrize(
    ("why", "reason"),
    [
        (reasons.COPY_FAILED, reasons.FAILED_EVICT),
        (reasons.COMPLETION_TIMEOUT, reasons.FAILED_EVICT),
        (reasons.CANCELLED, reasons.FAILED_EVICT),
        (reasons.NO_MATCHING_NODE, reasons.FAILED_EVICT),
        (reasons.PENDING_TIMEOUT, reasons.TIMEOUT),
        (reasons.SOURCE_STOPPED, reasons.MISSING_POD),
        (reasons.NOT_LIVE_MIGRATABLE, reasons.FORBIDDEN_MIGRATE_POD),
    ],
)
def test_a_migration_that_fails_fails_its_job_and_says_why(why: str, reason: str) -> None:
    for before in (MADE, job(migrationRef=reference())):
        plan = advance(looked(before, failing("Failed", why)))
        assert ended(plan) == ("Failed", reason)
        assert plan.status is not None
        assert f"{why}: so it was" in plan.status["message"]


def test_a_migration_that_somebody_deleted_is_not_made_again() -> None:
    assert ended(advance(looked(MADE))) == ("Failed", reasons.FAILED_EVICT)
    moved = guest(pod=TARGET, node="node-2")
    assert ended(advance(looked(MADE, document=moved, pod=None, siblings=(TARGET_POD,)))) == ("Succeed", "")


# --- where there is nothing to move ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        ({"document": {}}, "is gone"),
        ({"document": guest(uid="another")}, "is gone"),
        ({"document": guest(deleted=True)}, "has ended, or is told to"),
        ({"document": guest("Succeeded")}, "has ended, or is told to"),
        ({"document": guest(pod=TARGET, node="node-2")}, "has left pod"),
        ({"document": guest(pod=TARGET, node="node-2"), "pod": None}, f"in pod {TARGET} on node node-2"),
        ({"pod": None}, "is gone"),
        ({"pod": launcher(deleted=True)}, "is being deleted"),
    ],
)
def test_without_a_guest_in_its_pod_a_job_ends(seen: dict[str, Any], words: str) -> None:
    plan = advance(looked(**seen))
    assert ended(plan) == ("Failed", reasons.MISSING_POD)
    assert plan.status is not None
    assert words in plan.status["message"]


def test_a_guest_that_cannot_be_moved_is_left_alone() -> None:
    stuck = {"type": "LiveMigratable", "status": "False", "reason": "DisksNotLiveMigratable", "message": "claim a is ReadWriteOnce"}
    plan = advance(looked(document=guest(conditions=[{**stuck, "lastTransitionTime": None}])))
    assert ended(plan) == ("Failed", reasons.FORBIDDEN_MIGRATE_POD)
    assert plan.status is not None
    assert "claim a is ReadWriteOnce" in plan.status["message"]


def test_a_machine_that_has_no_node_yet_is_given_room_like_any_other_pod() -> None:
    def way(on: str) -> str:
        return strategy_name(job(), launcher(on=on), JobsConfig(), machine=True, surges=False)

    assert (way(""), way("node-1")) == ("Placement", "LiveMigration")


@pytest.mark.parametrize("phase", ["Scheduled", "Unknown"])
def test_a_guest_that_does_not_run_is_waited_for(phase: str) -> None:
    plan = advance(looked(document=guest(phase)))
    assert plan.status is not None
    assert (plan.status["phase"], plan.status["reason"], plan.disrupts) == ("Running", reasons.GUEST_NOT_RUNNING, False)


# --- migrations of others --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "theirs",
    [others(), others("Running"), others("Running", handed_over=True), others("Running", handed_over=True, deleted=True)],
    ids=["a user's that waits", "an evacuation that runs", "post-copy", "deleted after the hand-over"],
)
def test_an_unfinished_migration_of_the_machine_is_followed_and_never_deleted(theirs: Json) -> None:
    snapshot = looked(None, theirs)
    plan = advance(snapshot)
    assert plan.status is not None
    assert (plan.disrupts, plan.hold, plan.status["migrationRef"]) == (False, False, reference("users", "u-1"))
    assert [event.reason for event in plan.events if "follows migration shop/users" in event.message] == [reasons.EVICTING]
    assert LIVE_MIGRATION.undo(snapshot) == JobPlan()
    assert LIVE_MIGRATION.committed(snapshot) == bool(theirs.get("status", {}).get("migrationState", {}).get("handedOverTimestamp"))


def test_the_outcome_of_a_followed_migration_is_that_of_the_job() -> None:
    following = job(migrationRef=reference("users", "u-1"))
    failed = others("Failed")
    failed["status"]["reason"] = reasons.CANCELLED
    assert ended(advance(looked(following, failed))) == ("Failed", reasons.FAILED_EVICT)
    moved = guest(pod=TARGET, node="node-2")
    done = advance(looked(following, others("Succeeded"), document=moved, pod=None, siblings=(TARGET_POD,)))
    assert ended(done) == ("Succeed", "")


def test_a_migration_that_was_over_before_anybody_looked_counts_where_it_left_this_pod() -> None:
    moved = guest(pod=TARGET, node="node-2")
    assert ended(advance(looked(None, others("Succeeded"), document=moved, pod=None))) == ("Succeed", "")
    another = others("Succeeded")
    another["status"]["migrationState"]["sourcePod"] = "virt-launcher-web-before"
    assert advance(looked(None, another)).create_migration is not None, "it has brought the guest here, at some time"


def test_a_migration_that_failed_before_is_nobody_elses_business() -> None:
    assert advance(looked(None, others("Failed"))).create_migration is not None


def test_a_migration_that_brings_the_guest_to_this_pod_is_waited_for() -> None:
    coming = others("Running", handed_over=True)
    coming["status"]["migrationState"]["sourcePod"] = "virt-launcher-web-before"
    snapshot = looked(None, coming)
    plan = advance(snapshot)
    assert plan.status is not None
    assert (plan.disrupts, plan.status["reason"]) == (False, reasons.ANOTHER_MIGRATION)
    assert not LIVE_MIGRATION.committed(snapshot)


@pytest.mark.parametrize("going", [others("Running", deleted=True), own("Running", deleted=True), own("Failed", deleted=True)])
def test_one_that_is_being_cancelled_is_waited_for_and_not_followed(going: Json) -> None:
    plan = advance(looked(None, going))
    assert plan.status is not None
    assert (plan.disrupts, plan.status["reason"]) == (False, reasons.ANOTHER_MIGRATION)
    assert "is being cancelled" in plan.status["message"]


def test_two_migrations_made_at_the_same_moment_end_with_one_that_both_follow() -> None:
    """An evacuation and a job, neither of which saw the other."""
    gave_way = failing("Failed", reasons.ANOTHER_MIGRATION)
    plan = advance(looked(MADE, gave_way, others("Running")))
    assert plan.status is not None
    assert (plan.status["phase"], plan.status["migrationRef"]) == ("Running", reference("users", "u-1"))
    assert ended(advance(looked(MADE, gave_way))) == ("Failed", reasons.FAILED_EVICT)


@pytest.mark.parametrize("mine", [own(), failing("Failed", reasons.SOURCE_STOPPED)])
def test_whatever_became_of_its_own_a_job_succeeds_where_another_migration_took_the_guest_away(mine: Json) -> None:
    """On a real cluster two can begin at once; the guest is moved by one of them."""
    on_its_way = advance(looked(MADE, mine, others("Running", handed_over=True)))
    assert on_its_way.status is not None and on_its_way.status["phase"] == "Running"
    moved = guest(pod=TARGET, node="node-2")
    done = advance(looked(MADE, mine, others("Succeeded"), document=moved, pod=None, siblings=(TARGET_POD,)))
    assert ended(done) == ("Succeed", "")
    assert done.delete_migration == (None if "status" in mine else Delete(OWN, UID)), "it would move the guest once more"


def test_a_migration_that_failed_for_its_own_reasons_gives_way_to_none_that_only_waits() -> None:
    assert ended(advance(looked(MADE, failing("Failed", reasons.COPY_FAILED), others()))) == ("Failed", reasons.FAILED_EVICT)


def test_somebody_elses_migration_under_the_jobs_name_is_not_taken_for_its_own() -> None:
    squatter = others("Running", name=OWN)
    assert LIVE_MIGRATION.undo(looked(None, squatter)) == JobPlan()
    over = advance(looked(None, others("Failed", name=OWN)))
    assert over.status is not None
    assert (over.disrupts, over.status["reason"]) == (False, reasons.ANOTHER_MIGRATION)


# --- undoing, and time -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("migration", "cancels", "committed", "keeps_time"),
    [
        (None, False, False, True),
        (own(), True, False, True),
        (own("Scheduling"), True, False, True),
        (own("TargetReady"), True, False, True),
        (own("Running"), True, False, False),
        (own("Running", deleted=True), False, False, False),
        (own("Running", handed_over=True), True, True, False),
        (own("Succeeded"), False, True, False),
        (own("Failed"), False, False, False),
    ],
)
def test_it_can_be_undone_until_the_hand_over_and_its_time_ends_when_the_guest_is_on_its_way(
    migration: Json | None, cancels: bool, committed: bool, keeps_time: bool
) -> None:
    """`cancels` of one that was handed over is never asked: what is committed is not undone."""
    snapshot = looked(MADE, *((migration,) if migration else ()))
    assert LIVE_MIGRATION.undo(snapshot).delete_migration == (Delete(OWN, UID) if cancels else None)
    assert LIVE_MIGRATION.committed(snapshot) == committed
    assert LIVE_MIGRATION.keeps_time(snapshot) == keeps_time
    assert LIVE_MIGRATION.settled(snapshot), "a migration goes on without its job"


def test_the_jobs_time_is_over_only_for_a_guest_that_is_not_on_its_way() -> None:
    late = NOW + 301
    assert ended(plan_job(looked(MADE, own("TargetReady")), late)) == ("Failed", reasons.TIMEOUT)
    assert ended(plan_job(looked(MADE, own("Running")), late)) == ("Running", reasons.EVICTING)


@pytest.mark.parametrize("how", [{"annotations": {labels.ABORT: "true"}}, {"deletionTimestamp": later(0)}])
def test_an_aborted_job_cancels_its_migration_but_for_a_guest_that_was_handed_over(how: Json) -> None:
    aborted = _with_metadata(MADE, finalizers=[labels.JOB_FINALIZER], **how)
    for handed_over in (False, True):
        migration = own("Running", handed_over=handed_over)
        told = plan_job(looked(aborted, migration), NOW)
        assert (ended(told), told.delete_migration) == (("Aborted", reasons.ABORTED), None)
        tidied = plan_job(looked(after(aborted, told), migration), NOW)
        assert tidied.delete_migration == (None if handed_over else Delete(OWN, UID))
        assert tidied.let_go


def test_a_paused_job_cancels_its_migration_and_waits_until_it_is_gone_before_it_begins_anew() -> None:
    paused = msgspec.structs.replace(MADE, spec=msgspec.structs.replace(MADE.spec, paused=True))
    plan = plan_job(looked(paused, own("Running")), NOW)
    assert plan.status is not None
    assert (plan.status["phase"], plan.delete_migration) == ("Pending", Delete(OWN, UID))
    resumed = after(MADE, JobPlan(status={**plan.status, "phase": "Running", "startTime": later(60)}))
    assert not plan_job(looked(resumed, own("Running", deleted=True)), NOW + 60).disrupts
    assert plan_job(looked(resumed), NOW + 60).create_migration is not None


def _with_metadata(before: PodMigrationJob, **more: Any) -> PodMigrationJob:
    metadata = msgspec.convert({**msgspec.to_builtins(before.metadata), **more}, type(before.metadata))
    return msgspec.structs.replace(before, metadata=metadata)


def test_a_job_that_is_sent_back_forgets_the_migration_that_was_undone() -> None:
    before = job(migrationRef=reference(uid=UID), nodeName="node-2", podRef={"name": TARGET})
    status = sent_back_status(before, reasons.PAUSED, "spec.paused is true", NOW + 30)
    assert not {"migrationRef", "nodeName", "podRef", "conditions"} & set(status)
    resumed = after(before, JobPlan(status={**status, "phase": "Running", "startTime": later(60)}))
    assert advance(looked(resumed)).create_migration is not None
