"""`herder explain migratability|baseline`: asks for the nodes as they are, and shows what the rules say of them."""

from __future__ import annotations

from collections.abc import Callable

from herder.api.core import Node
from herder.api.kinds.instance import StartedCPU
from herder.api.selector_text import parse_selector
from herder.cli.asking import Refusal
from herder.cli.tables import table
from herder.kube.client import Client
from herder.kube.resources import INSTANCES, NODES, Key
from herder.rules.migratability.baseline import Baseline, Change, baseline_of
from herder.rules.migratability.explain import Row, all_nodes, from_guest, from_node, takers
from herder.rules.migratability.levels import Count

Show = Callable[[str], None]
KINDS = {"node": "node", "nodes": "node", "no": "node", "vm": "vm", "vms": "vm", "virtualmachine": "vm", "vmi": "vm"}
MOST_WORDS = 8


async def explain_migratability(client: Client, asked: str | None, namespace: str, show: Show) -> None:
    nodes = (await client.list(NODES)).items
    for line in await _lines(client, asked, namespace, nodes) if asked else overview(nodes):
        show(line)


async def _lines(client: Client, asked: str, namespace: str, nodes: list[Node]) -> list[str]:
    """`NAME`, `node/NAME` or `vm/NAME`; a bare name is a node's if there is one."""
    kind, slash, name = asked.partition("/")
    if not slash:
        kind, name = "", asked
    elif kind not in KINDS or not name:
        raise Refusal(f"{asked!r} is not NAME, node/NAME or vm/NAME")
    found = next((node for node in nodes if node.name == name), None) if KINDS.get(kind, "node") == "node" else None
    if found is not None:
        return of_node(found, nodes)
    if KINDS.get(kind, "vm") == "vm":
        instance = await client.find(INSTANCES, Key(namespace, name))
        if instance is not None:
            status = instance.status
            if status is None or status.cpu is None or not status.node_name:
                raise Refusal(
                    f"the guest of {name!r} has not been started yet: its processor will be that of its first node."
                    " `herder explain migratability` shows what each node would mean"
                )
            return of_guest(f"{namespace}/{name}", status.cpu, status.node_name, nodes)
    what = {"node": "no node", "vm": "no running virtual machine", "": "neither a node nor a running virtual machine"}
    place = "" if KINDS.get(kind) == "node" else f" in namespace {namespace!r}"
    raise Refusal(f"there is {what[KINDS.get(kind, '')]} {name!r}{place}")


def overview(nodes: list[Node]) -> list[str]:
    rows = all_nodes(nodes)
    heading = ("NODE", "LEVEL", "MOVES TO", "HOST MODEL", "WHAT OTHERS LACK")
    return table([heading, *map(_first_node, rows)])


def _first_node(row: Row) -> tuple[str, ...]:
    if row.count is None:
        return (row.node, "", "", row.model, f"({row.closed})")
    return (row.node, str(row.count.level), _of(row.count), row.model or "(none)", _words(row.lacks))


def of_node(node: Node, nodes: list[Node]) -> list[str]:
    own = next(row for row in all_nodes(nodes) if row.node == node.name)
    about = f"A host-model guest that is first started on {node.name} gets {row_model(own)}"
    level = f"level {own.count.level}: {_of(own.count)} nodes would take it" if own.count else f"{node.name} {own.closed}: no level"
    return [f"{about}.", f"{level[0].upper()}{level[1:]}.", *_targets(from_node(node, nodes))]


def row_model(row: Row) -> str:
    return f"model {row.model}" if row.model else "no processor: the node has no host model"


def of_guest(name: str, cpu: StartedCPU, here: str, nodes: list[Node]) -> list[str]:
    rows = from_guest(cpu, here, nodes)
    features = [one.name for one in cpu.features or () if one.policy in (None, "require")]
    beyond = f" with {_words(features)}" if features else ""
    return [
        f"vm {name} runs on {here} and was started with model {cpu.model}{beyond}.",
        f"{len(takers(rows))} of {len(rows)} other nodes would take it.",
        *_targets(rows),
    ]


def _targets(rows: list[Row]) -> list[str]:
    cells = [(row.node, "no" if row.lacks or row.closed else "yes", _why_not(row)) for row in rows]
    return table([("NODE", "TAKES IT", "LACKS"), *cells]) if rows else []


def _why_not(row: Row) -> str:
    return ", ".join((*row.lacks, *((f"({row.closed})",) if row.closed else ())))


async def explain_baseline(client: Client, selector: str | None, show: Show) -> None:
    nodes = (await client.list(NODES)).items
    try:
        wanted = parse_selector(selector or "")
    except ValueError as error:
        raise Refusal(f"--nodes: {error}") from None
    chosen = [node for node in nodes if wanted.matches(node.labels)]
    if not chosen:
        raise Refusal(f"--nodes: no node has labels like {selector!r}" if selector else "there are no nodes")
    for line in baseline_lines(baseline_of(chosen, nodes)):
        show(line)


def baseline_lines(found: Baseline) -> list[str]:
    if not found.nodes:
        return ["None of these nodes takes guests now."]
    shown = [f"{len(found.nodes)} nodes: {_words(found.nodes)}", f"vendor:   {', '.join(found.vendors) or 'not said'}"]
    if not found.model:
        return [*shown, "They have no model in common: a machine can name none that all of them have."]
    shown += [
        f"model:    {found.model}" + (f" (also {_words(found.models[1:])})" if found.models[1:] else ""),
        f"features: {', '.join(found.features) or 'none in common'}",
        "",
        "A machine that can be moved among all of them:",
        *snippet(found),
        "",
    ]
    return [*shown, *table([("NODE", "LEVEL NOW", "LEVEL WITH IT", "MOVES TO"), *map(_change, found.changes)])]


def snippet(found: Baseline) -> list[str]:
    """To be pasted into `spec.template.spec.domain` of a VirtualMachine."""
    features = [f"    - name: {name}" for name in found.beyond]
    return ["  cpu:", f"    model: {found.model}", *(["    features:"] if features else []), *features]


def _change(change: Change) -> tuple[str, ...]:
    if change.then is None:
        return (change.node, str(change.now.level), "(cannot start)", "")
    return (change.node, str(change.now.level), str(change.then.level), _of(change.then))


def _of(count: Count) -> str:
    return f"{count.takers} of {count.nodes}"


def _words(words: list[str] | tuple[str, ...]) -> str:
    more = f" and {len(words) - MOST_WORDS} more" if len(words) > MOST_WORDS else ""
    return ", ".join(words[:MOST_WORDS]) + more
