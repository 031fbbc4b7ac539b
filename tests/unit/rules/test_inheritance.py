"""Labels, annotations and eviction strategy of a template, on their way to an instance and a pod that are there already."""

import hashlib
from typing import Any

import msgspec
import pytest

from herder.api import labels
from herder.api.guest import GuestReport
from herder.api.validation import problems_of
from herder.rules.instances import InstanceSnapshot, plan_instance
from herder.rules.instances.launcher import launcher_pod
from herder.rules.machines import MachinePlan, MachineSnapshot, plan_machine
from tests.unit.rules.machines import NOW, Json, instance_view, machine, machine_view, node, pod

SPEC = {"domain": {"cpu": {"cores": 1}}}
RUNNING = {"phase": "Running", "nodeName": "node-1", "launcherPodName": "virt-launcher-web-aaaaaaaa"}


def template(given_labels: Json | None = None, annotations: Json | None = None, **spec: Any) -> Json:
    return {"metadata": {"labels": given_labels or {}, "annotations": annotations or {}}, "spec": {**SPEC, **spec}}


def plan(wanted: Json, running: Json | None = None, **more: Any) -> MachinePlan:
    document = machine(template=wanted, **more)
    return plan_machine(MachineSnapshot(machine_view(document), document, instance_view(running) if running else None, {}), NOW)


def running_from(wanted: Json, hand: Json | None = None) -> Json:
    """An instance as it is made from the template, with what people did to its metadata afterwards."""
    made = plan(wanted).create_instance
    assert made is not None
    metadata = {**made["metadata"], "uid": "aaaaaaaa-0001", "generation": 1}
    return merged({**made, "metadata": metadata, "status": RUNNING}, {"metadata": hand or {}})


def merged(document: Json, patch: Json) -> Json:
    """As a merge patch does it."""
    after = dict(document)
    for name, value in patch.items():
        if value is None:
            after.pop(name, None)
        else:
            after[name] = merged(after.get(name) or {}, value) if isinstance(value, dict) else value
    return after


def after_change(before: Json, wanted: Json, hand: Json | None = None) -> Json:
    """The instance once the plan for the changed template was carried out; and then there is nothing left to do."""
    there = running_from(before, hand)
    patch = plan(wanted, there).update_instance
    there = merged(there, patch or {})
    assert plan(wanted, there).update_instance is None
    return there


def restart_required(made: MachinePlan) -> bool:
    return any(one["type"] == "RestartRequired" for one in made.status["conditions"])


def test_a_changed_label_annotation_or_eviction_strategy_reaches_the_instance_and_asks_for_no_restart() -> None:
    before, wanted = template({"tier": "a"}), template({"tier": "b"}, {"note": "x"}, evictionStrategy="LiveMigrate")
    assert not restart_required(plan(wanted, running_from(before)))
    there = after_change(before, wanted)
    assert there["metadata"]["labels"] == {"tier": "b", "kubevirt.io/vm": "web"}
    assert there["metadata"]["annotations"]["note"] == "x"
    assert there["spec"]["evictionStrategy"] == "LiveMigrate"


def test_what_the_template_drops_goes_and_what_people_added_stays() -> None:
    before = template({"tier": "a"}, {"note": "x"}, evictionStrategy="LiveMigrate")
    there = after_change(before, template(), {"labels": {"by-hand": "yes"}, "annotations": {"why": "debugging"}})
    assert there["metadata"]["labels"] == {"by-hand": "yes", "kubevirt.io/vm": "web"}
    assert set(there["metadata"]["annotations"]) == {"why", labels.TEMPLATE_HASH}
    assert "evictionStrategy" not in there["spec"]


def test_an_eviction_strategy_that_a_person_gave_the_instance_stays_while_the_template_has_none() -> None:
    there = merged(running_from(template()), {"spec": {"evictionStrategy": "External"}})
    assert plan(template(), there).update_instance is None
    taken = plan(template(evictionStrategy="LiveMigrate"), there).update_instance
    assert taken is not None
    assert taken["spec"] == {"evictionStrategy": "LiveMigrate"}


def test_a_running_instance_keeps_what_is_ours_whatever_the_template_says() -> None:
    ours = {labels.NODE_NAME: "node-1", labels.MACHINE_NAME: "web"}
    notes = {labels.PAUSE: "false", labels.EVACUATE: "node-1", labels.RESTARTED_AT: "monday"}
    forged = dict.fromkeys((*ours, labels.POOL, labels.APP, labels.CREATED_BY, labels.MIGRATION_UID), "forged")
    claims = msgspec.json.encode({"labels": list(ours), "annotations": list(notes)}).decode()
    hand = {"labels": ours, "annotations": {**notes, labels.LAST_APPLIED: claims}}
    there = after_change(template(), template(forged, dict.fromkeys((labels.PAUSE, labels.EVACUATE), "forged")), hand)
    assert there["metadata"]["labels"] == ours
    assert {name: value for name, value in there["metadata"]["annotations"].items() if name != labels.TEMPLATE_HASH} == notes


def test_a_new_instance_takes_no_label_of_ours_from_its_template() -> None:
    made = running_from(template({labels.POOL: "forged", labels.NODE_NAME: "forged", "tier": "a"}, {labels.LAST_APPLIED: "{}"}))
    assert made["metadata"]["labels"] == {"tier": "a", "kubevirt.io/vm": "web"}
    assert msgspec.json.decode(made["metadata"]["annotations"][labels.LAST_APPLIED]) == {"labels": ["tier"]}


def test_a_new_restarted_at_asks_for_a_restart_and_waits_for_it() -> None:
    before, wanted = template(), template(annotations={labels.RESTARTED_AT: "monday"})
    made = plan(wanted, running_from(before))
    assert restart_required(made)
    assert made.update_instance is None
    assert running_from(wanted)["metadata"]["annotations"][labels.RESTARTED_AT] == "monday"


def test_a_revision_reaches_an_instance_only_while_no_restart_is_pending() -> None:
    before, revised = template({labels.POOL_REVISION: "one"}), template({labels.POOL_REVISION: "two"})
    assert after_change(before, revised)["metadata"]["labels"][labels.POOL_REVISION] == "two"
    pending = template({labels.POOL_REVISION: "two", "tier": "b"}, hostname="other")
    there = after_change(before, pending)
    assert there["metadata"]["labels"] == {labels.POOL_REVISION: "one", "tier": "b", "kubevirt.io/vm": "web"}
    assert labels.POOL_REVISION not in after_change(before, template())["metadata"]["labels"]


def test_a_revision_reaches_the_instance_that_its_pool_says_has_it_although_a_change_by_hand_waits_for_a_restart() -> None:
    there = running_from(template({labels.POOL_REVISION: "one"}))
    edited = template({labels.POOL_REVISION: "two"}, hostname="by-hand")
    for uid, revision in (("another", "one"), ("aaaaaaaa-0001", "two")):
        made = plan(edited, there, annotations={labels.UPDATED_IN_PLACE: uid})
        assert restart_required(made)
        assert merged(there, made.update_instance or {})["metadata"]["labels"][labels.POOL_REVISION] == revision


def test_an_instance_of_an_earlier_version_needs_no_restart_and_is_noted_as_if_it_were_made_now() -> None:
    wanted = template({"tier": "a"}, {"note": "x"}, evictionStrategy="LiveMigrate")
    whole = hashlib.sha256(msgspec.json.encode(wanted, order="deterministic")).hexdigest()[:16]
    old = running_from(wanted, {"annotations": {labels.TEMPLATE_HASH: whole, labels.LAST_APPLIED: None}})
    made = plan(wanted, old)
    assert not restart_required(made)
    assert made.update_instance is not None
    there = merged(old, made.update_instance)
    assert there == running_from(wanted)
    assert not restart_required(plan(template(), there))
    assert restart_required(plan(template(hostname="other"), old))


@pytest.mark.parametrize(
    "ends", [{"deleted": True}, {"runStrategy": "Halted"}, {"annotations": {labels.RESTART_REQUEST: "aaaaaaaa-0001"}}]
)
def test_an_instance_that_is_about_to_end_is_left_as_it_is(ends: Json) -> None:
    assert plan(template({"tier": "b"}), running_from(template()), **ends).update_instance is None


def pod_patch(document: Json, metadata: Json) -> Json:
    """What is done to the pod, which then needs nothing more."""
    there = pod(GuestReport(state="Running"), phase="Running", node="node-1", ready=True, **metadata)
    snapshot = InstanceSnapshot(instance_view(document), b"", (there,), {"node-1": node()})
    patches = plan_instance(snapshot, NOW).patch_pods
    return patches[0].patch if patches else {}


def pod_metadata(document: Json) -> Json:
    made = launcher_pod(document, instance_view(document).spec)["metadata"]
    return {"labels": made["labels"], "annotations": made["annotations"]}


def test_a_pod_has_the_labels_and_annotations_of_its_instance_from_the_start() -> None:
    given = {"note": "x", "cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    forged = {labels.MIGRATION: "{}", labels.RESUME: "x", labels.IMPORT: "{}", labels.GUEST: "{}", labels.REQUIRED_LEVEL: "9"}
    others = {"kubernetes.io/config.mirror": "x", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    hand = {"labels": {labels.MIGRATION_UID: "forged", labels.POOL: "forged"}, "annotations": {**forged, **others}}
    document = running_from(template({"tier": "a"}, given), hand)
    made = pod_metadata(document)
    assert set(made["labels"]) == {"tier", labels.MACHINE_NAME, labels.APP, labels.CREATED_BY, labels.INSTANCE_NAME}
    assert set(made["annotations"]) == {*given, labels.GUEST, labels.LAST_APPLIED}
    assert made["annotations"][labels.GUEST] != "{}"
    assert pod_patch(document, made) == {}


def test_a_running_pod_follows_its_instance_and_keeps_what_is_ours_and_what_people_added() -> None:
    before = running_from(template({"tier": "a"}, {"note": "x"}))
    there = merged(pod_metadata(before), {"labels": {"by-hand": "yes"}, "annotations": {"by-hand": "yes", labels.RESUME: "m"}})
    after = after_change(template({"tier": "a"}, {"note": "x"}), template({"zone": "b"}))
    patched = merged(there, pod_patch(after, there)["metadata"])
    assert patched["labels"] == merged(there["labels"], {"tier": None, "zone": "b"})
    assert set(patched["annotations"]) == {"by-hand", labels.RESUME, labels.GUEST, labels.LAST_APPLIED}
    assert pod_patch(after, patched) == {}


def test_a_pod_of_an_earlier_version_gets_the_annotations_that_it_was_made_without() -> None:
    document = running_from(template({"tier": "a"}, {"note": "x"}))
    made = pod_metadata(document)
    old = merged(made, {"annotations": {"note": None, labels.LAST_APPLIED: None}})
    assert merged(old, pod_patch(document, old)["metadata"]) == made


@pytest.mark.parametrize(
    "metadata", [{"annotations": {"note": "x" * 230_000}}, {"labels": {f"{n:0250}.io/x": "y" for n in range(900)}}]
)
def test_a_template_with_more_than_a_pod_can_hold_is_refused(metadata: Json) -> None:
    about = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "web"}}
    document = {**about, "spec": {"runStrategy": "Always", "template": {"metadata": metadata, "spec": SPEC}}}
    said = [f"{problem}" for problem in problems_of(document)]
    assert any("spec.template.spec" in one and "have fewer labels and annotations" in one for one in said), said
