"""Which rights a PodMigrationJob takes of who writes it, and in which words they are told that they lack one."""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api.kinds import PodMigrationJob
from herder.rules.jobs.rights import Right, asks_anew, rights_needed

POD = {"namespace": "shop", "name": "web-0"}
NAMED = {"reservationRef": {"name": "room"}}
Json = dict[str, Any]


def document(**options: Any) -> Json:
    reservation: Json = {"reservationOptions": options} if options else {}
    return {"metadata": {"name": "j"}, "spec": {"podRef": POD, **reservation}}


def job(**options: Any) -> PodMigrationJob:
    return msgspec.convert(document(**options), PodMigrationJob)


def taken(rights: tuple[Right, ...]) -> list[str]:
    return [f"{one.verb} {one.resource} {one.name}".strip() for one in rights]


def test_a_new_job_takes_the_right_to_evict_that_very_pod() -> None:
    (right,) = rights_needed(job(), created=True)
    assert (right.verb, right.resource, right.subresource, right.namespace, right.name) == (
        "create",
        "pods",
        "eviction",
        "shop",
        "web-0",
    )
    assert str(right.refusal('m"al')) == (
        'spec.podRef: Forbidden: user "m\\"al" may not create pods/eviction of web-0 in namespace "shop", and must be let'
        " to have the pod moved: the role pod-migrator has this right"
    )


def test_a_template_takes_the_right_to_create_reservations_and_a_name_the_right_to_change_that_one() -> None:
    evict, create, patch = rights_needed(job(template={}, **NAMED), created=True)
    assert evict.resource == "pods"
    assert str(create.refusal("jane")) == (
        'spec.reservationOptions.template: Forbidden: user "jane" may not create reservations.scheduling.koordinator.sh,'
        " and must be let to have one made that differs from what the pod asks for: leave template out, or ask for the role"
        " herder-admin, which has this right"
    )
    assert str(patch.refusal("jane")) == (
        'spec.reservationOptions.reservationRef: Forbidden: user "jane" may not patch reservations.scheduling.koordinator.sh'
        ' "room", and must be let to have it used up: leave reservationRef out to have one made, or ask for the role'
        " herder-admin, which has this right"
    )
    assert str(patch.unanswered()) == (
        "spec.reservationOptions.reservationRef: Forbidden: the API server did not say in time who may patch"
        ' reservations.scheduling.koordinator.sh "room": must be tried again'
    )


def test_later_only_who_names_a_reservation_is_asked() -> None:
    """Pausing, aborting and reporting take nothing but the right to change jobs, also where the job cannot be read any more."""
    assert asks_anew(document(**NAMED), document())
    assert asks_anew(document(template={}, **NAMED), document(template={}))
    for new, old in (({}, {}), (NAMED, NAMED), ({"template": {}}, {})):
        assert not asks_anew(document(**new), document(**old))
    assert not asks_anew({"spec": 1}, {})
    assert taken(rights_needed(job(template={}, **NAMED), created=False)) == ["patch reservations room"]
