"""What is decided about machines that are suspended: what is saved and when, who may go on from it, and what is thrown away."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from herder.api import labels
from herder.api.core import Node, PersistentVolumeClaim, Pod
from herder.api.guest import SavedGuest, Started
from herder.api.kinds import VirtualMachine, VirtualMachineInstance
from herder.api.kinds.instance import StartedCPU
from herder.api.memory import SavedMemory
from herder.rules.machines.children import instance_of
from herder.rules.machines.wanted import wanted
from herder.rules.plans import moment
from herder.rules.suspension.claim import claim_document, record_text, saver_pod, size_for
from herder.rules.suspension.memory import Memory, memory_in, resumed_by, why_unfit, why_unusable
from herder.rules.suspension.plan import SuspensionPlan, SuspensionSnapshot, plan_suspension
from herder.rules.suspension.savable import why_changed, why_never, why_not_there

NOW = 1_750_000_000.0
Json = dict[str, Any]
SAVED = SavedGuest(
    started=Started(runtime="simulated", cpu=StartedCPU(model="Haswell", vendor="Intel")), bytes=64 << 20, content="{}"
)


def machine(suspended: bool | None = True, *, strategy: str = "Always", last: str | None = None, **metadata: Any) -> VirtualMachine:
    spec: Json = {"runStrategy": strategy, "template": {"spec": {"domain": {}}}}
    if suspended is not None:
        spec["suspended"] = suspended
    status = {"lastInstanceUID": last} if last else {}
    whole = {"metadata": {"name": "web", "namespace": "shop", "uid": "vm-1", **metadata}, "spec": spec, "status": status}
    return msgspec.convert(whole, VirtualMachine)


def instance(
    phase: str = "Running", reason: str = "", *, volumes: list[Json] | None = None, annotations: dict[str, str] | None = None
) -> VirtualMachineInstance:
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "web", "uid": "vm-1", "controller": True}
    noted = {labels.TEMPLATE_HASH: "hash-1", **(annotations or {})}
    metadata = {"name": "web", "namespace": "shop", "uid": "vmi-1", "annotations": noted, "ownerReferences": [owner]}
    status = {"phase": phase, **({"reason": reason} if reason else {})}
    spec = {"domain": {"memory": {"guest": "256Mi"}}, "volumes": volumes or []}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, VirtualMachineInstance)


def launcher(state: str = "Running", uid: str = "pod-1", **report: Any) -> Pod:
    told = {"type": labels.GUEST_CONDITION, "status": "True", "message": msgspec.json.encode({"state": state, **report}).decode()}
    spec = {"nodeName": "a", "containers": [{"name": "c"}]}
    whole = {"metadata": {"name": "launcher", "namespace": "shop", "uid": uid}, "spec": spec, "status": {"conditions": [told]}}
    return msgspec.convert(whole, Pod)


def saver(phase: str = "Running", attempt: int = 0, saved: SavedGuest | None = None, **report: Any) -> Pod:
    told = {**report, **({"saved": msgspec.to_builtins(saved)} if saved is not None else {})}
    condition = {"type": labels.IMPORT_CONDITION, "status": "False", "message": msgspec.json.encode(told).decode()}
    metadata = {"name": f"save-{attempt}", "namespace": "shop", "uid": f"saver-{attempt}"}
    metadata |= {"labels": {labels.IMPORT_ATTEMPT: str(attempt)}, "annotations": {labels.IMPORT: "{}"}}
    return msgspec.convert({"metadata": metadata, "spec": {}, "status": {"phase": phase, "conditions": [condition]}}, Pod)


def record(state: str = "Saving", **more: Any) -> SavedMemory:
    saved = SAVED if state != "Saving" else None
    known: Json = {"machine": "vm-1", "instance": "vmi-1", "pod": "pod-1", "revision": "hash-1", "saved": saved, **more}
    return SavedMemory(state=state, **known)  # pyright: ignore[reportArgumentType]


def claim(
    held: SavedMemory | None, *, owner: str = "vm-1", bound: bool = True, deleted: bool = False, size: str = "356Mi"
) -> PersistentVolumeClaim:
    reference = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "web", "uid": owner, "controller": True}
    metadata: Json = {"name": "web-memory", "namespace": "shop", "uid": "claim-1", "ownerReferences": [reference]}
    metadata["annotations"] = {labels.MEMORY: record_text(held)} if held is not None else {}
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec = {"volumeName": "pvc-1" if bound else "", "resources": {"requests": {"storage": size}}}
    return msgspec.convert(
        {"metadata": metadata, "spec": spec, "status": {"phase": "Bound" if bound else "Pending"}}, PersistentVolumeClaim
    )


def node(can: str = "true", **more: str) -> Node:
    return msgspec.convert({"metadata": {"name": "a", "labels": {labels.SAVE_MEMORY: can, labels.STORAGE: "local", **more}}}, Node)


def plan(of: VirtualMachine | None = None, **about: Any) -> SuspensionPlan:
    known: Json = {"node": node(), "storage_class": "herder-local", **about}
    document = {"metadata": {"name": "web", "namespace": "shop", "uid": "vm-1"}}
    return plan_suspension(SuspensionSnapshot(machine=of or machine(), document=document, template_hash="hash-1", **known), NOW)


def told(found: SuspensionPlan) -> tuple[str, str]:
    assert found.condition is not None
    return found.condition["status"], found.condition["reason"]


def test_first_the_claim_then_the_pod_that_saves() -> None:
    first = plan(instance=instance(), launcher=launcher())
    assert first.create_claim is not None and first.create_saver is None
    assert first.create_claim["metadata"]["annotations"][labels.STORAGE] == "local"
    waits = plan(instance=instance(), launcher=launcher(), claim=claim(record(), bound=False))
    assert waits.create_saver is None and told(waits) == ("False", "SavingMemory")
    second = plan(instance=instance(), launcher=launcher(), claim=claim(record()))
    assert second.create_saver is not None and second.create_saver["spec"]["nodeName"] == "a"


def test_memory_of_a_guest_that_was_before_is_forgotten_before_another_one_is_saved() -> None:
    for old in (
        record("Saved", pod="pod-0"),
        record("Used", pod="pod-0"),
        record(pod="pod-0"),
        record("Resuming", resumed_by="vmi-1"),
    ):
        found = plan(instance=instance(), launcher=launcher(), claim=claim(old))
        assert found.record is not None and (found.record.state, found.record.pod, found.record.saved) == ("Saving", "pod-1", None)
        assert found.create_saver is None


def test_what_its_node_saved_is_recorded_whether_or_not_it_is_still_wanted() -> None:
    for suspended in (True, None):
        for guest in (instance(), instance("Succeeded", "Suspended")):
            found = plan(
                machine(suspended),
                instance=guest,
                launcher=launcher("Saved"),
                claim=claim(record()),
                savers=(saver("Succeeded", saved=SAVED),),
            )
            assert found.record is not None and (found.record.state, found.record.saved) == ("Saved", SAVED)
            assert not found.delete_savers and found.delete_claim is None


@pytest.mark.parametrize(
    ("about", "why"),
    [
        ({"instance": instance(volumes=[{"name": "s", "emptyDisk": {"capacity": "1Gi"}}])}, "volume s is an emptyDisk"),
        ({"node": node("false")}, "node a cannot save memory"),
        ({"instance": instance(annotations={labels.TEMPLATE_HASH: "hash-0"})}, "resume and restart it first"),
        ({"storage_class": ""}, "no StorageClass of ours"),
    ],
)
def test_what_cannot_be_saved_goes_on_and_is_told_once(about: Json, why: str) -> None:
    known: Json = {"instance": instance(), "launcher": launcher(), **about}
    found = plan(**known)
    assert told(found) == ("False", "CannotSaveMemory") and found.condition is not None and why in found.condition["message"]
    assert found.create_claim is None and [event.reason for event in found.events] == ["CannotSaveMemory"]


def test_a_migration_and_a_start_are_waited_for() -> None:
    assert told(plan(instance=instance(), launcher=launcher(), migrates=True)) == ("False", "WaitingForMigration")
    assert told(plan(instance=instance("Scheduled"), launcher=launcher("Preparing"))) == ("False", "WaitingForGuest")


def test_a_save_that_failed_is_tried_again_ever_later() -> None:
    def after(seconds: float) -> SuspensionPlan:
        failed = saver("Failed", 3, reason="SaveFailed", message="no room")
        made = msgspec.structs.replace(failed.metadata, creation_timestamp=moment(NOW - seconds))
        savers = (msgspec.structs.replace(failed, metadata=made),)
        return plan(instance=instance(), launcher=launcher(), claim=claim(record()), savers=savers)

    waits, again = after(1), after(81)
    assert (told(waits), waits.next_look, waits.create_saver) == (("False", "SaveFailed"), pytest.approx(79), None)
    assert again.create_saver is not None and again.create_saver["metadata"]["name"].endswith("-4")
    assert [one.name for one in again.delete_savers] == ["save-3"]


def test_what_ended_before_it_was_saved_is_thrown_away() -> None:
    """Trap: node dies half-way through a save."""
    for guest in (None, instance("Failed", "GuestLost")):
        found = plan(instance=guest, claim=claim(record()))
        assert found.delete_claim is not None and found.delete_claim.uid == "claim-1"
        assert [event.reason for event in found.events] == ["MemoryDropped"]


def test_a_suspended_machine_says_what_is_in_its_claim() -> None:
    assert told(plan(claim=claim(record("Saved")))) == ("True", "MemorySaved")
    assert told(plan()) == ("True", "NothingSaved")
    changed = plan(claim=claim(record("Saved", revision="hash-0")))
    assert changed.condition is not None and "take the change back" in changed.condition["message"]


def test_called_off_the_pod_that_saves_goes_first_and_then_the_claim() -> None:
    guest: Json = {"instance": instance(), "claim": claim(record())}
    first = plan(machine(None), launcher=launcher("Paused", reason="SavingMemory"), savers=(saver(),), **guest)
    assert [one.name for one in first.delete_savers] == ["save-0"] and first.delete_claim is None
    still = plan(machine(None), launcher=launcher("Paused", reason="SavingMemory"), **guest)
    assert still == SuspensionPlan()
    assert plan(machine(None), launcher=launcher(), **guest).delete_claim is not None


def test_once_it_runs_its_memory_is_used_and_its_claim_goes_with_its_pod() -> None:
    runs: Json = {"instance": instance(), "launcher": launcher(resumed=True)}
    found = plan(machine(None), claim=claim(record("Resuming", resumed_by="vmi-1")), **runs)
    assert found.record is not None and found.record.state == "Used" and [event.reason for event in found.events] == ["Resumed"]
    assert plan(machine(None), claim=claim(found.record), **runs) == SuspensionPlan()
    assert plan(machine(None), claim=claim(found.record)).delete_claim is not None
    booted = plan(
        machine(None),
        claim=claim(record("Resuming", resumed_by="vmi-1")),
        instance=instance(),
        launcher=launcher(notResumedBecause="another CPU"),
    )
    assert told(booted) == ("False", "NotResumed") and [event.reason for event in booted.events] == ["NotResumed"]


def test_a_stopped_machine_that_is_resumed_throws_its_memory_away_and_any_other_keeps_it() -> None:
    assert plan(machine(None, strategy="Halted"), claim=claim(record("Saved"))).delete_claim is not None
    assert plan(machine(None), claim=claim(record("Saved"))) == SuspensionPlan()


def test_somebody_elses_claim_is_left_alone() -> None:
    found = plan(instance=instance(), launcher=launcher(), claim=claim(None, owner="somebody"))
    assert told(found) == ("False", "ClaimNotOwned") and found.delete_claim is None and found.record is None
    assert plan(machine(None), claim=claim(record("Saved"), owner="somebody")) == SuspensionPlan()


@pytest.mark.parametrize(
    ("suspended", "strategy", "guest", "memory", "want"),
    [
        (True, "Always", None, None, "leave"),
        (True, "Always", instance(), None, "leave"),
        (True, "Always", instance("Pending"), None, "stop"),
        (True, "Always", instance("Pending", annotations={labels.RESUME_FROM: "claim-1"}), "Resuming", "leave"),
        (True, "Always", instance("Succeeded", "Suspended"), "Saving", "leave"),
        (True, "Always", instance("Succeeded", "Suspended"), "Saved", "stop"),
        (True, "Always", instance("Failed"), "Saving", "stop"),
        (True, "Halted", instance(), "Saving", "stop"),
        (True, "Halted", instance("Succeeded", "Suspended"), "Saving", "leave"),
        (True, "Halted", instance("Succeeded", "Suspended"), "Saved", "stop"),
        (None, "Manual", None, "Saved", "start"),
        (None, "Manual", None, "Used", "leave"),
        (None, "Halted", None, "Saved", "leave"),
        (None, "Manual", instance("Succeeded", "Suspended"), "Saved", "replace"),
        (None, "Always", instance("Succeeded", "Suspended"), "Saving", "leave"),
        (None, "Once", None, "Resuming", "start"),
    ],
)
def test_what_becomes_of_instances(suspended: bool | None, strategy: str, guest: Any, memory: Any, want: str) -> None:
    of = machine(suspended, strategy=strategy, last="vmi-1")
    assert wanted(of, guest, memory) == want


@pytest.mark.parametrize(
    ("held", "last", "why"),
    [
        (record("Saved"), "vmi-1", ""),
        (record("Saved"), None, ""),
        (record("Saved"), "vmi-2", "another instance has used its disks"),
        (record("Saved", machine="vm-0"), "vmi-1", "of another machine"),
        (record("Saved", revision="hash-0"), "vmi-1", "its template has changed"),
        (record("Resuming", resumed_by="vmi-2"), "vmi-2", "may have been used"),
        (record(), "vmi-1", "not saved to its end"),
    ],
)
def test_memory_is_gone_on_from_once_and_only_if_nobody_ran_in_between(held: SavedMemory, last: str | None, why: str) -> None:
    found = why_unusable(machine(None, last=last), "hash-1", Memory(claim(held), held))
    assert (why in found) if why else found == ""


def test_what_fits_is_looked_at_again_before_there_is_a_pod() -> None:
    cpu = {labels.RUNTIME: "simulated", labels.CPU_MODEL_MIGRATION + "Haswell": "true"}
    guest = instance("Pending", annotations={labels.RESUME_FROM: "claim-1"})
    held = record("Saved", disks={"root": "disk-1"})

    def why(memory: SavedMemory | None, disks: Json, *nodes: Node) -> str:
        return why_unfit(guest, Memory(claim(memory), memory) if memory is not None else None, disks, nodes)

    good = {"root": "disk-1"}
    assert why(held, good, node(**cpu)) == ""
    assert why(resumed_by(Memory(claim(held), held), guest), good, node(**cpu)) == ""
    assert "is gone" in why(None, good, node(**cpu))
    assert "another one" in why(held, {"root": "disk-2"}, node(**cpu))
    assert "no node has the CPU" in why(held, good, node(**{labels.RUNTIME: "simulated"}))
    assert "no node runs guests with simulated" in why(held, good, node(**{labels.RUNTIME: "qemu"}))
    assert why(held, good) == "", "nobody knows of any node: that may change"
    assert "used before" in why(record("Resuming", resumed_by="vmi-2", disks=good), good, node(**cpu))
    assert "used before" in why(record("Used", disks=good), good, node(**cpu))


def test_only_the_machines_own_claim_counts_and_only_what_can_be_read() -> None:
    assert memory_in("vm-1", claim(record("Saved"))) is not None
    assert memory_in("vm-2", claim(record("Saved"))) is None
    assert memory_in("vm-1", claim(record("Saved"), deleted=True)) is None
    assert memory_in("vm-1", claim(None)) is None
    nonsense = msgspec.convert({"metadata": {"name": "web-memory", "annotations": {labels.MEMORY: "{"}}}, PersistentVolumeClaim)
    assert memory_in("", nonsense) is None


def test_the_claim_is_as_large_as_the_guest_and_what_is_beside() -> None:
    guest = instance()
    assert size_for(guest) == (256 + 4 + 96) << 20
    made = claim_document({"metadata": {"name": "web", "namespace": "shop", "uid": "vm-1"}}, guest, record(), "herder-local", "")
    assert made["spec"]["resources"]["requests"]["storage"] == "356Mi"
    pod = saver_pod(guest, launcher(), claim(record()), 2)
    assert msgspec.json.decode(pod["metadata"]["annotations"][labels.IMPORT])["guest"] == "pod-1"
    assert pod["metadata"]["ownerReferences"][0]["uid"] == "vmi-1"


def test_sentences_name_what_is_in_the_way() -> None:
    assert why_never(instance().spec) == "" and why_not_there(node()) == "" and why_changed(instance(), "hash-1") == ""
    old = msgspec.convert({"metadata": {"name": "old"}}, Node)
    assert 'its label herder.dev/save-memory is not "true"' in why_not_there(old)


def test_a_claim_that_is_too_small_is_made_anew() -> None:
    """Nobody gets more room than a claim says; and a machine may have more memory than when it was suspended last."""
    for held in (None, record("Used"), record()):
        found = plan(instance=instance(), launcher=launcher(), claim=claim(held, size="355Mi"))
        assert found.delete_claim is not None and (found.record, found.create_saver) == (None, None)
        assert found.condition is not None and "has 355Mi and its memory takes 356Mi" in found.condition["message"]


def test_whoever_boots_although_it_was_saved_says_why_whoever_found_it() -> None:
    by_node = launcher(notResumedBecause="used before")
    by_pod = msgspec.structs.replace(launcher(), metadata=msgspec.structs.replace(by_node.metadata, annotations=NOTED))
    by_machine = instance(annotations=NOTED)
    for about in (
        {"launcher": by_node, "instance": instance()},
        {"launcher": by_pod, "instance": instance()},
        {"launcher": launcher(), "instance": by_machine},
    ):
        found = plan(machine(None), **about)
        assert told(found) == ("False", "NotResumed") and found.condition is not None
        assert found.condition["message"] == "it boots from its disks: used before"
    assert plan(machine(None), instance=instance(), launcher=launcher()).condition is None


def test_a_template_has_no_say_about_whose_memory_an_instance_goes_on_from() -> None:
    said = {labels.RESUME_FROM: "claim-1", labels.NOT_RESUMED: "never", "example.com/other": "yes"}
    template = {"metadata": {"annotations": said}, "spec": {"domain": {}}}
    document = {"metadata": {"name": "web", "namespace": "shop", "uid": "vm-1"}, "spec": {"template": template}}
    plain, resumed = instance_of(document), instance_of(document, "claim-2")
    assert labels.RESUME_FROM not in plain["metadata"]["annotations"] and labels.NOT_RESUMED not in plain["metadata"]["annotations"]
    assert plain["metadata"]["annotations"]["example.com/other"] == "yes"
    assert resumed["metadata"]["annotations"][labels.RESUME_FROM] == "claim-2"


NOTED = {labels.NOT_RESUMED: "used before"}
