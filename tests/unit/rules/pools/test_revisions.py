"""Revisions of a pool's template: each is kept once, under a name that follows from its content."""

from typing import Any

import pytest

from herder.rules.pools import plan_pool
from herder.rules.pools.revisions import content_of, is_genuine, revision_name, revision_of

from .things import NOW, A, B, C, Json, halted, member, name_of, pool, revision, snapshot, template


def key(wanted: Json, names: Json | None = None) -> str:
    return revision_of("x", content_of(wanted, names or {})).instance_key


def restarted(when: str) -> Json:
    made = template()
    made["spec"]["template"]["metadata"]["annotations"] = {"herder.dev/restarted-at": when}
    return made


SECRET: Json = {"volumes": [{"name": "s", "secret": {"secretName": "s"}}]}


@pytest.mark.parametrize(
    ("before", "after", "restarts"),
    [
        (template(), template(), False),
        (template(), template(labels={"app": "other"}), False),
        (template(), template(evictionStrategy="None"), False),
        (template(), template(run={"running": True}), False),
        (template(disk="http://images/1"), template(disk="http://images/2"), False),
        (template(), template("2Gi"), True),
        (template(), restarted("today"), True),
        (restarted("today"), restarted("later"), True),
    ],
)
def test_only_what_a_running_instance_cannot_get_needs_a_restart(before: Json, after: Json, restarts: bool) -> None:
    assert (key(before) != key(after)) is restarts
    assert (name_of(before) != name_of(after)) is (before != after)


def test_a_flag_needs_a_restart_only_where_it_changes_a_name() -> None:
    on, off = {"appendPostfixToSecretReferences": True}, {"appendPostfixToSecretReferences": False}
    assert key(template(), on) == key(template(), off) == key(template())
    assert key(template(**SECRET), on) != key(template(**SECRET), off) == key(template(**SECRET))


def test_a_claim_that_the_template_owns_from_now_on_has_another_name_and_needs_a_restart() -> None:
    volumes = [{"name": "root", "dataVolume": {"name": "disk"}}]
    before, after = template(volumes=volumes), template(volumes=volumes)
    after["spec"]["dataVolumeTemplates"] = [{"metadata": {"name": "disk"}, "spec": {}}]
    assert key(before) != key(after)


def test_the_same_template_twice_is_one_revision_whatever_the_order_of_its_fields() -> None:
    shuffled = {"spec": dict(reversed(A["spec"].items())), "metadata": A["metadata"]}
    assert name_of(A) == name_of(shuffled) != name_of(B)


def test_a_new_template_is_stored_before_machines_are_made_from_it() -> None:
    plan = plan_pool(snapshot(pool(1, B), wanted=B, revisions=(revision(A, 4),)), NOW)
    assert plan.create_revision is not None
    assert (plan.create_revision["metadata"]["name"], plan.create_revision["revision"]) == (name_of(B), 5)


def test_a_rollback_is_recognised_as_the_old_revision_and_the_newest_again() -> None:
    plan = plan_pool(snapshot(pool(1), member(1, B), revisions=(revision(A, 1), revision(B, 2))), NOW)
    assert plan.create_revision is None
    assert plan.renumber is not None
    assert (plan.renumber[0].name, plan.renumber[1]) == (name_of(A), 3)
    assert plan.status["updateRevision"] == name_of(A)


def test_a_revision_from_before_a_collision_is_recognised() -> None:
    plan = plan_pool(snapshot(pool(1, status={"collisionCount": 1}), member(1), stored=(A,)), NOW)
    assert (plan.create_revision, plan.update, plan.status["updateRevision"]) == (None, (), name_of(A))


@pytest.mark.parametrize("collisions", [1, 8, 9, 30])
def test_after_any_number_of_collisions_a_new_revision_is_known_as_the_one_that_was_made(collisions: int) -> None:
    content = content_of(B, {})
    made = revision_of(revision_name("web", content, collisions), content, number=1)
    assert is_genuine(pool(status={"collisionCount": collisions}), made)
    plan = plan_pool(snapshot(pool(1, B, {"collisionCount": collisions}), wanted=B, revisions=(made,)), NOW)
    assert plan.create_revision is None


def test_another_template_under_the_name_of_one_that_was_judged_is_noticed() -> None:
    assert not is_genuine(pool(), revision_of(name_of(A), content_of(B, {})))


def forgotten(limit: int | None, *members: Any, status: Json | None = None) -> list[str]:
    spec: Json = {} if limit is None else {"revisionHistoryLimit": limit}
    old = tuple(revision(template(f"{number}Mi"), number) for number in range(1, 15))
    plan = plan_pool(snapshot(pool(1, A, status, **spec), *members, revisions=(*old, revision(A, 15))), NOW)
    return [one.name for one in plan.forget]


def test_the_latest_unused_revisions_stay() -> None:
    names = [name_of(template(f"{number}Mi")) for number in range(1, 15)]
    assert forgotten(None, member(1)) == names[:4]
    assert forgotten(0, member(1)) == names
    assert forgotten(0, member(1), halted(2, template("3Mi"))) == [name for name in names if name != names[2]]


def test_a_revision_that_runs_or_was_good_is_never_forgotten() -> None:
    running, before, good = template("1Mi"), template("2Mi"), template("3Mi")
    used = forgotten(0, member(1, on=running, ready_revision=name_of(before)), status={"currentRevision": name_of(good)})
    assert not {name_of(running), name_of(before), name_of(good)} & set(used)


def test_a_template_and_back_within_a_second_restarts_nobody() -> None:
    """A→B→A: the pool sees A again; or it has written B already, and nobody has acted upon it."""
    seen = (revision(A, 1), revision(B, 2), revision(C, 3))
    assert plan_pool(snapshot(pool(2), member(1), member(2), revisions=seen), NOW).update == ()
    asked = {"restarting": True, "restart_request": "vmi-web-1", "ready": False}
    plan = plan_pool(snapshot(pool(2), member(1, B, on=A, **asked), member(2), revisions=seen), NOW)
    assert [(one.name, one.effect) for one in plan.update] == [("web-1", "InPlace")]
    assert "herder.dev/restart-requested" not in plan.update[0].document["metadata"]["annotations"]
