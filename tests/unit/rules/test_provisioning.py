"""Which volume a claim gets, where it is, and how it ends."""

from typing import Any

import msgspec
import pytest

from herder.api import labels
from herder.api.core import PersistentVolumeClaim, Pod, StorageClass
from herder.api.storage import CONTENT_FINALIZER, SELECTED_NODE
from herder.rules.volumes import VolumePlan, plan_claim, plan_volume
from herder.rules.volumes.importer import TOLERATIONS
from tests.unit.rules.machines import NOW, Json, later
from tests.unit.rules.volumes import CLASS, claim, node, volume, volume_view

NODES = [node("n1", "b"), node("n2", "b"), node("n3", "a"), node("n4", "c", cordoned=True), node("n5", "c", schedulable=False)]


def storage_for(one: PersistentVolumeClaim, storage_class: StorageClass = CLASS, nodes: list[Any] = NODES) -> str:
    made = plan_claim(one, storage_class, None, nodes).create_volume
    return made["metadata"]["labels"][labels.STORAGE] if made else ""


def test_a_volume_is_made_for_this_very_claim() -> None:
    made = plan_claim(claim("Pending"), CLASS, None, NODES).create_volume
    assert made is not None
    assert made["metadata"]["name"] == "pvc-claim-disk"
    assert made["metadata"]["finalizers"] == [CONTENT_FINALIZER]
    assert made["spec"]["claimRef"]["uid"] == "claim-disk"
    assert made["spec"]["capacity"] == {"storage": "1Gi"}
    terms = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert terms == [{"matchExpressions": [{"key": labels.STORAGE, "operator": "In", "values": ["b"]}]}]


def test_it_is_where_most_nodes_are_unless_somebody_says_where() -> None:
    assert storage_for(claim("Pending")) == "b"
    assert storage_for(claim("Pending"), nodes=[node("n1", "b"), node("n2", "a")]) == "a"
    assert storage_for(claim("Pending", annotations={SELECTED_NODE: "n3"})) == "a"
    assert storage_for(claim("Pending", annotations={labels.STORAGE: "z"})) == "z"
    named = msgspec.structs.replace(CLASS, parameters={"storage": "y"})
    assert storage_for(claim("Pending", annotations={labels.STORAGE: "z"}), named) == "y"


def test_without_any_storage_it_says_so() -> None:
    found = plan_claim(claim("Pending"), CLASS, None, [])
    assert found.create_volume is None
    assert labels.STORAGE in found.events[0].message


def test_other_claims_are_left_alone() -> None:
    other = msgspec.structs.replace(CLASS, provisioner="example.com/x")
    assert plan_claim(claim("Pending"), other, None, NODES).create_volume is None
    assert plan_claim(claim("Pending"), None, None, NODES).create_volume is None
    assert plan_claim(claim("Bound"), CLASS, None, NODES).create_volume is None
    assert plan_claim(claim("Pending"), CLASS, volume_view(volume()), NODES).create_volume is None


# The end


def clearing(phase: str, ended: float = -60.0) -> Pod:
    state = {"terminated": {"exitCode": 1, "finishedAt": later(ended)}} if phase in ("Succeeded", "Failed") else {}
    status = {"phase": phase, "containerStatuses": [{"name": "importer", "state": state}]}
    return msgspec.convert({"metadata": {"name": "clear-pvc-disk", "uid": "c"}, "spec": {"nodeName": "n1"}, "status": status}, Pod)


def ends(document: Json, pod: Pod | None = None, gone: bool = False) -> VolumePlan:
    return plan_volume(volume_view(document), document, pod, None if gone else node(), NOW)


@pytest.mark.parametrize("phase", ["Bound", "Available", "Pending"])
def test_a_volume_that_may_be_needed_is_not_touched(phase: str) -> None:
    assert ends(volume(phase=phase)) == VolumePlan()
    assert ends(volume(phase="Bound", metadata={"deletionTimestamp": later(0)})) == VolumePlan()


def test_a_released_volume_is_cleared_where_it_is() -> None:
    found = ends(volume(phase="Released"))
    assert found.destroys
    assert found.create_pod is not None
    assert found.create_pod["spec"]["nodeSelector"][labels.STORAGE] == "a"
    assert found.create_pod["metadata"]["namespace"] == "herder-system"


def test_the_object_goes_only_once_the_content_is_gone() -> None:
    assert ends(volume(phase="Released"), clearing("Running")) == VolumePlan()
    done = ends(volume(phase="Released"), clearing("Succeeded"))
    assert (done.delete_volume, done.remove_finalizer) == (True, True)


def test_who_makes_room_may_come_where_the_disk_is_full_and_who_takes_it_may_not() -> None:
    clears = ends(volume(phase="Released")).create_pod
    assert clears is not None
    assert {one["key"] for one in clears["spec"]["tolerations"]} == {"herder.dev/vm-host", "node.kubernetes.io/disk-pressure"}
    assert {one["key"] for one in TOLERATIONS} == {"herder.dev/vm-host"}


def test_clearing_that_failed_is_tried_again_after_a_while() -> None:
    assert ends(volume(phase="Released"), clearing("Failed", -1)).next_look == 4.0
    assert ends(volume(phase="Released"), clearing("Failed")).delete_pod is not None
    lost = ends(volume(phase="Released"), clearing("Running"), gone=True).delete_pod
    assert lost is not None
    assert lost.grace_period_seconds == 0


def test_what_is_retained_keeps_its_content() -> None:
    kept = volume(phase="Released", persistentVolumeReclaimPolicy="Retain")
    assert ends(kept) == VolumePlan()
    kept["metadata"]["deletionTimestamp"] = later(0)
    assert ends(kept) == VolumePlan(remove_finalizer=True)


def test_volumes_of_others_are_not_touched() -> None:
    assert ends(volume(phase="Released", ours=False)) == VolumePlan()
