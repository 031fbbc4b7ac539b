"""What stands in the way of a new migration or policy, in words."""

from typing import Any

import msgspec
import pytest

from herder.api.kinds import MigrationPolicy, VirtualMachineInstance, VirtualMachineInstanceMigration
from herder.rules.admission import migration_problems, policy_problems, pool_advice
from tests.unit.rules.machines import instance

Json = dict[str, Any]


def moving(name: str, phase: str = "", *, instance_name: str = "web", deleted: bool = False) -> VirtualMachineInstanceMigration:
    metadata: Json = {"name": name, **({"deletionTimestamp": "2030-01-01T00:00:00Z"} if deleted else {})}
    status = {"status": {"phase": phase}} if phase else {}
    return msgspec.convert({"metadata": metadata, "spec": {"vmiName": instance_name}, **status}, VirtualMachineInstanceMigration)


def running(**status: Any) -> VirtualMachineInstance:
    return msgspec.convert(instance("Running", **status), VirtualMachineInstance)


def said(*others: VirtualMachineInstanceMigration, of: VirtualMachineInstance | None = None) -> list[str]:
    return [problem.message for problem in migration_problems(moving("new"), of or running(), others)]


def test_nothing_stands_in_the_way_of_a_running_instance_that_nobody_moves() -> None:
    others = [moving("a", "Succeeded"), moving("b", "Failed"), moving("c", "Running", instance_name="db"), moving("new")]
    assert said(*others) == []


@pytest.mark.parametrize("phase", ["", "Pending", "Scheduling", "Scheduled", "PreparingTarget", "TargetReady", "Running"])
def test_whatever_is_not_finished_stands_in_the_way(phase: str) -> None:
    words = f"Forbidden: migration a of web is not finished (phase {phase or 'Pending'}): wait for it, or delete it to cancel it"
    assert said(moving("b", "Running"), moving("a", phase)) == [words]


def test_what_is_being_cancelled_is_waited_for() -> None:
    assert said(moving("a", "Running", deleted=True))[0].endswith("it is being cancelled: wait until it is gone")


def test_an_instance_that_ends_cannot_be_moved() -> None:
    ends = msgspec.convert(instance("Running", deleted=True), VirtualMachineInstance)
    assert said(of=ends) == ['Invalid value: "web": the instance is being deleted: only what runs can be moved']


@pytest.mark.parametrize(("status", "refused"), [("True", False), ("Unknown", False), ("False", True)])
def test_only_what_is_known_not_to_be_migratable_is_refused(status: str, refused: bool) -> None:
    condition = {"type": "LiveMigratable", "status": status, "reason": "HostDeviceNotLiveMigratable", "message": "device gpu"}
    words = 'Invalid value: "web": the instance cannot be migrated: HostDeviceNotLiveMigratable: device gpu'
    assert said(of=running(conditions=[condition])) == ([words] if refused else [])


def policy(**selector: Any) -> MigrationPolicy:
    spec = {"selectors": {"namespaceSelector": selector}}
    return msgspec.convert({"metadata": {"name": "p"}, "spec": spec}, MigrationPolicy)


def test_a_policy_that_had_these_selectors_before_can_still_be_changed() -> None:
    """Two may have slipped in together; what they say besides must not be frozen by that."""
    assert policy_problems(policy(a=True), policy(a="true"), ["other"]) == []
    assert len(policy_problems(policy(a=True), policy(a="false"), ["other"])) == 1
    assert str(policy_problems(policy(a=True), None, ["other"])[0]) == (
        'spec.selectors: Duplicate value: {"namespaceSelector":{"a":true}}: MigrationPolicy other has the same selectors, and only'
        " one of the two could apply: add a label, or change other"
    )


def _pool(name: str, *volumes: str, ordered: Any = None) -> Json:
    made = [{"metadata": {"name": one}, "spec": {"source": {"blank": {}}}} for one in volumes]
    machine = {"template": {"spec": {"domain": {}}}, "dataVolumeTemplates": made}
    strategy = {"proactive": {"selectionPolicy": {"orderedPolicies": [ordered]}}} if ordered else {}
    return {"metadata": {"name": name}, "spec": {"replicas": 1, "template": {"spec": machine}, "scaleInStrategy": strategy}}


def test_only_a_new_name_that_another_pool_has_is_warned_of() -> None:
    having = {"disk": ["b", "a", "mine"], "data": ["mine"]}
    (sentence,) = pool_advice(_pool("mine", "data", "disk"), None, lambda name: having.get(name, []))
    assert sentence.startswith("spec.template.spec.dataVolumeTemplates[1].metadata.name: VirtualMachinePool a has")
    assert pool_advice(_pool("mine", "disk"), _pool("mine", "disk"), lambda name: having.get(name, [])) == []


def test_a_pool_that_could_not_be_read_can_be_mended() -> None:
    """It was stored while there was no webhook: its old state is in nobody's way."""
    mended, before = _pool("mine", "disk"), _pool("mine", "disk", ordered="labelSelector")
    assert len(pool_advice(mended, before, lambda _: ["a"])) == 1
