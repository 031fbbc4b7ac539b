"""MigrationPolicy and KubeVirt, beyond their schemas."""

from typing import Any

import pytest

from herder.api.problems import INVALID, REQUIRED, TYPE_INVALID
from herder.api.validation import advice_on, problems_of

Json = dict[str, Any]


def _policy(selectors: Any, **spec: Any) -> Json:
    body = spec if selectors is None else {"selectors": selectors, **spec}
    return {"apiVersion": "migrations.kubevirt.io/v1alpha1", "kind": "MigrationPolicy", "metadata": {"name": "a"}, "spec": body}


def _settings(name: str = "kubevirt", **migrations: Any) -> Json:
    metadata = {"name": name, "namespace": "kubevirt"}
    spec = {"configuration": {"migrations": migrations}}
    return {"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    "selectors", [None, {}, {"namespaceSelector": {}}, {"namespaceSelector": {}, "virtualMachineInstanceSelector": {}}]
)
def test_a_policy_that_selects_nothing_is_refused_with_advice(selectors: Any) -> None:
    (problem,) = problems_of(_policy(selectors))
    assert (problem.field, problem.reason) == ("spec.selectors", REQUIRED)
    assert "spec.configuration.migrations of the KubeVirt object" in problem.message


@pytest.mark.parametrize("value", [True, False, 7, "db", ""])
def test_values_that_yaml_takes_for_something_else_are_labels_all_the_same(value: Any) -> None:
    assert problems_of(_policy({"namespaceSelector": {"hpc-workloads": value}})) == []


@pytest.mark.parametrize("value", [1.5, None, ["a"], {"a": "b"}])
def test_a_value_that_can_be_no_label_is_refused(value: Any) -> None:
    (problem,) = problems_of(_policy({"namespaceSelector": {"version": value}}))
    assert (problem.field, problem.reason) == ("spec.selectors.namespaceSelector[version]", TYPE_INVALID)
    assert problem.message.endswith('must be a string: write it in quotes, for example "1.0"')


def test_a_key_and_a_value_must_be_a_labels() -> None:
    problems = problems_of(_policy({"virtualMachineInstanceSelector": {"a b": "x", "ok": "-x"}}))
    assert [problem.field for problem in problems] == [
        "spec.selectors.virtualMachineInstanceSelector",
        "spec.selectors.virtualMachineInstanceSelector[ok]",
    ]
    assert all(problem.reason == INVALID for problem in problems)


def test_a_bandwidth_must_be_an_amount() -> None:
    (problem,) = problems_of(_policy({"namespaceSelector": {"a": "b"}}, bandwidthPerMigration="64 Mi"))
    assert problem.field == "spec.bandwidthPerMigration"
    assert problem.message.startswith('Invalid value: "64 Mi"')


def test_the_drain_taint_must_be_a_key() -> None:
    (problem,) = problems_of(_settings(nodeDrainTaintKey="drain me"))
    assert problem.field == "spec.configuration.migrations.nodeDrainTaintKey"
    assert problems_of(_settings(nodeDrainTaintKey="kubevirt.io/drain", bandwidthPerMigration="64Mi")) == []


def test_a_level_that_no_node_reaches_is_accepted_with_advice() -> None:
    document = _settings(requireHostModelMigratabilityLevel=100)
    assert problems_of(document) == []
    (advice,) = advice_on(document)
    assert "no node reaches 100" in advice
    assert advice_on(_settings(requireHostModelMigratabilityLevel=99)) == []


@pytest.mark.parametrize("name", ["preferedHostModelMigratabilityLevel", "preferredHostModelMigratabilityLevel"])
def test_a_preferred_level_that_prefers_nothing_is_pointed_out(name: str) -> None:
    (unreachable,) = advice_on(_settings("kubevirt", **{name: {"level": 100}}))
    assert unreachable.startswith(f"spec.configuration.migrations.{name}.level: no node reaches 100")
    (required,) = advice_on(_settings("kubevirt", requireHostModelMigratabilityLevel=50, **{name: {"level": 50}}))
    assert required.endswith("50 prefers nothing, because 50 is required of every node already")
    assert advice_on(_settings("kubevirt", requireHostModelMigratabilityLevel=50, **{name: {"level": 60}})) == []


def test_settings_that_nobody_would_read_are_refused_and_those_that_are_there_can_be_changed() -> None:
    elsewhere = _settings("other")
    elsewhere["metadata"]["namespace"] = "shop"
    said = "the settings of the cluster are the KubeVirt object kubevirt in namespace kubevirt, and no other is used"
    problems = problems_of(elsewhere)
    assert [problem.field for problem in problems] == ["metadata.namespace", "metadata.name"]
    assert str(problems[0]).startswith(f'metadata.namespace: Invalid value: "shop": {said}: change that one, with kubectl edit')
    changed = {**elsewhere, "spec": {}}
    assert problems_of(changed, elsewhere) == []
    assert advice_on(changed) == [
        "only the KubeVirt object kubevirt in namespace kubevirt is used: this one is ignored, and can be deleted"
    ]


def test_other_kinds_are_none_of_our_business() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod"}
    assert (problems_of(pod), advice_on(pod)) == ([], [])


@pytest.mark.parametrize("bandwidth", ["217m", "0.5", "999m"])
def test_a_bandwidth_in_thousandths_of_a_byte_was_not_meant(bandwidth: str) -> None:
    said = f'Invalid value: "{bandwidth}": is less than one byte per second: m stands for thousandths; write M or Mi for millions'
    policy = _policy({"namespaceSelector": {"a": "b"}}, bandwidthPerMigration=bandwidth)
    for document in (policy, _settings(bandwidthPerMigration=bandwidth)):
        problems = problems_of(document)
        assert len(problems) == 1 and problems[0].message.startswith(said)


def test_zero_means_something_everywhere_but_for_the_downtime() -> None:
    (said,) = problems_of(_settings(maxDowntimeMs=0))
    assert str(said).startswith("spec.configuration.migrations.maxDowntimeMs: Invalid value: 0: must be from 1 to 2000000")
    others = ("completionTimeoutPerGiB", "progressTimeout", "unschedulablePendingTimeout", "pendingTimeout")
    assert problems_of(_settings(**dict.fromkeys(others, 0), bandwidthPerMigration="0")) == []


def test_a_downtime_that_no_hypervisor_takes_is_refused() -> None:
    said = "spec.configuration.migrations.maxDowntimeMs: Invalid value: 2000001: must be from 1 to 2000000 (milliseconds)"
    assert [str(one) for one in problems_of(_settings(maxDowntimeMs=2_000_001))] == [said]
    assert problems_of(_settings(maxDowntimeMs=2_000_000)) == []


def test_a_wait_that_can_never_be_as_long_is_warned_of() -> None:
    said = "spec.configuration.migrations.pendingTimeout: 60 ends every wait before unschedulablePendingTimeout (300) can"
    assert advice_on(_settings(unschedulablePendingTimeout=300, pendingTimeout=60)) == [said]


def test_a_placeholder_for_a_node_is_warned_of() -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["<nodeName>"]}]}
    said = "spec.addedNodeSelectorTerm: <nodeName> is a placeholder, and no node has this name: write the name of a node"
    about = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration"}
    for written in (term, [term]):
        assert advice_on({**about, "spec": {"vmiName": "a", "addedNodeSelectorTerm": written}}) == [said]
    assert advice_on({**about, "spec": {"vmiName": "a"}}) == []
