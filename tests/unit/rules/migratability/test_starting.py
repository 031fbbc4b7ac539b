"""The level that the cluster's settings ask for, in the pod of a host-model guest that is started."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from herder.api import labels
from herder.api.core import Pod
from herder.api.guest import Started
from herder.api.kinds.instance import VirtualMachineInstanceSpec
from herder.api.kinds.kubevirt import KubeVirt, MigrationConfiguration
from herder.rules.configuration import migration_configuration
from herder.rules.instances import InstancePlan, InstanceSnapshot, plan_instance
from herder.rules.instances.launcher import launcher_pod
from herder.rules.migratability.waiting import demanded_level, not_reached, out_of_reach
from tests.unit.rules.machines import NOW, Json, instance, instance_view
from tests.unit.rules.migratability.nodes import cpu, node

LEVEL = labels.MIGRATABILITY_LEVEL
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
IN_ZONE = {"key": "zone", "operator": "In", "values": ["a"]}
AT_LEAST_50 = {"key": LEVEL, "operator": "Gt", "values": ["49"]}


def settings(**migrations: Any) -> MigrationConfiguration:
    return msgspec.convert(migrations, MigrationConfiguration)


REQUIRE_50 = settings(requireHostModelMigratabilityLevel=50)


def made(spec: Json | None = None, given: MigrationConfiguration | None = REQUIRE_50, incoming: Started | None = None) -> Json:
    document = instance(spec=spec or {"domain": {}})
    return launcher_pod(document, msgspec.convert(document["spec"], VirtualMachineInstanceSpec), incoming, given)


def terms(pod: Json) -> list[Json]:
    return pod["spec"].get("affinity", {}).get("nodeAffinity", {}).get(REQUIRED, {}).get("nodeSelectorTerms", [])


def with_terms(*written: Json) -> Json:
    return {"domain": {}, "affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(written)}}}}


def test_a_required_level_is_a_required_node_affinity() -> None:
    assert terms(made()) == [{"matchExpressions": [AT_LEAST_50]}]


def test_a_required_level_is_added_to_every_term_that_is_written_but_not_to_one_that_picks_nothing() -> None:
    by_name = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    found = terms(made(with_terms({"matchExpressions": [IN_ZONE]}, by_name, {})))
    assert found == [{"matchExpressions": [IN_ZONE, AT_LEAST_50]}, {**by_name, "matchExpressions": [AT_LEAST_50]}, {}]


def test_what_is_written_about_neighbours_and_wishes_stays() -> None:
    wish = {"weight": 3, "preference": {"matchExpressions": [IN_ZONE]}}
    beside = {"podAntiAffinity": {REQUIRED: [{"topologyKey": "zone"}]}}
    pod = made({"domain": {}, "affinity": {"nodeAffinity": {PREFERRED: [wish]}, **beside}})
    assert pod["spec"]["affinity"]["podAntiAffinity"] == beside["podAntiAffinity"]
    assert pod["spec"]["affinity"]["nodeAffinity"][PREFERRED] == [wish]


@pytest.mark.parametrize("given", [None, settings(), settings(requireHostModelMigratabilityLevel=0)])
def test_without_a_level_nothing_is_added(given: MigrationConfiguration | None) -> None:
    pod = made(given=given)
    assert "affinity" not in pod["spec"] and labels.REQUIRED_LEVEL not in pod["metadata"]["annotations"]


@pytest.mark.parametrize("name", ["preferedHostModelMigratabilityLevel", "preferredHostModelMigratabilityLevel"])
def test_a_preferred_level_is_a_preferred_node_affinity_under_either_spelling(name: str) -> None:
    affinity = made(given=settings(**{name: {"level": 50, "weight": 7}}))["spec"]["affinity"]["nodeAffinity"]
    assert affinity == {PREFERRED: [{"weight": 7, "preference": {"matchExpressions": [AT_LEAST_50]}}]}


def test_the_weight_of_a_preferred_level_is_the_lowest_unless_it_is_given() -> None:
    pod = made(given=settings(preferedHostModelMigratabilityLevel={"level": 50}))
    assert pod["spec"]["affinity"]["nodeAffinity"][PREFERRED][0]["weight"] == 1


@pytest.mark.parametrize("model", ["Haswell", "host-passthrough"])
def test_a_guest_with_a_named_model_or_the_nodes_own_is_started_anywhere(model: str) -> None:
    pod = made({"domain": {"cpu": {"model": model}}})
    assert terms(pod) == [] and labels.REQUIRED_LEVEL not in pod["metadata"]["annotations"]


def test_a_guest_that_says_host_model_itself_is_one() -> None:
    assert terms(made({"domain": {"cpu": {"model": "host-model"}}})) == [{"matchExpressions": [AT_LEAST_50]}]


def test_the_target_of_a_migration_gets_no_level() -> None:
    pod = made(incoming=Started(runtime="simulated"))
    assert terms(pod) == [] and labels.REQUIRED_LEVEL not in pod["metadata"]["annotations"]


def test_without_the_object_there_are_no_settings() -> None:
    assert migration_configuration(None) is None
    assert migration_configuration(msgspec.convert({"metadata": {}, "spec": {}}, KubeVirt)) is None


UNSCHEDULABLE = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}


def waiting(spec: Json | None = None, status: Json = UNSCHEDULABLE) -> Pod:
    return msgspec.convert({**made(spec), "status": status}, Pod)


def leveled(name: str, level: int | None, **more: Any):
    written = {**cpu(), labels.SCHEDULABLE: "true", "zone": "a", **more.pop("labels", {})}
    return node(name, written | ({LEVEL: str(level)} if level is not None else {}), **more)


def test_a_pod_that_no_node_is_good_enough_for_is_told_the_best_level_there_is() -> None:
    found = not_reached(waiting(), [leveled("a", 33), leveled("b", 33), leveled("c", 0)])
    assert "level 50" in found and found.endswith("the highest is 33, on a, b")


def test_where_a_node_is_good_enough_the_level_is_not_the_reason() -> None:
    assert not_reached(waiting(), [leveled("a", 33), leveled("b", 50)]) == ""


def test_only_nodes_that_the_guest_may_start_on_otherwise_are_looked_at() -> None:
    elsewhere = leveled("b", 90, labels={"zone": "b"})
    found = not_reached(waiting(with_terms({"matchExpressions": [IN_ZONE]})), [leveled("a", 33), elsewhere])
    assert found.endswith("the highest is 33, on a")
    closed = leveled("c", 90, cordoned=True)
    assert not_reached(waiting(), [leveled("a", 33), closed]).endswith("the highest is 33, on a")


def test_without_any_level_the_scheduler_has_the_word() -> None:
    assert not_reached(waiting(), [leveled("a", None)]) == ""


def test_a_pod_that_has_not_been_looked_at_yet_does_not_wait_for_a_level() -> None:
    assert demanded_level(waiting()) == 50
    assert not_reached(waiting(status={}), [leveled("a", 33)]) == ""


def test_settings_that_no_node_can_fulfil_are_told_so_with_the_highest_level() -> None:
    assert "asks for level 100, and no node has it: the highest is 66." in out_of_reach(100, 66)
    assert out_of_reach(66, 66) == out_of_reach(0, 0) == out_of_reach(100, None) == ""


def planned(pod: Pod, given: MigrationConfiguration | None, **status: Any) -> InstancePlan:
    document = instance("Scheduling", launcherPodName=pod.name, **status)
    nodes = (leveled("a", 33), leveled("b", 33))
    return plan_instance(InstanceSnapshot(instance_view(document), b"", (pod,), {}, settings=given, all_nodes=nodes), NOW)


def test_an_instance_that_waits_for_a_level_says_so_and_tells_it_once() -> None:
    first = planned(waiting(), REQUIRE_50)
    assert first.status is not None and first.replace_pod is None
    assert (first.status["phase"], first.status["reason"]) == ("Scheduling", "MigratabilityLevelNotReached")
    assert "the highest is 33, on a, b" in first.status["message"]
    assert [(event.type, event.reason) for event in first.events] == [("Warning", "MigratabilityLevelNotReached")]
    assert planned(waiting(), REQUIRE_50, reason="MigratabilityLevelNotReached").events == ()


def test_an_instance_that_waits_for_a_level_which_is_another_one_now_gets_another_pod() -> None:
    pod = waiting()
    plan = planned(pod, settings(requireHostModelMigratabilityLevel=30))
    assert plan.replace_pod is not None and plan.replace_pod[0].name == pod.name
    assert plan.status is not None and "launcherPodName" not in plan.status


def test_a_pod_that_waits_for_something_else_keeps_the_level_it_was_made_with() -> None:
    document = instance("Scheduling")
    good_enough = (leveled("a", 90),)
    given = settings(requireHostModelMigratabilityLevel=30)
    snapshot = InstanceSnapshot(
        instance_view(document), msgspec.json.encode(document), (waiting(),), {}, settings=given, all_nodes=good_enough
    )
    assert plan_instance(snapshot, NOW).replace_pod is None
