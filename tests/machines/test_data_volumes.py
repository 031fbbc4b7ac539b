"""DataVolumes on simulated nodes: claim, volume, content; and all that goes with a machine when it goes."""

from tests.engines.resources import CLAIMS
from tests.machines.herd import DATA_VOLUMES, MACHINES, Herd, Json, machine
from tests.machines.volumes import BLANK, becomes, copied, fetched, make, no_importers, told, volume_is_gone, volume_of


async def make_machine(herd: Herd, content: Json, **simulated: str) -> None:
    """With one disk, from a template."""
    body = machine(volumes={"root": content})
    body["spec"]["dataVolumeTemplates"][0]["metadata"]["annotations"] = told(simulated)
    spec = body["spec"]["template"]["spec"]
    spec["domain"]["devices"] = {"disks": [{"name": "root", "disk": {"bus": "virtio"}}]}
    spec["volumes"] = [{"name": "root", "dataVolume": {"name": "root"}}]
    (await herd.api.create(MACHINES, body, herd.namespace)).ok  # noqa: B018


async def test_a_blank_volume_is_claimed_bound_and_ready(herd: Herd) -> None:
    await make(herd, BLANK)
    ready = await becomes(herd, "Succeeded", progress="100.0%", claimName="disk")
    claim = (await herd.api.get(CLAIMS, "disk", herd.namespace)).ok
    assert claim["status"]["phase"] == "Bound"
    assert claim["spec"]["storageClassName"] == "herder-local"
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert claim["metadata"]["ownerReferences"][0]["uid"] == ready["metadata"]["uid"]
    volume = await volume_of(herd)
    assert volume["spec"]["local"]["path"] == f"/herder/volumes/pvc-{claim['metadata']['uid']}"
    await no_importers(herd)


async def test_a_download_shows_how_far_it_is(herd: Herd) -> None:
    await make(herd, fetched(), import_duration="4s")

    async def on_its_way() -> bool:
        shown = (await herd.api.get(DATA_VOLUMES, "disk", herd.namespace)).ok.get("status", {})
        assert shown.get("phase") == "ImportInProgress", shown
        assert 0 < float(shown["progress"].rstrip("%")) < 100, shown
        return True

    await herd.eventually(on_its_way)
    await becomes(herd, "Succeeded")


async def test_a_failure_that_may_pass_is_tried_again(herd: Herd) -> None:
    await make(herd, fetched(), import_fails="SourceUnreachable", import_fails_times="2", import_duration="100ms")
    await becomes(herd, "Succeeded", restartCount=2)
    assert "failed as told" in await herd.told("DataVolume", "SourceUnreachable", "disk")


async def test_a_mistake_is_final_after_three_attempts(herd: Herd) -> None:
    await make(herd, fetched(), import_fails="SourceNotFound", import_duration="100ms")
    failed = await becomes(herd, "Failed", reason="SourceNotFound", restartCount=2)
    assert "failed as told" in failed["status"]["message"]
    await no_importers(herd)


async def test_a_claim_of_someone_else_is_not_taken_over(herd: Herd) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    foreign = (await herd.api.create(CLAIMS, {"metadata": {"name": "disk"}, "spec": spec}, herd.namespace)).ok
    await make(herd, BLANK)
    await becomes(herd, "Pending", reason="ClaimNotOwned")
    await herd.delete("disk", DATA_VOLUMES)
    await herd.gone(DATA_VOLUMES, "disk")
    assert (await herd.api.get(CLAIMS, "disk", herd.namespace)).ok["metadata"]["uid"] == foreign["metadata"]["uid"]


async def test_a_copy_waits_for_its_source_and_is_as_large(herd: Herd) -> None:
    await make(herd, copied("disk"), "copy")
    await becomes(herd, "Pending", "copy", reason="SourceNotFound")
    await make(herd, BLANK)
    await becomes(herd, "Succeeded", "copy")
    claim = (await herd.api.get(CLAIMS, "copy", herd.namespace)).ok
    assert claim["spec"]["resources"]["requests"]["storage"] == "64Mi"


async def test_a_copy_that_is_smaller_than_its_source_fails(herd: Herd) -> None:
    await make(herd, BLANK)
    await becomes(herd, "Succeeded")
    await make(herd, copied("disk", resources={"requests": {"storage": "1Mi"}}), "copy")
    assert "takes 64Mi" in (await becomes(herd, "Failed", "copy", reason="VolumeTooSmall"))["status"]["message"]


async def test_a_class_that_does_not_exist_is_waited_for(herd: Herd) -> None:
    await make(herd, {**BLANK, "storage": {"storageClassName": "no-such-class", "resources": {"requests": {"storage": "1Mi"}}}})
    waits = await becomes(herd, "Pending", reason="StorageClassNotFound")
    assert "no-such-class" in waits["status"]["message"]


async def test_a_volume_goes_with_its_claim_and_only_then(herd: Herd) -> None:
    await make(herd, BLANK)
    await becomes(herd, "Succeeded")
    name = (await volume_of(herd))["metadata"]["name"]
    await herd.delete("disk", DATA_VOLUMES)
    await herd.gone(CLAIMS, "disk")
    await volume_is_gone(herd, name)


async def test_a_machine_runs_once_its_disk_is_filled_and_takes_it_along_when_it_goes(herd: Herd) -> None:
    await make(herd, BLANK, "other")
    await becomes(herd, "Succeeded", "other")
    await make_machine(herd, fetched())
    await herd.running()
    await becomes(herd, "Succeeded", "root")
    name = (await volume_of(herd, "root"))["metadata"]["name"]
    await herd.delete("vm")
    for resource, one in ((MACHINES, "vm"), (DATA_VOLUMES, "root"), (CLAIMS, "root")):
        await herd.gone(resource, one)
    await volume_is_gone(herd, name)
    assert (await herd.api.get(CLAIMS, "other", herd.namespace)).ok["status"]["phase"] == "Bound"
    await becomes(herd, "Succeeded", "other")


async def test_a_disk_that_cannot_be_filled_shows_on_its_machine(herd: Herd) -> None:
    await make_machine(herd, fetched(), import_fails="SourceForbidden")
    shown = await herd.shows("DataVolumeError", reason="DataVolumeFailed")
    assert shown["status"]["message"].startswith("DataVolume root failed for good: "), shown["status"]
    await herd.patch("vm", {"spec": {"runStrategy": "Halted"}})
    await herd.shows("Stopped", reason="DataVolumeFailed")


async def test_a_guest_that_writes_keeps_its_disk_from_being_copied(herd: Herd) -> None:
    await make_machine(herd, BLANK)
    await herd.running()
    await make(herd, copied("root"), "copy")
    waits = await becomes(herd, "Pending", "copy", reason="SourceInUse")
    assert "virt-launcher-vm" in waits["status"]["message"]
    await herd.patch("vm", {"spec": {"runStrategy": "Halted"}})
    await becomes(herd, "Succeeded", "copy")
