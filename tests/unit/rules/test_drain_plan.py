"""What `herder drain --plan` says, and how each guest stands while it is done: a row for each guest, and for nobody else."""

from typing import Any

import msgspec
import pytest

from herder.api.core import Node, Pod
from herder.api.kinds.instance import EvictionStrategy
from herder.api.labels import RUNTIME, SCHEDULABLE
from herder.rules.drains import EXTERNAL, DrainRow, Leaving, plan_drain, standing_of, with_taint, without_taint
from herder.rules.placement.gather import Everything, snapshot_of
from tests.unit.rules.machines import Json, instance, instance_view
from tests.unit.rules.migrations import migration, view
from tests.unit.rules.placement.cluster import node, pod
from tests.unit.rules.test_evacuation import DRAIN, MOVABLE, STUCK

READY = {SCHEDULABLE: "true", RUNTIME: "simulated"}
EMPTIED, OTHER = node("node-1", labels=READY), node("node-2", labels=READY)
NO_ROOM = "0/2 nodes: 1 lacks memory, 1 is the source node"
OWNERS: dict[str, Json] = {
    "bare": {},
    "of a DaemonSet": {
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": True}]
    },
    "mirror": {"annotations": {"kubernetes.io/config.mirror": "abc"}},
}


def guest(name: str = "web", *, spec: Json | None = None, conditions: list[Json] | None = None, deleted: bool = False) -> Json:
    whole = {"domain": {"memory": {"guest": "1Gi"}}, **(spec or {})}
    made = instance(
        "Running", spec=whole, deleted=deleted, nodeName="node-1", runtime="simulated", conditions=conditions or MOVABLE
    )
    return {**made, "metadata": {**made["metadata"], "name": name, "uid": f"uid-{name}"}}


def rows(
    *guests: Json | tuple[Json, Json],
    nodes: tuple[Json, ...] = (EMPTIED, OTHER),
    pods: tuple[Json, ...] = (),
    default: EvictionStrategy = "None",
) -> list[DrainRow]:
    there = [msgspec.convert(one, Node) for one in nodes]
    snapshot = snapshot_of(Everything(there, [msgspec.convert(one, Pod) for one in pods]))
    return plan_drain(there[0], [_leaving(one) for one in guests], snapshot, DRAIN, default)


def _leaving(one: Json | tuple[Json, Json]) -> Leaving:
    document, moving = one if isinstance(one, tuple) else (one, None)
    return Leaving(instance_view(document), document, view(moving) if moving is not None else None)


def whole(name: str, on: str, phase: str = "Running", memory: str = "7.5Gi", **metadata: Any) -> Json:
    """A pod that leaves no room for a guest on a node of 8 GiB."""
    return {**pod(name, on=on, requests={"memory": memory}, metadata=metadata), "status": {"phase": phase}}


def test_a_guest_goes_to_another_node_and_takes_room_from_the_next() -> None:
    small = node("node-2", labels=READY, memory="2Gi")
    assert rows(guest("b"), guest("a"), nodes=(EMPTIED, small)) == [
        DrainRow("shop", "a", "node-2"),
        DrainRow("shop", "b", "", NO_ROOM),
    ]


@pytest.mark.parametrize(("own", "default"), [("External", "None"), (None, "External")])
def test_a_guest_that_others_handle_is_left_to_them(own: str | None, default: EvictionStrategy) -> None:
    [row] = rows(guest(spec={"evictionStrategy": own} if own else {}), default=default)
    assert row == DrainRow("shop", "web", "", "its eviction strategy is External: it is left to who handles it")


@pytest.mark.parametrize("strategy", ["None", "LiveMigrate", "LiveMigrateIfPossible"])
def test_every_other_guest_leaves_whatever_an_eviction_would_do(strategy: str) -> None:
    assert rows(guest(spec={"evictionStrategy": strategy})) == [DrainRow("shop", "web", "node-2")]


def test_a_guest_that_cannot_be_moved_stays_and_the_row_says_why() -> None:
    [row] = rows(guest(conditions=STUCK))
    assert row == DrainRow("shop", "web", "", "it cannot be moved: DisksNotLiveMigratable: claim a is ReadWriteOnce")


def test_a_guest_that_is_being_deleted_ends_where_it_is() -> None:
    assert rows(guest(deleted=True)) == [DrainRow("shop", "web", "", "it is being deleted, and ends here")]


def test_a_guest_on_its_way_goes_on_to_where_it_goes_and_takes_its_room_once() -> None:
    moving = migration("Running")
    moving["status"]["targetNode"] = "node-2"
    coming = whole("virt-launcher-web-target", "node-2", memory="6Gi")
    assert rows((guest(spec={"evictionStrategy": "External"}), moving), guest("z"), pods=(coming,)) == [
        DrainRow("shop", "web", "node-2", "it is on its way: migration move is Running"),
        DrainRow("shop", "z", "node-2"),
    ]


def test_a_migration_that_waits_for_its_turn_decides_where_its_guest_goes() -> None:
    three = (EMPTIED, OTHER, node("node-3", labels={**READY, "disktype": "ssd"}))
    waits = migration(addedNodeSelector={"disktype": "ssd"})
    assert rows((guest(), waits), nodes=three) == [DrainRow("shop", "web", "node-3", "as migration move asks")]
    assert rows((guest(), migration(addedNodeSelector={"disktype": "none"})), nodes=three)[0].target == ""


@pytest.mark.parametrize("kind", OWNERS)
def test_pods_without_a_guest_are_left_alone(kind: str) -> None:
    """They have no row, and go on taking their room."""
    here, there = whole("a", "node-1", **OWNERS[kind]), whole("b", "node-2", **OWNERS[kind])
    assert rows(pods=(here, there)) == []
    assert rows(guest(), pods=(here,)) == [DrainRow("shop", "web", "node-2")]
    assert rows(guest(), pods=(here, there))[0].why == NO_ROOM


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_pods_that_have_ended_take_no_room(phase: str) -> None:
    assert rows(guest(), pods=(whole("over", "node-2", phase),)) == [DrainRow("shop", "web", "node-2")]


def test_nobody_goes_to_a_node_that_is_drained_too() -> None:
    drained = node("node-2", labels=READY, taints=[{"key": DRAIN, "effect": "NoSchedule"}])
    [row] = rows(guest(), nodes=(EMPTIED, drained))
    assert (row.target, DRAIN in row.why) == ("", True)


def test_a_node_has_its_taint_once_and_keeps_the_others() -> None:
    other = {"key": "x", "value": "y", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}
    plain = msgspec.convert(node("a", taints=[other]), Node)
    taints = with_taint(plain, DRAIN) or []
    assert taints == [other, {"key": DRAIN, "effect": "NoSchedule"}]
    tainted = msgspec.convert(node("a", taints=taints), Node)
    assert with_taint(tainted, DRAIN) is None
    assert without_taint(tainted, DRAIN) == [other]
    assert without_taint(plain, DRAIN) is None


def told(reason: str, message: str) -> Json:
    return {"type": "Evacuating", "status": "False", "reason": reason, "message": message, "lastTransitionTime": None}


@pytest.mark.parametrize(
    ("document", "no_node", "state", "why"),
    [
        (None, "", "left", "has ended"),
        (instance("Succeeded", nodeName="node-1"), "", "left", "has ended"),
        (instance("Running", nodeName="node-2"), "", "left", "moved to node-2"),
        (guest(deleted=True), "", "waits", "it is being deleted, and ends here"),
        (instance("Scheduled", nodeName="node-1"), "", "waits", "its guest is Scheduled; it is moved once it runs"),
        (guest(), "", "waits", "its migration is about to be made"),
        (guest(), "no node can take it", "stays", "no node can take it"),
        (guest(conditions=STUCK), "", "stays", "it cannot be moved: DisksNotLiveMigratable: claim a is ReadWriteOnce"),
        (guest(conditions=[*MOVABLE, told("NoMatchingNode", "none")]), "", "stays", "none"),
        (guest(conditions=[*MOVABLE, told("PendingTimeout", "tried again")]), "", "waits", "tried again"),
        (
            guest(spec={"evictionStrategy": "External"}),
            "",
            "stays",
            EXTERNAL,
        ),
    ],
)
def test_each_guest_of_a_drained_node_has_left_or_waits_or_stays(document: Json | None, no_node: str, state: str, why: str) -> None:
    stands = standing_of(instance_view(document) if document is not None else None, "node-1", "None", no_node)
    assert (stands.state, stands.why) == (state, why)
