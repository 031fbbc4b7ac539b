"""`herder pool plan POOL`: what the controller would do, before anything is changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from herder.cli.asking import WRONG_USE, Refusal, Where, asks_a_cluster, connected
from herder.cli.output import output_option, show
from herder.cli.pool.group import pool, pool_argument

if TYPE_CHECKING:
    from herder.api.kinds import VirtualMachinePool
    from herder.cli.output import Format
    from herder.cli.tables import Part
    from herder.kube.client import Client
    from herder.rules.pools.explain import PoolPlanExplanation

Document = dict[str, Any]
MOST_BYTES = 3 * 1024 * 1024


@pool.command()
@pool_argument
@click.option("--replicas", metavar="N", type=click.IntRange(0, 2**31 - 1), help="As if so many were wanted.")
@click.option(
    "-f",
    "--filename",
    "file",
    metavar="FILE",
    type=click.Path(path_type=Path, allow_dash=True),
    help="As if POOL had the spec of this file; - reads the standard input.",
)
@output_option
@asks_a_cluster
async def plan(where: Where, name: str, replicas: int | None, file: Path | None, output: Format | None) -> None:
    """Show what would be created, restarted and deleted, in order. Nothing is changed.

    The answer is the controller's own: the plan that it would carry out at once, and what would follow as things are now. Without
    --replicas and -f it is what is still to be done for POOL as it is. A file is checked by the API server as if it were applied.
    """
    from herder.api.world import RealWorld
    from herder.cli.pool.reading import read_pool, read_snapshot
    from herder.kube.cache.collector import collector_off
    from herder.rules.pools.explain import explain_plan

    if replicas is not None and file is not None:
        raise Refusal("--replicas and -f exclude each other: a number, or a whole new spec", WRONG_USE)
    wanted = _read(file, name) if file is not None else None
    async with connected(where) as (client, namespace):
        found, written = await read_pool(client, namespace, name)
        if replicas is not None:
            found, written = _with_replicas(written, replicas)
        elif wanted is not None:
            found, written = await _as_if_applied(client, found, written, wanted)
        snapshot, unknown = await read_snapshot(client, found, written)
        with collector_off():
            found_out = explain_plan(snapshot, RealWorld().now(), unknown)
        show(found_out, _text, output)


def _read(file: Path, name: str) -> Document:
    """The spec in the file."""
    from herder.api.registry import POOL
    from herder.api.yaml_documents import YamlError, read_yaml

    try:
        with click.open_file(str(file), "rb") as opened:
            raw: bytes = opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise Refusal(f"-f {file}: {error.strerror or error}", WRONG_USE) from None
    if len(raw) > MOST_BYTES:
        raise Refusal(f"-f {file}: is larger than {MOST_BYTES} bytes, which is more than an API server takes", WRONG_USE)
    try:
        document = read_yaml(raw)
    except (YamlError, UnicodeDecodeError) as error:
        raise Refusal(f"-f {file}: must hold one {POOL.kind} as YAML or JSON: {error}", WRONG_USE) from None
    if not isinstance(document, dict) or document.get("kind") != POOL.kind or not isinstance(document.get("spec"), dict):
        raise Refusal(f"-f {file}: must hold one {POOL.kind} with a spec", WRONG_USE)
    metadata = document.get("metadata")
    said = metadata.get("name") if isinstance(metadata, dict) else None
    if said not in (None, name):
        raise Refusal(f"-f {file}: metadata.name is {said!r}, and the plan was asked for {name!r}", WRONG_USE)
    return document["spec"]


def _with_replicas(written: Document, replicas: int) -> tuple[VirtualMachinePool, Document]:
    import msgspec

    from herder.kube.resources import POOLS

    changed = {**written, "spec": {**written["spec"], "replicas": replicas}}
    return POOLS.decode(msgspec.json.encode(changed)), changed


async def _as_if_applied(
    client: Client, found: VirtualMachinePool, written: Document, spec: Document
) -> tuple[VirtualMachinePool, Document]:
    """By a dry run: what the API server would refuse is refused, and what it would fill in is there."""
    import msgspec

    from herder.kube.client import JSON_PATCH
    from herder.kube.resources import POOLS, key_of

    # Who leaves the number to an autoscaler does not write it.
    wanted = spec if "replicas" in spec else {**spec, "replicas": written["spec"]["replicas"]}
    patch = [{"op": "replace", "path": "/spec", "value": wanted}]
    raw = await client.patch_raw(POOLS, key_of(found), patch, content_type=JSON_PATCH, dry_run=True)
    return POOLS.decode(raw), msgspec.json.decode(raw)


def _text(found: PoolPlanExplanation) -> list[Part]:
    from herder.cli.tables import Table
    from herder.rules.pools.status import counted

    new = ", which is new" if found.new_revision else ""
    size = counted(found.replicas, "replica")
    parts: list[Part] = [f"pool {found.name} with {size} and revision {found.revision or '(none)'}{new}"]
    if found.steps:
        rows = [(str(place), step.action, step.name, step.revision, step.why) for place, step in enumerate(found.steps, 1)]
        parts += ["At once:", Table(("", "ACTION", "VM", "REVISION", "WHY"), rows)]
    elif not found.later:
        parts.append("Nothing would be done.")
    else:
        parts.append("Nothing would be done at once.")
    return [*parts, *found.then, *found.held_back, *found.unknown]
