"""Who may take a reservation."""

from __future__ import annotations

from typing import Any

import pytest

from herder.rules.reservations import matches, waiting_keys
from herder.rules.reservations.allocation import took
from herder.rules.reservations.owners import MANY_LABELS, owner_keys, pod_keys, told_owners
from tests.unit.rules.reservations.objects import OWNER, Json, reservation, web

BY_LABEL: Json = {"labelSelector": {"matchLabels": {"app": "web"}}}


@pytest.mark.parametrize(
    ("owner", "fits"),
    [
        (OWNER, True),
        ({"controller": {"kind": "ReplicaSet", "name": "web"}}, True),
        ({"controller": {"kind": "ReplicaSet", "name": "web", "apiVersion": "apps/v1beta1"}}, True),
        ({"controller": {"kind": "ReplicaSet", "name": "web", "apiVersion": "v1"}}, False),
        ({"controller": {"kind": "ReplicaSet", "name": "web", "uid": "another"}}, False),
        ({"controller": {"kind": "ReplicaSet", "name": "web", "namespace": "elsewhere"}}, False),
        ({"controller": {"kind": "StatefulSet", "name": "web"}}, False),
        ({"object": {"name": "web-1"}}, True),
        ({"object": {"kind": "Pod", "namespace": "default", "name": "web-1", "uid": "uid-web-1"}}, True),
        ({"object": {"name": "web-1", "uid": "another"}}, False),
        ({"object": {"kind": "ConfigMap", "name": "web-1"}}, False),
        ({"object": {"namespace": "elsewhere", "name": "web-1"}}, False),
        ({"object": {}}, False),
        (BY_LABEL, True),
        ({"labelSelector": {}}, True),
        ({"labelSelector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}}, False),
        # Fields of an entry are AND.
        ({**OWNER, "object": {"name": "web-1"}}, True),
        ({**OWNER, "object": {"name": "web-2"}}, False),
        ({**OWNER, "labelSelector": {"matchLabels": {"app": "db"}}}, False),
        ({}, False),
    ],
)
def test_all_fields_of_an_entry_must_fit(owner: Json, fits: bool) -> None:
    held = reservation(owners=[owner])
    pod = web(labels={"app": "web"})
    assert matches(held, pod) is fits
    # Whoever it is for finds it under one of its keys.
    index = dict.fromkeys(owner_keys(held))
    assert not fits or set(pod_keys(pod, index)) & set(index)
    assert not fits or set(waiting_keys(pod)) & set(index)


def test_one_entry_that_fits_is_enough() -> None:
    assert matches(reservation(owners=[{"object": {"name": "other"}}, OWNER]), web())


def test_the_namespace_of_the_template_counts_where_an_entry_names_none() -> None:
    assert not matches(reservation(owners=[BY_LABEL], namespace="shop"), web(labels={"app": "web"}))
    assert matches(reservation(owners=[BY_LABEL], namespace=""), web(labels={"app": "web"}))
    assert matches(reservation(owners=[{"object": {"namespace": "default", "name": "web-1"}}], namespace="shop"), web())


def test_a_pod_that_nobody_controls_is_no_pod_of_a_controller() -> None:
    assert not matches(reservation(), web(metadata={"ownerReferences": []}))


def test_an_annotation_counts_only_where_the_reservation_is_for_the_pod() -> None:
    assert took(web(took="r"), reservation())
    assert not took(web(took="r", owner=_stranger()), reservation())
    assert not took(web(took="other"), reservation())
    assert not took(web(took="r"), reservation(metadata={"uid": "made again"}))


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"name": 1, "uid": 2}', '{"name": "r"', "x" * 2000])
def test_an_annotation_that_says_nothing_is_none(text: str) -> None:
    said = {"annotations": {"scheduling.koordinator.sh/reservation-allocated": text}}
    assert not took(web(metadata=said), reservation())


def test_of_a_pod_with_very_many_labels_no_label_is_kept() -> None:
    keys = waiting_keys(web(labels={f"label-{number}": "x" for number in range(65)}))
    assert MANY_LABELS in keys
    assert ("any", "") in keys
    assert len(keys) < 10


def test_people_are_told_for_whom_it_is() -> None:
    held = reservation(owners=[{**OWNER, "object": {"name": "web-1"}}, BY_LABEL])
    assert told_owners(held) == ("pod default/web-1 and ReplicaSet default/web", "pods with app in (web)")


def _stranger() -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs-other", "controller": True}
