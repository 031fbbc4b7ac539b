"""Disks: where their volumes are, whether they are bound, and who else uses them."""

from typing import Any

from herder.rules.placement import Event, What
from herder.rules.placement.access import Access
from herder.rules.placement.volumes import Volumes
from tests.unit.rules.placement.cluster import ZONE, Cluster, node, pod, read


def claim(name: str = "disk", volume: str = "v", mode: str = "ReadWriteOnce", **more: Any) -> dict[str, Any]:
    bound = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    metadata = {
        "name": name,
        "namespace": "default",
        "annotations": bound | more.pop("annotations", {}),
        **more.pop("metadata", {}),
    }
    spec = {"accessModes": [mode], "volumeName": volume, **more.pop("spec", {})}
    return {"kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec, **more}


def volume(zone: str = "", labels: dict[str, str] | None = None) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}} if zone else {}
    return {"kind": "PersistentVolume", "metadata": {"name": "v", "labels": labels or {}}, "spec": affinity}


def using(name: str = "disk", **more: Any) -> dict[str, Any]:
    return pod(volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": name}}], **more)


def late(provisioner: str = "example.com/disks", **more: Any) -> dict[str, Any]:
    return {
        "kind": "StorageClass",
        "metadata": {"name": "late"},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
        **more,
    }


def test_a_pod_goes_where_its_volume_can_be_reached() -> None:
    cluster = Cluster(node("a", "z1"), node("b", "z2"), claim(), volume("z2"))
    assert cluster.fitting(using()) == ["b"]
    cluster.add(volume("z3"))
    assert cluster.message(using()) == "0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity."


def test_names_of_nodes_in_a_volume_are_passed_over_as_kube_scheduler_does() -> None:
    named = volume()
    fields = [{"key": "metadata.name", "operator": "In", "values": ["a"]}]
    named["spec"] = {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchFields": fields}]}}}
    assert Cluster(node("a"), node("b"), claim(), named).fitting(using()) == ["a", "b"]


def test_by_the_labels_of_old_volumes_only_nodes_with_zones_are_judged() -> None:
    cluster = Cluster(node("a", "z1"), node("b", "z2"), node("c"), claim(), volume(labels={ZONE: "z1__z9"}))
    assert cluster.fitting(using()) == ["a", "c"]
    assert cluster.message(using(nodeSelector={ZONE: "z2"})).startswith(
        "0/3 nodes are available: 1 node(s) had no available volume zone"
    )


def test_it_waits_for_claims_and_says_which() -> None:
    cluster = Cluster(node("a"))
    assert cluster.message(using()) == '0/1 nodes are available: persistentvolumeclaim "disk" not found.'
    cluster.add(claim(volume=""))
    assert cluster.message(using()) == "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."
    cluster.add(claim())
    assert cluster.message(using()) == '0/1 nodes are available: persistentvolume "v" not found.'
    cluster.add(claim(status={"phase": "Lost"}))
    assert cluster.message(using()) == (
        '0/1 nodes are available: persistentvolumeclaim "disk" bound to non-existent persistentvolume "v".'
    )
    cluster.add(claim(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}))
    assert cluster.message(using()) == '0/1 nodes are available: persistentvolumeclaim "disk" is being deleted.'


def test_a_claim_made_for_the_pod_is_waited_for() -> None:
    own = pod("p", volumes=[{"name": "d", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}])
    assert Cluster(node("a")).message(own) == (
        '0/1 nodes are available: waiting for ephemeral volume controller to create the persistentvolumeclaim "p-d".'
    )


def test_a_volume_that_is_made_for_its_first_pod_holds_nobody_up() -> None:
    unbound = claim(volume="", spec={"storageClassName": "late"})
    cluster = Cluster(node("a", "z1"), node("b", "z2"), unbound, late())
    assert cluster.fitting(using()) == ["a", "b"]
    cluster.add(late(allowedTopologies=[{"matchLabelExpressions": [{"key": ZONE, "values": ["z2"]}]}]))
    assert cluster.fitting(using()) == ["b"]
    cluster.add(late("kubernetes.io/no-provisioner"))
    assert cluster.message(using()) == "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind."


def test_once_a_node_is_chosen_for_the_volume_no_other_will_do() -> None:
    chosen = claim(volume="", spec={"storageClassName": "late"}, annotations={"volume.kubernetes.io/selected-node": "b"})
    assert Cluster(node("a"), node("b"), chosen, late()).fitting(using()) == ["b"]


def test_a_claim_for_one_pod_is_not_shared() -> None:
    cluster = Cluster(node("a"), claim(mode="ReadWriteOncePod"), volume(), using(name="disk", on="a") | {})
    assert cluster.message(using(metadata={"name": "q"})) == (
        "0/1 nodes are available: 1 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode"
        " already in-use by another pod."
    )
    gone = cluster.snapshot.remove_pod(("default", "p"))
    assert gone is not None
    assert cluster.fitting(using()) == ["a"]
    assert Access().unblocked_by(read(using()), Event(What.POD_WENT, "a", pod=gone.needs), cluster.snapshot)


def test_only_its_own_claims_wake_a_pod() -> None:
    cluster, wants = Cluster(), read(using())
    assert Volumes().unblocked_by(wants, Event(What.CLAIM_CHANGED, namespace="default", name="disk"), cluster.snapshot)
    assert not Volumes().unblocked_by(wants, Event(What.CLAIM_CHANGED, namespace="default", name="other"), cluster.snapshot)
    assert not Volumes().unblocked_by(wants, Event(What.CLAIM_CHANGED, namespace="other", name="disk"), cluster.snapshot)
