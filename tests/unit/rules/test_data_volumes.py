"""What is done about a DataVolume, and what it shows."""

import msgspec
import pytest

from herder.api import labels
from herder.api.core import PersistentVolumeClaim, StorageClass
from herder.api.imports import ImportDefinition
from herder.api.storage import ALLOW_CLONE
from herder.rules.volumes import DataVolumePlan, Source
from tests.unit.rules.machines import NOW, Json, later
from tests.unit.rules.volumes import CLASS, SIZED, UID, bound, claim, data_volume, importer, plan, volume, volume_view

COPY: Json = {"pvc": {"name": "golden"}}
SOURCE = Source("shop", "golden", claim(name="golden", owner=""), volume_view(volume("golden")))


def growing(*conditions: str) -> PersistentVolumeClaim:
    made = msgspec.to_builtins(claim(name="golden", owner=""))
    made["status"]["conditions"] = [{"type": kind, "status": "True"} for kind in conditions]
    return msgspec.convert(made, PersistentVolumeClaim)


def shown(found: DataVolumePlan) -> tuple[str, str]:
    assert found.status is not None
    return found.status["phase"], found.status.get("reason", "")


def other_class(name: str = "other", default: bool = False) -> StorageClass:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
    return msgspec.convert({"metadata": {"name": name, "annotations": annotations}, "provisioner": "example.com/x"}, StorageClass)


def failed_before(restarts: int, seconds_ago: float, reason: str = "SourceUnreachable") -> Json:
    condition = {"type": "Running", "status": "False", "lastTransitionTime": later(-seconds_ago)}
    return {"phase": "ImportScheduled", "restartCount": restarts, "reason": reason, "message": "why", "conditions": [condition]}


def test_the_claim_comes_first_and_suits_the_class() -> None:
    found = plan(data_volume())
    assert shown(found) == ("Pending", "ClaimPending")
    assert found.create_claim is not None
    assert found.create_claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert found.create_claim["spec"]["storageClassName"] == labels.STORAGE_CLASS
    assert found.create_claim["metadata"]["ownerReferences"][0]["uid"] == UID
    assert found.create_pod is None


def test_a_claim_that_is_spelled_out_is_made_as_it_is_written() -> None:
    found = plan(data_volume(pvc={**SIZED, "accessModes": ["ReadWriteOnce"], "storageClassName": labels.STORAGE_CLASS}))
    assert found.create_claim is not None
    assert found.create_claim["spec"]["accessModes"] == ["ReadWriteOnce"]


def test_the_storage_form_passes_by_a_default_class_that_cannot_be_filled() -> None:
    found = plan(data_volume(), classes=(other_class(default=True), CLASS))
    assert found.create_claim is not None
    assert found.create_claim["spec"]["storageClassName"] == labels.STORAGE_CLASS


def test_a_named_class_that_cannot_be_filled_is_an_error() -> None:
    found = plan(data_volume(storage={**SIZED, "storageClassName": "other"}), classes=(other_class(), CLASS))
    assert shown(found) == ("Failed", "StorageClassNotSupported")
    assert found.status is not None
    assert "example.com/x" in found.status["message"]
    assert found.create_claim is None


def test_an_archive_is_refused_by_name() -> None:
    found = plan(data_volume(contentType="archive"))
    assert shown(found) == ("Failed", "Unsupported")
    assert found.create_claim is None


def test_without_any_class_it_waits() -> None:
    assert shown(plan(data_volume(), classes=())) == ("Pending", "StorageClassNotFound")


@pytest.mark.parametrize("owner", ["", "someone"])
def test_a_claim_of_someone_else_is_never_taken_over(owner: str) -> None:
    found = plan(data_volume(), claim=claim(owner=owner), volume=volume_view(volume()))
    assert shown(found) == ("Pending", "ClaimNotOwned")
    assert (found.create_claim, found.create_pod) == (None, None)


def test_nothing_is_imported_before_the_claim_is_bound() -> None:
    found = plan(data_volume(), claim=claim("Pending"))
    assert (shown(found), found.create_pod) == (("Pending", "ClaimPending"), None)


def test_once_bound_a_pod_fills_it() -> None:
    found = bound(data_volume())
    assert shown(found)[0] == "ImportScheduled"
    assert found.create_pod is not None
    assert found.create_pod["metadata"]["name"] == "importer-dddddddd-0"
    told = msgspec.json.decode(found.create_pod["metadata"]["annotations"][labels.IMPORT], type=ImportDefinition)
    assert (told.action, told.volume, told.capacity) == ("http", "pvc-disk", 1024**3)
    assert found.create_pod["spec"]["volumes"] == [{"name": "target", "persistentVolumeClaim": {"claimName": "disk"}}]


def test_a_pod_at_work_shows_its_progress() -> None:
    found = bound(data_volume(), pods=(importer(done=45, total=100),))
    assert shown(found)[0] == "ImportInProgress"
    assert found.status is not None
    assert found.status["progress"] == "45.0%"


def test_success_clears_the_pod_away() -> None:
    found = bound(data_volume(), pods=(importer(phase="Succeeded"),))
    assert shown(found)[0] == "Succeeded"
    assert [one.name for one in found.delete_pods] == ["importer-dddddddd-0"]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_what_is_finished_stays_so(phase: str) -> None:
    found = plan(data_volume({"phase": phase}))
    assert found == DataVolumePlan()


def test_a_failure_is_counted_before_its_pod_goes() -> None:
    found = bound(data_volume(), pods=(importer(phase="Failed", reason="SourceUnreachable", message="why"),))
    assert shown(found) == ("ImportScheduled", "SourceUnreachable")
    assert found.status is not None
    assert found.status["restartCount"] == 1
    assert found.delete_pods
    assert found.create_pod is None
    assert found.next_look == 1.0


def test_a_pod_of_an_attempt_that_is_counted_is_only_cleared_away() -> None:
    found = bound(data_volume(failed_before(1, 0.2)), pods=(importer(0, "Failed", reason="SourceUnreachable"),))
    assert found.status is not None
    assert found.status["restartCount"] == 1
    assert [one.name for one in found.delete_pods] == ["importer-dddddddd-0"]


def test_the_next_attempt_waits_ever_longer() -> None:
    early = bound(data_volume(failed_before(3, 3)))
    assert (early.create_pod, early.next_look) == (None, 1.0)
    assert shown(early) == ("ImportScheduled", "SourceUnreachable")
    late = bound(data_volume(failed_before(3, 5)))
    assert late.create_pod is not None
    assert late.create_pod["metadata"]["name"] == "importer-dddddddd-3"
    assert bound(data_volume(failed_before(60, 299))).create_pod is None
    assert bound(data_volume(failed_before(60, 301))).create_pod is not None


@pytest.mark.parametrize(
    "reason,restarts,final",
    [
        ("SourceForbidden", 0, True),
        ("VolumeTooSmall", 0, True),
        ("SourceNotFound", 1, False),
        ("SourceNotFound", 2, True),
        ("ChecksumMismatch", 2, True),
        ("SourceUnreachable", 50, False),
    ],
)
def test_which_failures_are_final(reason: str, restarts: int, final: bool) -> None:
    document = data_volume({"phase": "ImportInProgress", "restartCount": restarts})
    found = bound(document, pods=(importer(restarts, "Failed", reason=reason, message="why"),))
    assert (shown(found)[0] == "Failed") is final
    assert found.events[0].reason == reason


def test_a_pod_on_a_node_that_is_gone_is_removed_by_force_and_tried_elsewhere() -> None:
    found = bound(data_volume(), pods=(importer(deleted=True),), nodes={})
    assert shown(found) == ("ImportScheduled", "NodeLost")
    assert found.delete_pods[0].grace_period_seconds == 0


def test_a_pod_that_was_taken_away_is_made_again_under_its_name() -> None:
    found = bound(data_volume({"phase": "ImportInProgress", "restartCount": 0}))
    assert found.create_pod is not None
    assert found.create_pod["metadata"]["name"] == "importer-dddddddd-0"


def test_a_lost_claim_is_the_end() -> None:
    assert shown(plan(data_volume(), claim=claim("Lost"))) == ("Failed", "ClaimLost")


def test_nothing_is_done_for_one_that_is_being_deleted() -> None:
    assert plan(data_volume(deleted=True)) == DataVolumePlan()


# Copies


def test_a_copy_is_as_large_as_its_source_and_where_it_is() -> None:
    found = plan(data_volume(source=COPY, storage={}), source=SOURCE)
    assert found.create_claim is not None
    assert found.create_claim["spec"]["resources"]["requests"]["storage"] == "1Gi"
    assert found.create_claim["metadata"]["annotations"] == {labels.STORAGE: "a"}


def test_a_copy_mounts_its_source_so_that_it_stays() -> None:
    found = bound(data_volume(source=COPY), source=SOURCE)
    assert found.create_pod is not None
    claims = [one["persistentVolumeClaim"]["claimName"] for one in found.create_pod["spec"]["volumes"]]
    assert claims == ["disk", "golden"]
    assert shown(found)[0] == "CloneScheduled"


@pytest.mark.parametrize(
    "source,expected",
    [
        (Source("shop", "golden"), "SourceNotFound"),
        (Source("shop", "golden", claim("Pending", name="golden")), "SourceNotBound"),
        (msgspec.structs.replace(SOURCE, used_by="virt-launcher-x"), "SourceInUse"),
        (msgspec.structs.replace(SOURCE, claim=growing("Resizing")), "SourceInUse"),
        (Source("bank", "golden"), "SourceForbidden"),
        (msgspec.structs.replace(SOURCE, namespace="bank"), "SourceForbidden"),
    ],
)
def test_a_copy_waits_and_says_for_what(source: Source, expected: str) -> None:
    waits = plan(data_volume(source=COPY, storage={}), source=source)
    assert (shown(waits), waits.create_claim) == (("Pending", expected), None)
    later_on = bound(data_volume(source=COPY), source=source)
    assert (shown(later_on), later_on.create_pod) == (("PVCBound", expected), None)


@pytest.mark.parametrize("written,allowed", [("shop", True), ("a, shop", True), ("*", True), ("shopping", False), ("", False)])
def test_another_namespace_may_be_copied_from_only_if_the_claim_says_so(written: str, allowed: bool) -> None:
    given = claim(name="golden", owner="", namespace="bank", annotations={ALLOW_CLONE: written})
    source = Source("bank", "golden", given, volume_view(volume("golden")))
    assert (bound(data_volume(source=COPY), source=source).create_pod is not None) is allowed


def test_a_copy_that_is_too_small_or_elsewhere_fails() -> None:
    large = msgspec.structs.replace(SOURCE, volume=volume_view(volume("golden", size="2Gi")))
    assert shown(plan(data_volume(source=COPY), source=large)) == ("Failed", "VolumeTooSmall")
    elsewhere = msgspec.structs.replace(SOURCE, volume=volume_view(volume("golden", storage="b")))
    assert shown(bound(data_volume(source=COPY), source=elsewhere)) == ("Failed", "CloneFailed")


def test_the_same_status_is_told_once() -> None:
    first = plan(data_volume(), classes=())
    assert first.events
    assert first.status is not None
    again = plan(data_volume(first.status), NOW + 5, classes=())
    assert again.events == ()
    assert again.status == first.status


def test_a_copy_does_not_wait_for_a_source_that_cannot_grow() -> None:
    stuck = msgspec.structs.replace(SOURCE, claim=growing("Resizing", "ControllerResizeError"))
    assert bound(data_volume(source=COPY), source=stuck).create_pod is not None
