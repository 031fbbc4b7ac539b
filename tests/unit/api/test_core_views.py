"""Views of core kinds: what a scheduler or an agent reads of an object."""

from __future__ import annotations

import msgspec
import pytest

from herder.api.core import CORE_KINDS, Node, Object, Pod, Role, Secret

POD = b"""{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"shop","uid":"u1","labels":{"app":"web"}},
"spec":{"containers":[{"name":"main","image":"web:1","resources":{"requests":{"cpu":"500m","memory":1024}}}],
"tolerations":[{"operator":"Exists"}],"nodeName":"n1","somethingNew":{"a":1},
"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":
[{"key":"zone","operator":"In","values":["a"]}]}]}}},"volumes":[{"name":"disk","persistentVolumeClaim":{"claimName":"c1"}}]},
"status":{"phase":"Running","podIP":"10.0.0.1","conditions":[{"type":"Ready","status":"True","lastProbeTime":null}],
"containerStatuses":[{"name":"main","ready":true,"state":{"running":{"startedAt":"2026-01-02T03:04:05Z"}}}]}}"""


def test_a_pod_is_read_with_what_placement_needs() -> None:
    pod = msgspec.json.decode(POD, type=Pod)
    assert (pod.name, pod.namespace, pod.labels, pod.spec.node_name) == ("web", "shop", {"app": "web"}, "n1")
    assert pod.spec.containers and pod.spec.containers[0].resources.requests == {"cpu": "500m", "memory": 1024}
    assert pod.spec.affinity and pod.spec.affinity.node_affinity and pod.spec.affinity.node_affinity.required
    assert pod.spec.volumes[0].persistent_volume_claim and pod.spec.volumes[0].persistent_volume_claim.claim_name == "c1"
    assert pod.status.pod_ip == "10.0.0.1"
    assert pod.status.container_statuses[0].state.running is not None
    assert not pod.being_deleted


def test_unknown_fields_are_ignored_and_views_cannot_be_changed() -> None:
    node = msgspec.json.decode(b'{"metadata":{"name":"n1"},"spec":{"podCIDR":"10.0.0.0/24","future":1}}', type=Node)
    assert node.spec.pod_cidr == "10.0.0.0/24"
    with pytest.raises(AttributeError):
        node.spec = node.spec  # pyright: ignore[reportAttributeAccessIssue]


def test_secret_data_is_read_as_bytes() -> None:
    assert msgspec.json.decode(b'{"data":{"k":"aGk="}}', type=Secret).data == {"k": b"hi"}


def test_a_role_without_rules_may_say_null() -> None:
    assert not msgspec.json.decode(b'{"rules":null}', type=Role).rules


@pytest.mark.parametrize("kind", CORE_KINDS.values(), ids=lambda kind: kind.__name__)
def test_every_kind_can_be_read_from_the_least_there_is(kind: type[Object]) -> None:
    assert msgspec.json.decode(b'{"metadata":{"name":"x"}}', type=kind).name == "x"
