"""`herder explain migratability|baseline`: asks for the nodes as they are, and shows what the rules say of them."""

from __future__ import annotations

from collections.abc import Sequence

from herder.api.core import Node
from herder.api.selector_text import parse_selector
from herder.cli.asking import WRONG_USE, Refusal
from herder.cli.tables import Part, Table
from herder.kube.client import Client
from herder.kube.resources import INSTANCES, NODES, Key
from herder.rules.migratability.baseline import Baseline, Change, baseline_of
from herder.rules.migratability.explain import (
    ClusterLevels,
    GuestTakers,
    LevelRow,
    NodeTakers,
    TakerRow,
    explain_guest,
    explain_levels,
    explain_node,
)

Migratability = ClusterLevels | NodeTakers | GuestTakers
KINDS = {"node": "node", "nodes": "node", "no": "node", "vm": "vm", "vms": "vm", "virtualmachine": "vm", "vmi": "vm"}
# In a row of text; -o json has them all.
MOST_WORDS = 8


async def explain_migratability(client: Client, asked: str | None, namespace: str) -> Migratability:
    nodes = (await client.list(NODES)).items
    return await _of_one(client, asked, namespace, nodes) if asked else explain_levels(nodes)


async def _of_one(client: Client, asked: str, namespace: str, nodes: list[Node]) -> NodeTakers | GuestTakers:
    """`NAME`, `node/NAME` or `vm/NAME`; a bare name is a node's if there is one."""
    kind, slash, name = asked.partition("/")
    if not slash:
        kind, name = "", asked
    elif kind not in KINDS or not name:
        raise Refusal(f"{asked!r} is not NAME, node/NAME or vm/NAME", WRONG_USE)
    first = next((node for node in nodes if node.name == name), None) if KINDS.get(kind, "node") == "node" else None
    if first is not None:
        return explain_node(first, nodes)
    if KINDS.get(kind, "vm") == "vm":
        instance = await client.find(INSTANCES, Key(namespace, name))
        if instance is not None:
            status = instance.status
            if status is None or status.cpu is None or not status.node_name:
                raise Refusal(
                    f"the guest of {name!r} has not been started yet: its processor will be that of its first node."
                    " `herder explain migratability` shows what each node would mean"
                )
            return explain_guest((namespace, name), status.cpu, status.node_name, nodes)
    what = {"node": "no node", "vm": "no running virtual machine", "": "neither a node nor a running virtual machine"}
    place = "" if KINDS.get(kind) == "node" else f" in namespace {namespace!r}"
    raise Refusal(f"there is {what[KINDS.get(kind, '')]} {name!r}{place}")


def migratability_text(found: Migratability) -> list[Part]:
    match found:
        case ClusterLevels():
            return [Table(("NODE", "LEVEL", "MOVES TO", "HOST MODEL", "WHAT OTHERS LACK"), [_level(row) for row in found.nodes])]
        case NodeTakers():
            return [*_of_node(found.first_node), *_takers(found.nodes)]
        case GuestTakers():
            return [*_of_guest(found), *_takers(found.nodes)]


def _level(row: LevelRow) -> tuple[str, ...]:
    if row.level is None:
        return (row.node, "", "", row.model, f"({row.closed})")
    return (row.node, str(row.level), f"{row.takers} of {row.of}", row.model or "(none)", _words(row.others_lack))


def _of_node(own: LevelRow) -> list[Part]:
    model = f"model {own.model}" if own.model else "no processor: the node has no host model"
    level = (
        f"{own.node} {own.closed}: no level"
        if own.level is None
        else f"Level {own.level}: {own.takers} of {own.of} nodes would take it"
    )
    return [f"A host-model guest that is first started on {own.node} gets {model}.", f"{level[0].upper()}{level[1:]}."]


def _of_guest(found: GuestTakers) -> list[Part]:
    beyond = f" with {_words(found.features)}" if found.features else ""
    return [
        f"vm {found.namespace}/{found.name} runs on {found.node_name} and was started with model {found.model}{beyond}.",
        f"{found.takers} of {len(found.nodes)} other nodes would take it.",
    ]


def _takers(rows: tuple[TakerRow, ...]) -> list[Part]:
    cells = [(row.node, "yes" if row.takes else "no", f"{row.shared} of {row.needed}", _why_not(row)) for row in rows]
    return [Table(("NODE", "TAKES IT", "HAS", "LACKS"), cells)] if rows else []


def _why_not(row: TakerRow) -> str:
    return ", ".join(part for part in (_words(row.lacks), f"({row.closed})" if row.closed else "") if part)


async def explain_baseline(client: Client, selector: str | None) -> Baseline:
    nodes = (await client.list(NODES)).items
    try:
        wanted = parse_selector(selector or "")
    except ValueError as error:
        raise Refusal(f"--nodes: {error}", WRONG_USE) from None
    chosen = [node for node in nodes if wanted.matches(node.labels)]
    if not chosen:
        raise Refusal(f"--nodes: no node has labels like {selector!r}" if selector else "there are no nodes")
    return baseline_of(chosen, nodes)


def baseline_text(found: Baseline) -> list[Part]:
    if not found.nodes:
        return ["None of these nodes takes guests now."]
    shown: list[Part] = [f"{len(found.nodes)} nodes: {_words(found.nodes)}", f"vendor:   {', '.join(found.vendors) or 'not said'}"]
    if not found.model:
        return [*shown, "They have no model in common: a machine can name none that all of them have."]
    shown += [
        f"model:    {found.model}" + (f" (also {_words(found.models[1:])})" if found.models[1:] else ""),
        f"features: {_words(found.features) or 'none in common'}",
        "",
        "A machine that can be moved among all of them:",
        *snippet(found),
        "",
    ]
    return [*shown, Table(("NODE", "LEVEL NOW", "LEVEL WITH IT", "MOVES TO"), [_change(one) for one in found.changes])]


def snippet(found: Baseline) -> list[str]:
    """To be pasted into `spec.template.spec.domain` of a VirtualMachine."""
    features = [f"    - name: {name}" for name in found.beyond]
    return ["  cpu:", f"    model: {found.model}", *(["    features:"] if features else []), *features]


def _change(change: Change) -> tuple[str, ...]:
    if change.level_then is None:
        return (change.node, str(change.level_now), "(cannot start)", "")
    return (change.node, str(change.level_now), str(change.level_then), f"{change.takers_then} of {change.of}")


def _words(words: Sequence[str]) -> str:
    more = f" and {len(words) - MOST_WORDS} more" if len(words) > MOST_WORDS else ""
    return ", ".join(words[:MOST_WORDS]) + more
