"""Which pods `herder evacuate` is about, and what it takes to say where their replacements would go."""

from __future__ import annotations

import msgspec

from herder.api.core import Pod
from herder.api.kinds import VirtualMachineInstance
from herder.api.selector_text import parse_selector
from herder.cli.asking import WRONG_USE, Refusal
from herder.cli.job.cluster import Seen
from herder.cli.placement import find_pod, gather
from herder.kube.client import Client, Selection
from herder.kube.errors import Forbidden
from herder.kube.resources import INSTANCES, NODES, PODS, Key, key_of
from herder.rules.jobs.arbitration.candidate import is_machine
from herder.rules.jobs.evacuation import FindsPlaces
from herder.rules.jobs.evacuation_places import Name, Places
from herder.rules.placement import RULES
from herder.rules.placement.gather import snapshot_of
from herder.rules.plans import Document

NO_ROOM = "you may not read {}: where room would be found is not known"


class Selected(msgspec.Struct, frozen=True):
    pod: Pod
    # As it is stored.
    written: Document


async def select(client: Client, names: tuple[str, ...], selector: str, node: str, namespace: str) -> list[Selected]:
    """Raises what a person is to be told where there are none."""
    if names and (selector or node):
        raise Refusal("POD excludes -l and --node: name the pods, or pick them", WRONG_USE)
    if not names and not selector and not node:
        raise Refusal("say which pods: POD, -l SELECTOR, --node NODE, or the last two together", WRONG_USE)
    if names:
        found = [await find_pod(client, name, namespace) for name in dict.fromkeys(names)]
        return [await _written(client, pod) for pod in {pod.uid: pod for pod in found}.values()]
    try:
        parse_selector(selector)
    except ValueError as error:
        raise Refusal(f"-l: {error}", WRONG_USE) from None
    wanted = Selection(namespace, labels=selector, fields=f"spec.nodeName={node}" if node else "")
    selected = [_read(raw) async for page in client.pages(PODS, wanted) for raw in page.items]
    if not selected:
        raise Refusal(await _none(client, selector, node, namespace))
    return selected


async def read_places(client: Client, selected: list[Selected], seen: Seen) -> tuple[FindsPlaces | None, tuple[str, ...]]:
    """None, and why, for who may not read nodes and what else the scheduler looks at."""
    try:
        snapshot = snapshot_of(await gather(client))
    except Forbidden as error:
        return None, (NO_ROOM.format(error.details.get("kind") or "nodes"),)
    written = {(one.pod.namespace, one.pod.name): one.written for one in selected}
    guests = await _guests(client, selected, seen)
    return Places(snapshot, RULES, seen.config, written, guests), ()


async def _guests(client: Client, selected: list[Selected], seen: Seen) -> dict[Name, tuple[VirtualMachineInstance, Document]]:
    found: dict[Name, tuple[VirtualMachineInstance, Document]] = {}
    for one in selected:
        instance = seen.cluster.instance_of(one.pod)
        if instance is not None and is_machine(one.pod, instance):
            raw = await client.get_raw(INSTANCES, key_of(instance))
            found[one.pod.namespace, one.pod.name] = instance, msgspec.json.decode(raw)
    return found


async def _written(client: Client, pod: Pod) -> Selected:
    return _read(await client.get_raw(PODS, key_of(pod)))


def _read(raw: bytes | msgspec.Raw) -> Selected:
    return Selected(PODS.decode(raw), msgspec.json.decode(raw))


async def _none(client: Client, selector: str, node: str, namespace: str) -> str:
    labelled = f" with labels {selector}" if selector else ""
    if not node:
        return f"there is no pod{labelled} in namespace {namespace!r}"
    try:
        if await client.find(NODES, Key("", node)) is None:
            return f"there is no node {node!r}"
    except Forbidden:
        pass
    return f"there is no pod{labelled} on node {node}" + (f" in namespace {namespace!r}" if namespace else "")
