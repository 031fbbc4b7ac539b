"""The reservation that a job makes: what the pod asks for, for who comes after it, anywhere else."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from herder.api.core import Pod
from herder.api.kinds import PodMigrationJob, ReservationView
from herder.api.validation import problems_of
from herder.rules.jobs.reservation import reservation_document
from herder.rules.jobs.template_merge import merged
from herder.rules.placement import needs_of
from herder.rules.reservations import matches, placing_needs
from tests.unit.rules.placement.cluster import Cluster, node, pod

Json = dict[str, Any]
JOB = msgspec.convert(
    {"metadata": {"name": "move", "uid": "job-uid"}, "spec": {"podRef": {"namespace": "default", "name": "p"}}}, PodMigrationJob
)
REPLICA_SET = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "rs", "controller": True}
STATEFUL_SET = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "sts", "controller": True}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def stored(owner: Json = REPLICA_SET, **spec: Any) -> Json:
    metadata = {"ownerReferences": [owner]}
    return pod(
        "p", on=spec.pop("on", "a"), labels={"app": "web"}, metadata=metadata, requests={"cpu": "1", "memory": "1Gi"}, **spec
    )


def made(written: Json, given: Json | None = None) -> Json:
    return reservation_document(JOB, msgspec.convert(written, Pod), written, given, "24h")


def view(document: Json) -> ReservationView:
    return msgspec.convert(document, ReservationView)


def test_it_is_a_valid_reservation_of_the_job_closed_for_one_pod_under_a_name_that_stays() -> None:
    document = made(stored())
    assert problems_of(document) == []
    assert document["metadata"]["name"] == "job-job-uid"
    assert document["metadata"]["ownerReferences"][0]["uid"] == "job-uid"
    assert (document["spec"]["allocateOnce"], document["spec"]["unschedulable"], document["spec"]["ttl"]) == (True, True, "24h")


def test_it_asks_for_what_the_pod_asks_for_and_not_on_its_node() -> None:
    spec: Json = {
        "tolerations": [{"key": "x", "operator": "Exists"}],
        "nodeSelector": {"disk": "ssd"},
        "ports": [{"containerPort": 80, "hostPort": 80}],
        "volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "disk"}}, {"name": "kube-api-access-x", "projected": {}}],
        "priority": 7,
    }
    written = stored(**spec)
    wanted, found = needs_of(msgspec.convert(written, Pod)), placing_needs(view(made(written)))
    for field in ("requests", "tolerations", "node_selector", "ports", "claims", "priority", "labels", "group"):
        assert getattr(found, field) == getattr(wanted, field), field
    cluster = Cluster(node("a", labels={"disk": "ssd"}), node("b", labels={"disk": "ssd"}), node("c"))
    document = made(stored(nodeSelector={"disk": "ssd"}))
    assert cluster.fitting({"metadata": {"name": "r", "namespace": "default"}, "spec": document["spec"]["template"]["spec"]}) == [
        "b"
    ]


def test_each_of_several_terms_leaves_out_the_node_and_an_empty_one_still_fits_none() -> None:
    def terms(*given: Json) -> list[Json]:
        document = made(stored(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(given)}}}))
        return document["spec"]["template"]["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]

    other = {"key": "metadata.name", "operator": "NotIn", "values": ["a"]}
    ssd = {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]}
    assert terms(ssd, named, {}) == [{**ssd, "matchFields": [other]}, {"matchFields": [*named["matchFields"], other]}]
    assert terms({}) == [{}]


def test_who_comes_after_it_may_take_it_and_nobody_else() -> None:
    def taker(owner: Json, name: str) -> Pod:
        return msgspec.convert(pod(name, metadata={"ownerReferences": [owner]}), Pod)

    held = view(made(stored()))
    assert matches(held, taker(REPLICA_SET, "anything"))
    assert not matches(held, taker({**REPLICA_SET, "uid": "another"}, "anything"))
    ordinal = view(made(stored(STATEFUL_SET)))
    assert matches(ordinal, taker(STATEFUL_SET, "p")), "it comes back under its name"
    assert not matches(ordinal, taker(STATEFUL_SET, "another"))
    waiting = view(made(stored(on="")))
    assert matches(waiting, msgspec.convert(stored(on=""), Pod)), "one that waits for its first place takes it itself"
    assert not matches(waiting, taker(REPLICA_SET, "anything"))


def test_nothing_of_it_tells_what_the_pod_runs_or_knows() -> None:
    written = stored()
    written["spec"]["containers"][0] |= {
        "env": [{"name": "PASSWORD", "value": "secret"}],
        "command": ["run", "secret"],
        "args": ["secret"],
    }
    assert "secret" not in str(made(written))


def test_what_the_job_says_wins_but_for_where_the_pod_is_and_for_how_many_it_is() -> None:
    container = {"name": "c", "resources": {"requests": {"cpu": "2"}}}
    spec = {
        "template": {"spec": {"containers": [container], "affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}}},
        "expires": "2026-01-01T00:00:00Z",
        "allocateOnce": False,
        "unschedulable": False,
    }
    document = made(stored(), {"metadata": {"labels": {"team": "x"}, "name": "mine"}, "spec": spec})
    assert document["metadata"]["labels"] == {"team": "x"}
    assert document["metadata"]["name"] == "job-job-uid"
    found = document["spec"]
    assert found["template"]["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "2", "memory": "1Gi"}
    assert ("ttl" in found, found["expires"], found["allocateOnce"], found["unschedulable"]) == (
        False,
        "2026-01-01T00:00:00Z",
        True,
        True,
    )
    assert placing_needs(view(document)).required_nodes is not None
    assert problems_of(document) == []


@pytest.mark.parametrize(
    ("made_of", "given", "wanted"),
    [
        ({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"c": 4}}, {"a": 1, "b": {"c": 4, "d": 3}}),
        ({"a": 1, "b": 2}, {"b": None}, {"a": 1}),
        ({"tolerations": [1, 2]}, {"tolerations": [3]}, {"tolerations": [3]}),
        (
            {"containers": [{"name": "x", "v": 1}, {"name": "y", "v": 2}]},
            {"containers": [{"name": "z", "v": 3}, {"name": "y", "v": 4}]},
            {"containers": [{"name": "x", "v": 1}, {"name": "y", "v": 4}, {"name": "z", "v": 3}]},
        ),
    ],
)
def test_what_is_given_wins_and_lists_with_keys_are_merged_item_by_item(made_of: Json, given: Json, wanted: Json) -> None:
    assert merged(made_of, given) == wanted
