"""Where one migration may go: what is added only ever narrows, and every node has its reason."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from herder.api.core import Pod
from herder.api.kinds.migration import VirtualMachineInstanceMigrationSpec
from herder.api.labels import CPU_FEATURE, RUNTIME, SCHEDULABLE
from herder.api.node_selector import NodeSelector, NodeSelectorTerm
from herder.rules.placement import RULES, decide, needs_of
from herder.rules.targets import Added, Asked, added_by, asked_of, constrained, explain_target, impossible, why_waiting
from tests.unit.rules.machines import instance
from tests.unit.rules.placement.cluster import ZONE, Cluster, node, pod

Json = dict[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
SSD = {"key": "disktype", "operator": "In", "values": ["ssd"]}
AMD = {"key": "cpu", "operator": "NotIn", "values": ["intel"]}


def named(name: str) -> Json:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}


def affinity(*terms: Json, **beside: Any) -> Json:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}, **beside}}


def terms_of(made: Json) -> list[Json]:
    return made["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]


# --- the merge -------------------------------------------------------------------------------------------------------------------


def test_where_the_machine_asks_for_nothing_the_added_term_is_the_only_one() -> None:
    assert terms_of(constrained(None, [{"matchExpressions": [SSD]}])) == [{"matchExpressions": [SSD]}]
    assert terms_of(constrained({"podAffinity": {}}, named("a"))) == [named("a")]


def test_what_is_added_goes_into_every_term_and_nothing_else_changes() -> None:
    before = affinity({"matchExpressions": [AMD]}, named("b"), preferredDuringSchedulingIgnoredDuringExecution=[{"weight": 1}])
    made = constrained({**before, "podAntiAffinity": {"x": 1}}, {"matchExpressions": [SSD], **named("a")}, {"zone": "z"})
    zone = {"key": "zone", "operator": "In", "values": ["z"]}
    assert terms_of(made) == [
        {"matchExpressions": [AMD, SSD, zone], **named("a")},
        {"matchExpressions": [SSD, zone], "matchFields": [*named("b")["matchFields"], *named("a")["matchFields"]]},
    ]
    assert made["podAntiAffinity"] == {"x": 1}
    assert made["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] == [{"weight": 1}]
    assert terms_of(before) == [{"matchExpressions": [AMD]}, named("b")]


@pytest.mark.parametrize("nothing", [None, {}, [], [{}], {"matchExpressions": []}])
def test_an_empty_added_term_adds_nothing(nothing: Any) -> None:
    own = affinity({"matchExpressions": [SSD]})
    assert constrained(own, nothing) == own
    assert constrained(None, nothing) == {}


def test_an_empty_term_of_the_machine_stays_empty_and_matches_nothing() -> None:
    made = constrained(affinity({}, {"matchExpressions": [AMD]}), {"matchExpressions": [SSD]})
    assert terms_of(made) == [{}, {"matchExpressions": [AMD, SSD]}]
    assert terms_of(constrained(affinity(), {"matchExpressions": [SSD]})) == []


def test_requirements_of_the_processor_and_the_node_that_it_leaves_are_added_in_the_same_way() -> None:
    made = constrained(affinity({"matchExpressions": [AMD]}), None, extra=[SSD], not_on="a")
    elsewhere = {"key": "metadata.name", "operator": "NotIn", "values": ["a"]}
    assert terms_of(made) == [{"matchExpressions": [AMD, SSD], "matchFields": [elsewhere]}]


TESTS = st.one_of(
    st.builds(lambda key, op, values: {"key": key, "operator": op, "values": values}, st.sampled_from("ab"),
              st.sampled_from(["In", "NotIn"]), st.lists(st.sampled_from("12"), min_size=1, max_size=2)),
    st.builds(lambda key, op: {"key": key, "operator": op}, st.sampled_from("ab"), st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds(lambda key, op, n: {"key": key, "operator": op, "values": [n]}, st.sampled_from("ab"), st.sampled_from(["Gt", "Lt"]),
              st.sampled_from("012")),
)  # fmt: skip
NAMES = st.builds(
    lambda op, name: {"key": "metadata.name", "operator": op, "values": [name]},
    st.sampled_from(["In", "NotIn"]),
    st.sampled_from("xy"),
)
TERMS = st.fixed_dictionaries({"matchExpressions": st.lists(TESTS, max_size=2), "matchFields": st.lists(NAMES, max_size=1)})
NODES = [({}, "x"), ({"a": "1"}, "x"), ({"a": "2", "b": "1"}, "y"), ({"b": "2"}, "y"), ({"a": "1", "b": "2"}, "z")]


@given(st.one_of(st.none(), st.lists(TERMS, max_size=3)), TERMS, st.dictionaries(st.sampled_from("ab"), st.sampled_from("12")))
def test_the_merge_is_a_pure_and(own: list[Json] | None, added: Json, selector: dict[str, str]) -> None:
    """A node is allowed exactly where the machine's own rules, the added term and the added labels all allow it."""
    made = constrained(None if own is None else affinity(*own), added, selector)
    after = made.get("nodeAffinity", {}).get(REQUIRED)
    for labels, name in NODES:
        by_machine = own is None or NodeSelector({"nodeSelectorTerms": own}).matches(labels, name)
        empty = not added["matchExpressions"] and not added["matchFields"]
        by_term = empty or NodeSelectorTerm(added).matches(labels, name)
        by_labels = all(labels.get(key) == value for key, value in selector.items())
        allowed = after is None or NodeSelector(after).matches(labels, name)
        assert allowed == (by_machine and by_term and by_labels)


# --- what can never be -----------------------------------------------------------------------------------------------------------


def asked(term: Any = None, selector: dict[str, str] | None = None, *, source: str = "a", extra: Any = (), **spec: Any) -> Asked:
    written = {"vmiName": "web", "addedNodeSelectorTerm": term, "addedNodeSelector": selector}
    migration = msgspec.convert({k: v for k, v in written.items() if v is not None}, VirtualMachineInstanceMigrationSpec)
    return Asked(msgspec.convert(pod(**spec), Pod), added_by(migration), source, tuple(extra))


def why_never(question: Asked, *objects: Json) -> tuple[str, str] | None:
    found = impossible(question, Cluster(*objects).snapshot)
    return (found.reason, found.message) if found is not None else None


THREE = [node("a"), node("b", labels={"disktype": "ssd"}), node("c", labels={"disktype": "hdd"})]


def test_a_node_that_does_not_exist() -> None:
    said = ("NodeNotFound", "addedNodeSelectorTerm names node x, which does not exist")
    assert why_never(asked(named("x")), *THREE) == said


def test_the_node_where_the_guest_runs_already() -> None:
    said = ("AlreadyOnNode", "addedNodeSelectorTerm names node a, where the guest already runs")
    assert why_never(asked([named("a")]), *THREE) == said


def test_the_only_node_that_would_do_is_the_one_where_the_guest_runs() -> None:
    said = "b, where the guest already runs, is the only node that satisfies addedNodeSelectorTerm and the machine's own node rules"
    assert why_never(asked({"matchExpressions": [SSD]}, source="b"), *THREE) == ("AlreadyOnNode", said)


def test_a_node_that_the_machines_own_selector_does_not_allow() -> None:
    found = why_never(asked(named("c"), nodeSelector={"disktype": "ssd"}), *THREE)
    said = "0/3 nodes: 1 does not match the machine's own node rules, 1 excluded by addedNodeSelectorTerm, 1 is the source node"
    assert found == ("NoMatchingNode", said)


def test_a_label_that_contradicts_the_machines_own_selector() -> None:
    found = why_never(asked(None, {"disktype": "hdd"}, nodeSelector={"disktype": "ssd"}), *THREE)
    said = "addedNodeSelector asks for disktype=hdd, and the machine's own nodeSelector for disktype=ssd: no node can have both"
    assert found == ("ConflictingNodeSelector", said)


@pytest.mark.parametrize("operator", ["NotIn", "DoesNotExist"])
def test_an_expression_that_contradicts_the_machines_own_selector(operator: str) -> None:
    test = {"key": "disktype", "operator": operator, **({"values": ["ssd"]} if operator == "NotIn" else {})}
    found = why_never(asked({"matchExpressions": [test]}, nodeSelector={"disktype": "ssd"}), *THREE)
    assert found is not None and found[0] == "ConflictingNodeSelector"
    assert found[1].startswith(f"addedNodeSelectorTerm asks for disktype {operator}")


def test_an_expression_that_contradicts_the_added_labels() -> None:
    found = why_never(asked({"matchExpressions": [SSD]}, {"disktype": "hdd"}), *THREE)
    assert found is not None and found[0] == "ConflictingNodeSelector"


def test_a_cluster_of_one_node() -> None:
    assert why_never(asked(), node("a")) == ("NoMatchingNode", "0/1 nodes: 1 is the source node")
    assert why_never(asked(source="")) == ("NoMatchingNode", "0/0 nodes: there are no nodes")


def test_a_processor_that_no_other_node_has() -> None:
    extra = [{"key": "feature", "operator": "In", "values": ["true"]}]
    found = why_never(asked(extra=extra), *THREE)
    said = "0/3 nodes: 2 lack the CPU that the guest was started with, 1 is the source node"
    assert found == ("MissingCPUFeatures", said)


def test_another_runtime_is_told_from_another_processor() -> None:
    extra = [{"key": RUNTIME, "operator": "In", "values": ["qemu"]}, {"key": "feature", "operator": "In", "values": ["true"]}]
    nodes = [node("a"), node("b", labels={RUNTIME: "simulated", "feature": "true"}), node("c", labels={RUNTIME: "qemu"})]
    said = "0/3 nodes: 1 has another runtime, 1 is the source node, 1 lacks the CPU that the guest was started with"
    assert why_never(asked(extra=extra), *nodes) == ("MissingCPUFeatures", said)
    assert why_never(asked(extra=extra), *nodes[:2]) == ("NoMatchingNode", "0/2 nodes: 1 has another runtime, 1 is the source node")
    rows = explain_target(asked(extra=extra), Cluster(*nodes).snapshot).rows
    assert [row.why for row in rows][1:] == ["has another runtime", "lacks the CPU that the guest was started with"]


def test_what_may_pass_is_waited_for() -> None:
    full, cordoned = node("b", cpu="1"), node("b", unschedulable=True)
    tainted = node("b", taints=[{"key": "x", "effect": "NoSchedule"}])
    for other in (full, cordoned, tainted):
        assert why_never(asked(named("b"), requests={"cpu": "2"}), node("a"), other) is None
    # Whether a node is ready for machines comes and goes: it is no rule of the machine.
    assert why_never(asked(named("b"), nodeSelector={SCHEDULABLE: "true"}), node("a"), node("b")) is None


# --- every node ------------------------------------------------------------------------------------------------------------------


def test_the_sentence_of_a_migration_that_waits() -> None:
    ssd = {"disktype": "ssd"}
    cluster = Cluster(
        *(node(name, labels=ssd, cpu="1") for name in ("b", "c")),
        node("d", labels=ssd, taints=[{"key": "x", "effect": "NoSchedule"}]),
        *(node(name) for name in ("e", "f")),
    )
    question = asked({"matchExpressions": [SSD]}, source="", requests={"cpu": "2"})
    said = "0/5 nodes: 2 lack cpu, 1 has taint x, 2 excluded by addedNodeSelectorTerm"
    assert why_waiting(question, cluster.snapshot) == said
    assert impossible(question, cluster.snapshot) is None


def test_the_sentence_stays_one_although_each_node_has_a_reason_of_its_own() -> None:
    cluster = Cluster(*(node(f"n{n:02}", taints=[{"key": f"t{n:02}", "effect": "NoSchedule"}]) for n in range(40)))
    said = why_waiting(asked(source=""), cluster.snapshot)
    assert said.startswith("0/40 nodes: 1 has taint t00, ") and said.endswith(", 1 has taint t11, 28 for other reasons")


def test_each_node_has_a_row() -> None:
    ssd = {"disktype": "ssd"}
    cluster = Cluster(
        node("a", labels=ssd),
        node("b", labels=ssd),
        node("c", labels=ssd, cpu="1", memory="1Gi"),
        node("d", labels=ssd, unschedulable=True),
        node("e"),
        node("f", labels=ssd, taints=[{"key": "x", "value": "y", "effect": "NoExecute"}]),
        node("g", labels={**ssd, "site": "north"}, pods="0"),
        node("h", labels={**ssd, "no": "go"}),
        node("i", labels={**ssd, "no": "go"}),
    )
    own = affinity({"matchExpressions": [{"key": "no", "operator": "DoesNotExist"}]})
    found = explain_target(
        asked({"matchExpressions": [SSD]}, requests={"cpu": "2", "memory": "2Gi"}, affinity=own), cluster.snapshot
    )
    assert (found.node, found.impossible) == ("b", None)
    assert [(row.node, row.fits, row.why) for row in found.rows] == [
        ("b", True, ""),
        ("a", False, "is the source node"),
        ("c", False, "lacks cpu and memory"),
        ("d", False, "is cordoned"),
        ("e", False, "excluded by addedNodeSelectorTerm"),
        ("f", False, "has taint x"),
        ("g", False, "lacks room for another pod"),
        ("h", False, "does not match the machine's own node rules"),
        ("i", False, "does not match the machine's own node rules"),
    ]
    assert found.rows[0].score is not None
    assert found.summary == (
        "1/9 nodes: 1 has taint x, 1 is cordoned, 1 lacks cpu and memory, 1 lacks room for another pod,"
        " 2 do not match the machine's own node rules, 1 excluded by addedNodeSelectorTerm, 1 is the source node"
    )


def test_a_node_that_is_not_ready_for_machines_says_so() -> None:
    found = explain_target(asked(nodeSelector={SCHEDULABLE: "true"}), Cluster(node("a"), node("b")).snapshot)
    assert [row.why for row in found.rows] == ["is the source node", "is not ready for machines"]


def test_terms_of_the_machine_that_name_other_nodes_are_its_own_rules() -> None:
    cluster = Cluster(node("a"), node("b"), node("c"))
    found = explain_target(asked(named("b"), affinity=affinity(named("c"))), cluster.snapshot)
    assert [row.why for row in found.rows] == [
        "is the source node",
        "does not match the machine's own node rules",
        "excluded by addedNodeSelectorTerm",
    ]


def test_neighbours_and_volumes_speak_in_the_schedulers_words() -> None:
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "db"}}}
    cluster = Cluster(node("a", "z1"), node("b", "z1"), node("c", "z2"), pod("db", on="a", labels={"app": "db"}))
    apart = {"podAntiAffinity": {REQUIRED: [term]}}
    found = explain_target(asked(affinity=apart), cluster.snapshot)
    assert [(row.node, row.why) for row in found.rows] == [
        ("c", ""),
        ("a", "is the source node"),
        ("b", "didn't match pod anti-affinity rules"),
    ]
    disk = [{"name": "d", "persistentVolumeClaim": {"claimName": "disk"}}]
    waiting = why_waiting(asked(volumes=disk), cluster.snapshot)
    assert waiting == '0/3 nodes: 2 must wait: persistentvolumeclaim "disk" not found, 1 is the source node'


CLUSTERS = st.lists(
    st.tuples(st.sampled_from(["", "ssd", "hdd"]), st.booleans(), st.booleans(), st.sampled_from(["1", "4"])),
    min_size=1,
    max_size=6,
)


@given(CLUSTERS, st.one_of(st.just(None), TERMS, st.just({"matchExpressions": [SSD]}), st.just(named("n1"))), st.booleans())
def test_a_node_fits_exactly_where_the_scheduler_would_let_the_target_pod_in(
    nodes: list[tuple[str, bool, bool, str]], term: Json | None, own: bool
) -> None:
    taint = {"key": "x", "effect": "NoSchedule"}
    made = [
        node(
            f"n{number}",
            labels={"disktype": disk} if disk else {},
            unschedulable=cordoned,
            taints=[taint] if tainted else [],
            cpu=cpu,
        )
        for number, (disk, cordoned, tainted, cpu) in enumerate(nodes)
    ]
    cluster = Cluster(*made)
    rules = {"affinity": affinity({"matchExpressions": [SSD]})} if own else {}
    question = asked(term, source="n0", requests={"cpu": "2"}, **rules)
    target = pod(requests={"cpu": "2"}, affinity=constrained(rules.get("affinity"), term, not_on="n0"))
    decision = decide(needs_of(msgspec.convert(target, Pod)), cluster.snapshot, RULES)
    found = explain_target(question, cluster.snapshot)
    assert {row.node for row in found.rows if row.fits} == {
        name for name, row in cluster.snapshot.nodes.rows.items() if decision.fitting[row]
    }
    assert found.node == decision.node
    assert len(found.rows) == len(nodes) and all(row.fits or row.why for row in found.rows)
    if found.impossible is not None:
        assert not any(row.fits for row in found.rows)


def test_an_instance_is_asked_about_as_its_own_pod() -> None:
    written = instance("Running", spec={"domain": {}, "nodeSelector": {"disktype": "ssd"}}, nodeName="a")
    question = asked_of(written, Added({}, {"x": "y"}))
    assert (question.source, question.pod.spec.node_selector["disktype"]) == ("a", "ssd")
    assert question.pod.spec.containers and question.pod.spec.containers[0].resources.requests["memory"]


# --- in detail -------------------------------------------------------------------------------------------------------------------


def test_each_node_names_the_very_thing_that_says_no_to_those_who_may_read_nodes() -> None:
    cpu = [{"key": f"{CPU_FEATURE}{name}", "operator": "In", "values": ["true"]} for name in ("aes", "avx512f")]
    both = {f"{CPU_FEATURE}aes": "true", f"{CPU_FEATURE}avx512f": "true", "disktype": "ssd", "zone": "z"}
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    cluster = Cluster(
        node("elsewhere", labels={**both, "zone": "y"}),
        node("full", labels=both, cpu="1"),
        node("lacking", labels={**both, f"{CPU_FEATURE}avx512f": "false"}),
        node("slow", labels={**both, "disktype": "hdd"}),
        node("source", labels=both),
        node("tainted", labels=both, taints=[taint]),
    )
    wants = msgspec.convert(pod(nodeSelector={"disktype": "ssd"}, requests={"cpu": "2"}), Pod)
    added = Added({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]})
    asked = Asked(wants, added, "source", tuple(cpu))
    told = {row.node: list(row.details) for row in explain_target(asked, cluster.snapshot, detailed=True).rows}
    assert told == {
        "elsewhere": ["zone In (z): the node has zone=y"],
        "full": ["Insufficient cpu: 2 requested, 1 of 1 free"],
        "lacking": ["avx512f"],
        "slow": ["nodeSelector disktype=ssd: the node has disktype=hdd"],
        "source": [],
        "tainted": ["taint k=v:NoSchedule is not tolerated"],
    }
    assert not any(row.details for row in explain_target(asked, cluster.snapshot).rows)
