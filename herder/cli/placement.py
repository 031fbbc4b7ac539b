"""`herder explain placement`: asks for the cluster as it is, and shows what the scheduler would decide and why."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from herder.api import labels
from herder.api.core import Pod
from herder.api.kinds import ReservationView
from herder.cli.asking import WRONG_USE, Refusal
from herder.cli.tables import Part, Table, in_few_words
from herder.kube.client import Client, Selection
from herder.kube.errors import NotFound
from herder.kube.resources import CLAIMS, INSTANCES, NAMESPACES, NODES, PODS, RESERVATIONS, STORAGE_CLASSES, VOLUMES, Key
from herder.rules.placement import Scoring, rules_with
from herder.rules.placement.explain import PlacementExplanation, PlacementRow, explain
from herder.rules.placement.gather import FINISHED, Everything, snapshot_of
from herder.rules.reservations import Ledger

KINDS = {"pod": "pod", "pods": "pod", "po": "pod", "vm": "vm", "vms": "vm", "virtualmachine": "vm", "vmi": "vm"}


async def explain_placement(
    client: Client, asked: str, namespace: str, scoring: Scoring = "LeastAllocated"
) -> PlacementExplanation:
    pod = await find_pod(client, asked, namespace)
    ledger = Ledger()
    snapshot = snapshot_of(await gather(client), ledger)
    return explain(pod, snapshot, rules_with(scoring), ledger, time.time())


async def gather(client: Client) -> Everything:
    return Everything(
        nodes=(await client.list(NODES)).items,
        pods=(await client.list(PODS)).items,
        namespaces=(await client.list(NAMESPACES)).items,
        claims=(await client.list(CLAIMS)).items,
        volumes=(await client.list(VOLUMES)).items,
        classes=(await client.list(STORAGE_CLASSES)).items,
        reservations=await _reservations(client),
    )


async def _reservations(client: Client) -> Sequence[ReservationView]:
    """None where the cluster does not know the kind: then nothing is reserved."""
    try:
        return (await client.list(RESERVATIONS)).items
    except NotFound:
        return ()


async def find_pod(client: Client, asked: str, namespace: str) -> Pod:
    """`NAME`, `pod/NAME` or `vm/NAME`; a bare name is a pod's if there is one."""
    kind, slash, name = asked.partition("/")
    if not slash:
        kind, name = "", asked
    elif kind not in KINDS or not name:
        raise Refusal(f"{asked!r} is not NAME, pod/NAME or vm/NAME", WRONG_USE)
    pod = await client.find(PODS, Key(namespace, name)) if KINDS.get(kind, "pod") == "pod" else None
    if pod is None and KINDS.get(kind, "vm") == "vm":
        pod = await _launcher(client, name, namespace)
    if pod is None:
        what = {"pod": "no pod", "vm": "no virtual machine with a pod", "": "neither a pod nor a virtual machine with a pod"}
        raise Refusal(f"there is {what[KINDS.get(kind, '')]} {name!r} in namespace {namespace!r}")
    return pod


async def _launcher(client: Client, name: str, namespace: str) -> Pod | None:
    """The newest pod of the machine's instance."""
    try:
        instance = await client.get(INSTANCES, Key(namespace, name))
    except NotFound:
        return None
    listed = await client.list(PODS, Selection(namespace, labels=f"{labels.CREATED_BY}={instance.uid}"))
    pods = [pod for pod in listed.items if pod.status.phase not in FINISHED]
    pods.sort(key=lambda pod: (str(pod.metadata.creation_timestamp), pod.name))
    return pods[-1] if pods else None


def placement_text(found: PlacementExplanation) -> list[Part]:
    about = f"pod {found.namespace}/{found.name}"
    return [
        *([f"{about} is on {found.node_name}. Were it placed now:"] if found.node_name else []),
        _outcome(about, found),
        Table(("NODE", "FITS", "SCORE", "RULE", "WHY NOT"), [_cells(row) for row in found.nodes]),
        *_reserved(found),
    ]


def _outcome(about: str, found: PlacementExplanation) -> str:
    if found.reservation:
        return f"{about} would take reservation {found.reservation}, which holds room for it on {found.target_node}."
    return f"{about} would go to {found.target_node}." if found.target_node else f"{about}: {found.message}"


def _reserved(found: PlacementExplanation) -> list[Part]:
    """Room that is not free and not used either, and for whom."""
    rows = [(row.node, one.reservation, _amounts(one.held), "; ".join(one.owners)) for row in found.nodes for one in row.reserved]
    return ["", Table(("NODE", "RESERVATION", "HOLDS", "FOR"), rows)] if rows else []


def _amounts(held: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in held.items()) or "nothing"


def _cells(row: PlacementRow) -> tuple[str, ...]:
    score = f"{row.score:.1f}" if row.score is not None else ""
    return (row.node, "yes" if row.fits else "no", score, row.rule, _why_not(row))


def _why_not(row: PlacementRow) -> str:
    return in_few_words(row.details) if row.details else ", ".join(row.reasons)
