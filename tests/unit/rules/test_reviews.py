"""The answer to a MigrationReview: what `herder explain` says, for those who may know about one namespace only."""

from typing import Any

import msgspec
import pytest

from herder.api import reasons
from herder.api.kinds import KubeVirt, MigrationPolicy, MigrationReview, VirtualMachineInstance
from herder.api.kinds.migration_review import MOST_ROWS, MigrationReviewStatus
from herder.api.labels import SCHEDULABLE
from herder.rules.configuration import cluster_migration_settings
from herder.rules.migration.explain import MigrationExplanation, explain_migration
from herder.rules.plans import find
from herder.rules.policies import Policies, PolicyExplanation, explain_policy
from herder.rules.reviews import (
    LIFETIME,
    Cluster,
    Reviewed,
    answer,
    explained_migration,
    explained_policy,
    invalid,
    is_answered,
    seconds_left,
)
from herder.rules.targets import Added
from tests.unit.rules.machines import NOW, instance, later
from tests.unit.rules.placement.cluster import Cluster as Nodes
from tests.unit.rules.placement.cluster import node, pod

Json = dict[str, Any]
SHOP = {"team": "shop"}


def review(term: Any = None, *, made: float = 0.0, **status: Any) -> MigrationReview:
    metadata = {"name": "r", "namespace": "shop", "uid": "r-1", "generation": 1, "creationTimestamp": later(made)}
    document = {"metadata": metadata, "spec": {"vmiName": "web", "addedNodeSelectorTerm": term}, "status": status}
    return msgspec.convert(document, MigrationReview)


def named(name: str) -> Json:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}


def policy(name: str, of: Json | None = None, within: Json | None = None, **settings: Any) -> MigrationPolicy:
    selectors = {"virtualMachineInstanceSelector": of or {}, "namespaceSelector": within or {}}
    return msgspec.convert({"metadata": {"name": name}, "spec": {"selectors": selectors, **settings}}, MigrationPolicy)


def vm_node(name: str, **more: Any) -> Json:
    return node(name, labels={SCHEDULABLE: "true"}, **more)


def cluster(*objects: Json, policies: tuple[MigrationPolicy, ...] = (), **migrations: Any) -> Cluster:
    document = {"metadata": {"name": "kubevirt"}, "spec": {"configuration": {"migrations": migrations}}}
    settings = cluster_migration_settings(msgspec.convert(document, KubeVirt))
    return Cluster(Policies(policies), settings, Nodes(*objects).snapshot)


def reviewed(**more: Any) -> Reviewed:
    document = instance("Running", nodeName="n1", **more)
    return Reviewed(msgspec.convert(document, VirtualMachineInstance), document, SHOP)


def answered(asked: MigrationReview, of: Reviewed | None, around: Cluster) -> MigrationReviewStatus:
    """As it is read again."""
    return msgspec.json.decode(msgspec.json.encode(answer(asked, of, around, NOW)), type=MigrationReviewStatus)


def told(of: Reviewed, status: MigrationReviewStatus) -> tuple[PolicyExplanation, MigrationExplanation]:
    return explained_policy(of.instance, of.namespace_labels, status), explained_migration(of.instance, status)


THREE = (vm_node("n1"), vm_node("n2"), vm_node("n3", unschedulable=True))


def test_an_answer_is_what_explain_says_but_for_the_scores() -> None:
    around = cluster(*THREE, policies=(policy("gold", {"app": "web"}, allowPostCopy=True),), maxDowntimeMs=7)
    status = answered(review(), reviewed(), around)
    assert (status.outcome, status.target_node, status.observed_generation) == ("Schedulable", "n2", 1)
    of = reviewed()
    policy_told, target_told = told(of, status)
    assert policy_told == explain_policy(of.instance, SHOP, around.policies, around.settings)
    sources = {row.name: (row.value, row.source) for row in policy_told.settings}
    assert sources["allowPostCopy"] == (True, "MigrationPolicy gold") and sources["maxDowntimeMs"] == (7, "KubeVirt")
    direct = explain_migration(of.instance, of.document, Added(), around.snapshot, around.settings)
    unscored = [msgspec.structs.replace(row, score=None) for row in direct.nodes]
    assert any(row.score for row in direct.nodes), "how busy a node is follows from other people's pods, and is not told"
    assert target_told == msgspec.structs.replace(direct, nodes=tuple(unscored))


def test_a_target_that_cannot_be_is_told_from_one_that_may_pass() -> None:
    around = cluster(*THREE, unschedulablePendingTimeout=42)
    nowhere = answered(review(named("n9")), reviewed(), around)
    assert (nowhere.outcome, nowhere.reason) == ("Impossible", reasons.NODE_NOT_FOUND)
    assert explained_migration(reviewed().instance, nowhere).impossible is not None
    waits = answered(review(named("n3")), reviewed(), around)
    assert (waits.outcome, waits.reason, waits.target_node) == ("Unschedulable", None, None)
    assert waits.summary is not None and "1 is cordoned" in waits.summary
    assert waits.unschedulable_pending_timeout == 42


def test_what_would_be_refused_anywhere_says_so_and_still_shows_its_nodes() -> None:
    pinned = {"type": "LiveMigratable", "status": "False", "reason": "DisksNotLiveMigratable", "message": "disk a is not shared"}
    status = answered(review(), reviewed(conditions=[pinned]), cluster(*THREE))
    assert (status.outcome, status.reason) == ("NotMigratable", reasons.NOT_LIVE_MIGRATABLE)
    assert status.message is not None and "disk a is not shared" in status.message
    assert len(status.nodes or ()) == 3


def test_policies_of_other_namespaces_are_counted_and_not_named() -> None:
    """Their selectors may hold the names of other people's namespaces."""
    policies = (
        policy("ours", {"app": "web"}, {"team": "shop"}),
        policy("for-all", {"size": "large"}),
        policy("secret-customer", {"app": "web"}, {"team": "bank"}),
    )
    status = answered(review(), reviewed(), cluster(*THREE, policies=policies))
    assert [row.name for row in status.policies or ()] == ["ours", "for-all"]
    assert status.other_policies == 1
    assert "bank" not in str(status) and "secret" not in str(status)


def test_other_peoples_pods_are_not_named() -> None:
    full = pod("payroll", on="n2", namespace="bank", requests={"cpu": "4"})
    of = reviewed(spec={"domain": {"resources": {"requests": {"cpu": "2"}}}})
    status = answered(review(named("n2")), of, cluster(*THREE, full))
    assert status.outcome == "Unschedulable"
    assert next(row.why for row in status.nodes or () if row.name == "n2") == "lacks cpu"
    assert "payroll" not in str(status) and "bank" not in str(status)


def test_of_very_many_nodes_and_policies_the_first_are_shown_and_the_others_counted() -> None:
    taint = {"key": "k" * 253 + "/" + "x" * 63, "effect": "NoSchedule"}
    nodes = [vm_node(f"a{number:03}", taints=[taint]) for number in range(150)]
    policies = [policy(f"p{number:03}", {f"{'k' * 60}{label}{number}": "x" for label in range(30)}) for number in range(150)]
    status = answered(review(), reviewed(), cluster(*nodes, vm_node("fits"), policies=tuple(policies)))
    assert (len(status.nodes or ()), status.other_nodes) == (MOST_ROWS, 51)
    assert (len(status.policies or ()), status.other_policies) == (MOST_ROWS, 50)
    assert status.nodes is not None and status.nodes[0].name == "fits", "those that would do come first"
    assert len(msgspec.json.encode(status)) < 300_000
    assert explained_migration(reviewed().instance, status).other_nodes == 51


def test_an_instance_that_is_not_there_is_the_whole_answer() -> None:
    status = answered(review(), None, cluster(*THREE))
    condition = find(status.conditions, reasons.ANSWERED)
    assert condition is not None and (condition.status, condition.reason) == ("False", reasons.VMI_NOT_FOUND)
    assert condition.message == "there is no VirtualMachineInstance 'web' in namespace 'shop'"
    assert (status.outcome, status.nodes) == (None, None)
    assert is_answered(msgspec.structs.replace(review(), status=status)), "it is not asked again and again"


@pytest.mark.parametrize("name", ["../../../api/v1/nodes", "web/status", "Web", "x" * 254])
def test_a_name_that_is_none_is_found_before_it_is_looked_up(name: str) -> None:
    asked = msgspec.structs.replace(review(), spec=msgspec.structs.replace(review().spec, vmi_name=name))
    assert invalid(asked).startswith("spec.vmiName: Invalid value")
    assert not invalid(review(named("n1")))
    assert "must be one term" in invalid(review([named("n1"), named("n2")]))


def test_a_review_goes_a_few_minutes_after_it_was_made() -> None:
    assert seconds_left(review(made=-100), NOW) == LIFETIME - 100
    assert seconds_left(review(made=-10_000), NOW) == 0
