"""Claims of a StatefulSet: made with its pods, found again, and given to whom they are to go with."""

from __future__ import annotations

from typing import Any

import pytest

from herder.rules.workloads import StatefulSetPlan, plan_stateful_set
from herder.rules.workloads.retention import Member, owners_to_write
from herder.rules.workloads.stateful_pods import claim_document

from .stateful import DATA, Json, claim, member, owner, snapshot, stateful_set
from .things import NOW

SET = owner("StatefulSet", "web", "uid-web")
POD = owner("Pod", "web-0", "uid-web-0")


def policy(scaled: str, deleted: str) -> Json:
    return {"persistentVolumeClaimRetentionPolicy": {"whenScaled": scaled, "whenDeleted": deleted}}


def plan(*pods: Any, replicas: int = 1, claims: tuple[Any, ...] = (), **spec: Any) -> StatefulSetPlan:
    return plan_stateful_set(snapshot(stateful_set(replicas, spec=spec), *pods, claims=claims, templates=(DATA,)), NOW)


def test_a_claim_has_the_labels_of_its_template_and_of_the_selector() -> None:
    document = claim_document(stateful_set(), DATA, 3)
    assert document == {
        "metadata": {"name": "data-web-3", "namespace": "shop", "labels": {"tier": "disk", "app": "web"}},
        "spec": DATA["spec"],
    }
    kept = claim_document(stateful_set(9, spec=policy("Retain", "Delete")), DATA, 3)
    assert kept["metadata"]["ownerReferences"] == [SET]


def test_a_claim_is_made_before_its_pod_and_found_again() -> None:
    assert [one["metadata"]["name"] for one in plan().create[0].claims] == ["data-web-0"]
    found = plan(claims=(claim("data-web-0"),))
    assert ([one.name for one in found.create], found.create[0].claims) == (["web-0"], ())


def test_a_claim_that_a_pending_pod_misses_is_made_anew() -> None:
    pending = member(0, ready=None, phase="Pending")
    assert [(one.pod, one.document["metadata"]["name"]) for one in plan(pending).claims] == [("web-0", "data-web-0")]
    assert plan(pending, claims=(claim("data-web-0"),)).claims == ()
    assert plan(member(0)).claims == ()


def test_no_pod_is_made_for_a_claim_that_goes() -> None:
    going = plan(claims=(claim("data-web-0", deleted=True),))
    assert going.create == ()
    assert going.events[0].message.endswith("failed error: PersistentVolumeClaim data-web-0 is being deleted")
    earlier = owner("Pod", "web-0", "uid-of-an-earlier-one")
    stale = plan(claims=(claim("data-web-0", earlier),), **policy("Delete", "Retain"))
    assert (stale.create, stale.events) == ((), ())
    # In parallel nobody else waits for it.
    others = plan(replicas=2, claims=(claim("data-web-0", earlier),), podManagementPolicy="Parallel", **policy("Delete", "Retain"))
    assert [one.name for one in others.create] == ["web-1"]


OWNERS: list[tuple[str, str, int, list[Json]]] = [
    ("Retain", "Retain", 1, []),
    ("Retain", "Delete", 1, [SET]),
    ("Delete", "Retain", 1, []),
    ("Delete", "Delete", 1, [SET]),
    ("Retain", "Retain", 0, []),
    ("Retain", "Delete", 0, [SET]),
    ("Delete", "Retain", 0, [POD]),
    ("Delete", "Delete", 0, [POD]),
]


@pytest.mark.parametrize(("scaled", "deleted", "replicas", "wanted"), OWNERS)
def test_a_claim_is_given_to_whom_it_is_to_go_with(scaled: str, deleted: str, replicas: int, wanted: list[Json]) -> None:
    """Whatever policy there was before; and a second look has nothing to do."""
    one, pod = stateful_set(replicas, spec=policy(scaled, deleted)), Member("web-0", "uid-web-0")
    friend = owner("Backup", "b", "uid-b", controller=False)
    for before in ([], [SET], [POD], [SET, POD], [{**SET, "controller": False}]):
        found = owners_to_write(one, claim("data-web-0", friend, *before), pod)
        assert found == (None if before == wanted else [friend, *wanted])


def test_a_claim_of_an_earlier_set_or_of_somebody_else_is_left_alone() -> None:
    one, pod = stateful_set(0, spec=policy("Delete", "Delete")), Member("web-0", "uid-web-0")
    for stranger in (owner("StatefulSet", "web", "uid-before"), owner("Pod", "web-0", "uid-before"), owner("Disk", "d", "uid-d")):
        assert owners_to_write(one, claim("data-web-0", stranger), pod) is None
    disk = owner("Disk", "d", "uid-d")
    assert owners_to_write(one, claim("data-web-0", disk, POD), pod) == [disk]


def test_a_claim_is_given_away_before_the_pod_goes_that_it_is_to_go_with() -> None:
    found = plan(member(0), replicas=0, claims=(claim("data-web-0"),), **policy("Delete", "Retain"))
    assert [(one.claim, one.resource_version, one.references) for one in found.owners] == [("data-web-0", "7", [POD])]
    assert [one.name for one in found.delete] == ["web-0"]
