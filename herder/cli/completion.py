"""`herder completion`: what makes a shell complete our commands, and the names that it completes them with.

Names come from the cluster that the command line so far means. Whoever presses Tab wants an answer at once or none: the time is
limited, and what went wrong is not said.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec

from herder.cli.main import cli

if TYPE_CHECKING:
    from herder.kube.client import Client
    from herder.kube.resources import Resource

SHELLS = ("bash", "zsh", "fish")
PROGRAM = "herder"
VARIABLE = "_HERDER_COMPLETE"
# Seconds that somebody waits for names.
PATIENCE = 2.0
MOST_NAMES = 5000
# Names only: a table without its objects is what an API server can answer with the fewest bytes.
ACCEPT = "application/json;as=Table;v=v1;g=meta.k8s.io"
Kind = Literal["vm", "vmi", "pool", "migration", "job", "pod", "node", "namespace"]
Complete = Callable[[click.Context, click.Parameter, str], list[str]]
# What no shell takes for anything else than a name.
_NAME = re.compile(r"[\w.:@/+-]+", re.ASCII)


class Line(msgspec.Struct, gc=False):
    cells: list[Any]


class Table(msgspec.Struct):
    rows: list[Line] | None = None


@cli.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print what makes SHELL complete commands, options, and names of machines, pools, jobs and nodes.

    \b
    bash   echo 'source <(herder completion bash)' >> ~/.bashrc
    zsh    echo 'source <(herder completion zsh)' >> ~/.zshrc
    fish   herder completion fish > ~/.config/fish/completions/herder.fish
    """
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None
    click.echo(made(cli, {}, PROGRAM, VARIABLE).source())


def names_of(*kinds: Kind) -> Complete:
    """For an argument that may be the name of any of these, also as kind/NAME where there are several."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        kind, slash, _ = incomplete.partition("/")
        wanted: list[Kind] = [one for one in kinds if not slash or one == kind]
        before = f"{kind}/" if slash else ""
        listed = at_once(lambda: _from_cluster(context, wanted))
        return [name for name in (before + one for one in listed) if name.startswith(incomplete)]

    return complete


def context_names(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    listed = at_once(lambda: _from_kubeconfig(context))
    return [name for name in listed if name.startswith(incomplete)]


def at_once(look: Callable[[], list[str]]) -> list[str]:
    """In time, or this process ends and has said nothing. A timeout of asyncio alone would not do: at its end Python waits for the
    threads that look up names of hosts."""
    import signal

    # A group of our own: with us ends what we have started.
    os.setpgid(0, 0)
    with open(os.devnull, "r+b") as nothing:
        # Not even what a credential plugin says or asks.
        os.dup2(nothing.fileno(), 0)
        os.dup2(nothing.fileno(), 2)
    signal.signal(signal.SIGALRM, _give_up)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        return sorted({name for name in look() if _NAME.fullmatch(name)})
    except _unanswered():
        return []
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _unanswered() -> tuple[type[Exception], ...]:
    """What may be wrong with files, a cluster and its answers. A bug of ours is none of it: then we end with an error."""
    from herder.cli.asking import Refusal
    from herder.kube.errors import KubeError

    return (KubeError, Refusal, OSError, msgspec.MsgspecError)


def _give_up(*_: object) -> None:
    import signal

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)
    os._exit(0)


def _from_kubeconfig(context: click.Context) -> list[str]:
    from herder.cli.asking import OWN_KUBECONFIG
    from herder.kube.connect import known_contexts

    return known_contexts(context.params.get("kubeconfig"), otherwise=OWN_KUBECONFIG)


def _from_cluster(context: click.Context, kinds: list[Kind]) -> list[str]:
    import asyncio

    return asyncio.run(_listed(context.params, kinds))


async def _listed(given: dict[str, Any], kinds: list[Kind]) -> list[str]:
    from herder.cli.asking import Where, connected
    from herder.kube.resources import INSTANCES, JOBS, MACHINES, MIGRATIONS, NAMESPACES, NODES, PODS, POOLS

    resources: dict[Kind, Resource[Any]] = {
        "vm": MACHINES,
        "vmi": INSTANCES,
        "pool": POOLS,
        "migration": MIGRATIONS,
        "job": JOBS,
        "pod": PODS,
        "node": NODES,
        "namespace": NAMESPACES,
    }
    where = Where(given.get("kubeconfig"), given.get("context"), given.get("namespace"))
    async with connected(where) as (client, namespace):
        return [name for kind in kinds for name in await _names(client, resources[kind], namespace)]


async def _names(client: Client, resource: Resource[Any], namespace: str) -> list[str]:
    """The first column is the name, of every kind. Nothing where we may not list them."""
    from herder.kube.transport import Call

    query = {"limit": str(MOST_NAMES), "includeObject": "None"}
    reply = await client.transport.send(Call("GET", resource.path(namespace), query, accept=ACCEPT, patience=PATIENCE))
    if reply.status != 200:
        return []
    return [str(row.cells[0]) for row in msgspec.json.decode(reply.body, type=Table).rows or () if row.cells]
