"""What all commands that ask a cluster have in common: which cluster, which namespace, and how a refusal is told."""

from __future__ import annotations

import asyncio
import functools
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NoReturn

import click
import msgspec

from herder.api.problems import printable
from herder.cli.completion import context_names, names_of

# 1 is for bugs, 2 is what click ends with, up to 7 the numbers are those of the commands that start things.
WRONG_USE = 2
CANNOT_USE_FILE = 6
CANNOT_USE_CLUSTER = 7
NOT_DONE = 8
NOT_IN_TIME = 9
GUESTS_STAY = 10
INTERRUPTED = 128 + signal.SIGINT
AGENT = "herder"
# What `herder up` writes when it is not told otherwise.
OWN_KUBECONFIG = Path(".herder") / "kubeconfig"


class Refusal(Exception):
    """A sentence for the person who asked, and the exit code."""

    def __init__(self, sentence: str, code: int = NOT_DONE) -> None:
        super().__init__(sentence)
        self.code = code


class Where(msgspec.Struct, frozen=True):
    kubeconfig: Path | None
    context: str | None
    namespace: str | None


def asks_a_cluster(command: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Gives a command the options that say where, and runs it: it gets one `Where` in their place."""

    @click.option(
        "-n",
        "--namespace",
        metavar="N",
        help="The namespace.  [default: that of the context]",
        shell_complete=names_of("namespace"),
    )
    @click.option("--kubeconfig", type=click.Path(path_type=Path), help="The cluster, and who we are there.  [default: as kubectl]")
    @click.option(
        "--context", metavar="C", help="Which context of the kubeconfig.  [default: its current one]", shell_complete=context_names
    )
    @functools.wraps(command)
    def run(namespace: str | None, kubeconfig: Path | None, context: str | None, **options: Any) -> None:
        try:
            asyncio.run(_told(command(Where(kubeconfig, context, namespace), **options)))
        except Refusal as refusal:
            refuse(str(refusal), refusal.code)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)
        except BrokenPipeError:
            # Whoever read has enough.
            sys.stdout = None

    return run


async def _told(work: Awaitable[None]) -> None:
    from herder.kube.errors import ApiStatusError, KubeError, Misconfigured

    try:
        await work
    except Misconfigured as error:
        raise Refusal(str(error), CANNOT_USE_FILE) from None
    except ApiStatusError as error:
        raise Refusal(str(error), NOT_DONE) from None
    except KubeError as error:
        raise Refusal(str(error), CANNOT_USE_CLUSTER) from None


def refuse(sentence: str, code: int) -> NoReturn:
    # It may quote what somebody else has written.
    click.echo("herder: " + printable(sentence, keep="\n\t"), err=True)
    sys.exit(code)


@asynccontextmanager
async def connected(where: Where) -> AsyncGenerator[tuple[Any, str]]:
    """A `Client`, and the namespace that is meant."""
    # Imported here: `herder --help` should not wait for an HTTP client.
    from herder.kube.client import Client
    from herder.kube.connect import connection

    found = connection(where.kubeconfig, where.context, AGENT, otherwise=OWN_KUBECONFIG)
    async with Client(found.transport, AGENT) as client:
        yield client, where.namespace or found.namespace
