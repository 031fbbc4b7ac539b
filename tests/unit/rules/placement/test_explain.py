"""What `herder explain placement` shows is what the scheduler decides."""

from typing import Any

import msgspec
import pytest

from herder.api.core import Node, Pod
from herder.api.labels import MIGRATABILITY_LEVEL as LEVEL
from herder.cli.placement import placement_text
from herder.cli.tables import plain
from herder.rules.placement import OF_THE_NODE, RULES, Rule, still_fits
from herder.rules.placement.explain import explain
from herder.rules.placement.gather import Everything, snapshot_of
from herder.rules.reservations import Ledger
from tests.unit.rules.placement.cluster import ZONE, Cluster, node, pod, read
from tests.unit.rules.reservations.objects import reservation, web


def explained(cluster: Cluster, document: dict[str, Any]) -> list[str]:
    view = msgspec.convert(document, Pod)
    return plain(placement_text(explain(view, cluster.snapshot, RULES)))


def test_each_node_has_a_row_with_its_score_or_the_first_rule_that_says_no() -> None:
    taint = {"key": "dedicated", "effect": "NoSchedule"}
    cluster = Cluster(node("a", taints=[taint], cpu="1"), node("b"), node("c", cpu="1", memory="1Gi"))
    wants = pod(requests={"cpu": "2", "memory": "2Gi"})
    score = cluster.scores(wants)["b"]
    assert explained(cluster, wants) == [
        "pod default/p would go to b.",
        "NODE   FITS   SCORE   RULE        WHY NOT",
        f"b      yes    {score:.1f}",
        "a      no             taints      taint dedicated:NoSchedule is not tolerated",
        "c      no             resources   Insufficient cpu: 2 requested, 1 of 1 free;"
        " Insufficient memory: 2Gi requested, 1Gi of 1Gi free",
    ]


def required(*terms: list[dict[str, Any]]) -> dict[str, Any]:
    """An affinity of terms, each a list of tests of labels."""
    listed = [{"matchExpressions": term} for term in terms]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": listed}}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def others(kind: str, app: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": ZONE}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


HERE = node("a", "north", labels={"disktype": "hdd", LEVEL: "33"})
DISK: dict[str, Any] = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "disk"}}]}
BOUND = {
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "disk", "namespace": "default", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
    "spec": {"volumeName": "pv", "accessModes": ["ReadWriteOncePod"]},
}
VOLUME = {
    "kind": "PersistentVolume",
    "metadata": {"name": "pv"},
    "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression(ZONE, "In", "south")]}]}}},
}
SPREAD = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "web"}}}
PORT = [{"containerPort": 80, "hostPort": 80}]
WEB = {"app": "web"}


@pytest.mark.parametrize(
    ("cluster", "wants", "details"),
    [
        ([HERE], pod(nodeSelector={"disktype": "ssd"}), ["nodeSelector disktype=ssd: the node has disktype=hdd"]),
        ([HERE], pod(nodeSelector={"gpu": "yes"}), ["nodeSelector gpu=yes: the node has no gpu"]),
        ([HERE], pod(affinity=required([expression(LEVEL, "Gt", "49")])), ["level 33, 50 required"]),
        ([node("a")], pod(affinity=required([expression(LEVEL, "Gt", "49")])), ["no level, 50 required"]),
        (
            [HERE],
            pod(
                affinity=required(
                    [
                        expression("disktype", "In", "ssd", "nvme"),
                        expression(ZONE, "Exists"),
                        expression("disktype", "NotIn", "hdd"),
                    ]
                )
            ),
            [
                "nodeAffinity disktype In (ssd, nvme): the node has disktype=hdd",
                "nodeAffinity disktype NotIn (hdd): the node has disktype=hdd",
            ],
        ),
        (
            [HERE],
            pod(
                affinity=required(
                    [expression("gpu", "Exists"), expression(LEVEL, "Gt", "49")], [expression("disktype", "DoesNotExist")]
                )
            ),
            [
                "nodeAffinity term 1 of 2: gpu Exists: the node has no gpu and level 33, 50 required",
                "nodeAffinity term 2 of 2: disktype DoesNotExist: the node has disktype=hdd",
            ],
        ),
        (
            [HERE],
            pod(
                affinity={
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [{"matchFields": [expression("metadata.name", "In", "b")]}]
                        }
                    }
                }
            ),
            ["nodeAffinity metadata.name In (b): the node is a"],
        ),
        (
            [node("a", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}, {"key": "gone", "effect": "NoExecute"}])],
            pod(tolerations=[{"key": "other", "operator": "Exists"}]),
            ["taint k=v:NoSchedule is not tolerated", "taint gone:NoExecute is not tolerated"],
        ),
        ([node("a", unschedulable=True)], pod(), ["the node is cordoned (spec.unschedulable)"]),
        (
            [node("a", pods=1), pod("q", on="a", requests={"cpu": "500m"})],
            pod(requests={"cpu": "3800m", "example.com/gpu": "1"}),
            [
                "Insufficient cpu: 3800m requested, 3500m of 4 free",
                "Insufficient example.com/gpu: 1 requested, 0 of 0 free",
                "Too many pods: 1 requested, 0 of 1 free",
            ],
        ),
        ([HERE, pod("q", on="a", ports=PORT)], pod(ports=PORT), ["hostPort TCP 80 is taken by pod default/q"]),
        ([HERE, BOUND, VOLUME], pod(**DISK), [f"claim disk: volume pv: nodeAffinity {ZONE} In (south): the node has {ZONE}=north"]),
        ([HERE, BOUND, VOLUME, pod("q", on="a", **DISK)], pod(**DISK), ["claim disk is ReadWriteOncePod, and another pod uses it"]),
        (
            [HERE, node("b", "south", unschedulable=True), pod("q", on="a", labels=WEB)],
            pod(labels=WEB, topologySpreadConstraints=[SPREAD]),
            [f"topologySpreadConstraints {ZONE}=north: with this pod 2 there, 0 where there are fewest: maxSkew is 1"],
        ),
        ([node("a")], pod(labels=WEB, topologySpreadConstraints=[SPREAD]), [f"topologySpreadConstraints: the node has no {ZONE}"]),
        ([HERE], pod(affinity=others("podAffinity", "db")), [f"podAffinity: no pod with app in (db) is in {ZONE}=north"]),
        (
            [HERE, pod("q", on="a", labels=WEB)],
            pod(affinity=others("podAntiAffinity", "web")),
            [f"podAntiAffinity: pods with app in (web) are in {ZONE}=north"],
        ),
        (
            [HERE, pod("q", on="a", affinity=others("podAntiAffinity", "web"))],
            pod(labels=WEB),
            [f"podAntiAffinity of pods in {ZONE}=north: none with app in (web)"],
        ),
    ],
)
def test_the_very_selector_taint_level_or_amount_that_says_no_is_named(
    cluster: list[dict[str, Any]], wants: dict[str, Any], details: list[str]
) -> None:
    view = msgspec.convert(wants, Pod)
    rows = explain(view, Cluster(*cluster).snapshot, RULES).nodes
    assert next(list(row.details) for row in rows if row.node == "a") == details


def test_every_rule_that_refuses_nodes_can_name_what_says_no() -> None:
    assert [rule.name for rule in RULES if type(rule).details is Rule.details] == []


def test_a_table_has_the_first_details_and_counts_the_others() -> None:
    wants = pod(nodeSelector={f"k{number}": "v" for number in range(6)})
    assert explained(Cluster(node("a")), wants)[-1].endswith("nodeSelector k3=v: the node has no k3; and 2 more")


def test_a_pod_that_is_placed_is_explained_as_if_it_were_not() -> None:
    there = pod(on="a", requests={"cpu": "3"})
    said = explained(Cluster(node("a"), there), there)
    assert said[:2] == ["pod default/p is on a. Were it placed now:", "pod default/p would go to a."]


def test_where_none_fits_the_message_is_that_of_the_condition() -> None:
    cluster = Cluster(node("a", cpu="1"))
    wants = pod(requests={"cpu": "2"})
    assert explained(cluster, wants)[0] == f"pod default/p: {cluster.message(wants)}"


def test_what_the_pod_waits_for_is_said_of_every_node() -> None:
    wants = pod(volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "disk"}}])
    said = explained(Cluster(node("a")), wants)
    assert said[2].split(maxsplit=3) == ["a", "no", "volumes", 'persistentvolumeclaim "disk" not found']


def test_a_node_that_changed_after_the_decision_is_not_bound_to() -> None:
    cluster = Cluster(node("a"))
    assert still_fits(read(pod()), "a", cluster.snapshot, OF_THE_NODE)
    cluster.add(node("a", unschedulable=True))
    assert not still_fits(read(pod()), "a", cluster.snapshot, OF_THE_NODE)
    cluster.snapshot.remove_node("a")
    assert not still_fits(read(pod()), "a", cluster.snapshot, OF_THE_NODE)


def test_room_that_is_reserved_is_shown_and_for_whom_and_whether_the_pod_would_take_it() -> None:
    held = [reservation("for-web", node="a", requests={"cpu": "3", "memory": "1Gi"}), reservation("later", node="b")]
    nodes = [msgspec.convert(node(name), Node) for name in ("a", "b")]

    def lines(asked: Pod) -> list[str]:
        ledger = Ledger()
        snapshot = snapshot_of(Everything(nodes=nodes, pods=(), reservations=held), ledger)
        return plain(placement_text(explain(asked, snapshot, RULES, ledger)))

    stranger = lines(msgspec.convert(pod("stranger", requests={"cpu": "2"}), Pod))
    assert stranger[0] == "pod default/stranger would go to b."
    assert "a      no             resources   Insufficient cpu: 2 requested, 1 of 4 free" in stranger
    assert stranger[-3:] == [
        "NODE   RESERVATION   HOLDS               FOR",
        "b      later         cpu 1               ReplicaSet default/web",
        "a      for-web       cpu 3, memory 1Gi   ReplicaSet default/web",
    ]
    assert lines(web(requests={"cpu": "3"}))[0] == "pod default/web-1 would take reservation for-web, which holds room for it on a."
