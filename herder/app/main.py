"""The entry of the installed program: the command line, and the processes behind `herder up`."""

from __future__ import annotations

import asyncio
import datetime
import logging
import sys
from importlib.metadata import version
from pathlib import Path

import click

from herder.app import backup_commands as backup_commands  # adds its commands
from herder.app import controllers_command as controllers_command
from herder.app import down as down
from herder.app import explain_command as explain_command
from herder.app import install_command as install_command
from herder.app import logs
from herder.app import node_command as node_command
from herder.app.address import Address
from herder.app.data_directory import DataDirectory
from herder.app.refusal import CANNOT_RUN, Refusal
from herder.app.scoring import scoring_option
from herder.app.storage_reserve import storage_reserve_option
from herder.app.user_roles import ReadyRole, ShowsRoles
from herder.cli import completion as completion
from herder.cli import console as console
from herder.cli import draining as draining
from herder.cli import guest_logs as guest_logs
from herder.cli import job as job
from herder.cli import machines as machines
from herder.cli import migrations as migrations
from herder.cli import pool as pool
from herder.cli.main import cli
from herder.nodes.runtimes.choice import RuntimeMissing, resolve

DEFAULT_DATA = Path(".herder")


@cli.command()
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=True),
    default=DEFAULT_DATA,
    show_default=True,
    help="Where everything is kept.",
)
@click.option(
    "--listen",
    type=Address(),
    default="127.0.0.1:6443",
    show_default=True,
    help="Where the API is served; port 0 takes a free one.",
)
@click.option("--nodes", type=click.IntRange(0, 10_000), default=3, show_default=True, help="How many nodes this machine offers.")
@click.option(
    "--runtime", type=click.Choice(["auto", "simulated", "qemu"]), default="auto", show_default=True, help="What guests run on."
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where to write the kubeconfig.  [default: DATA/kubeconfig]",
)
@click.option(
    "--controllers/--no-controllers",
    default=True,
    show_default=True,
    help="Whether machines are kept and pods are placed; without, it is an API server and nothing else.",
)
@click.option(
    "--node-monitor-grace-period",
    type=controllers_command.SECONDS,
    default=50.0,
    show_default=True,
    metavar="S",
    help="How long a node may be silent before it is taken for lost.",
)
@scoring_option
@click.option(
    "--heartbeat",
    type=click.FloatRange(0.1, 3600),
    metavar="SECONDS",
    help="Between two signs of life of a node.  [default: 10; more where there are more than 500]",
)
@click.option("--allow-local-imports", is_flag=True, help="Let images be fetched from this machine and its link, too.")
@storage_reserve_option
@click.option("--certificate-life", type=click.FloatRange(5), metavar="SECONDS", hidden=True)
def up(
    data: Path,
    listen: tuple[str, int],
    nodes: int,
    runtime: str,
    kubeconfig: Path | None,
    controllers: bool,
    node_monitor_grace_period: float,
    scoring: str,
    heartbeat: float | None,
    allow_local_imports: bool,
    storage_reserve: str,
    certificate_life: float | None,
) -> None:
    """Start the embedded engine in the foreground, and nodes for it."""
    # Imported here: `herder --help` should not wait for a web server.
    from herder.app.supervisor import Settings, Supervisor

    logs.configure("supervisor")
    try:
        resolved = resolve(runtime, version("herder"))
        settings = Settings(
            *(data, *listen, nodes, resolved, kubeconfig or data / "kubeconfig", controllers, allow_local_imports),
            heartbeat=heartbeat,
            storage_reserve=storage_reserve,
            certificate_life=datetime.timedelta(seconds=certificate_life) if certificate_life is not None else None,
            controllers_options=("--node-monitor-grace-period", str(node_monitor_grace_period), "--scoring", scoring),
        )
        asyncio.run(Supervisor(settings, click.echo).run())
    except RuntimeMissing as error:
        _refuse(str(error), CANNOT_RUN)
    except Refusal as refusal:
        _refuse(str(refusal), refusal.code)


@cli.group()
def user() -> None:
    """People who may use the embedded engine."""


@user.command("add", cls=ShowsRoles)
@click.argument("name")
@click.option("--group", "groups", multiple=True, metavar="G", help="A group that the user is in; may be given more than once.")
@click.option(
    "--data", type=click.Path(path_type=Path), default=DEFAULT_DATA, show_default=True, help="The data directory of the engine."
)
@click.option(
    "--kubeconfig", type=click.Path(path_type=Path, dir_okay=False), help="Where to write it.  [default: NAME.kubeconfig]"
)
@click.option("--days", type=click.IntRange(1), default=365, show_default=True, help="How long it is good for.")
@click.option(
    "--role", "roles", type=ReadyRole(), multiple=True, help="A ready role for the user, listed below; may be given more than once."
)
@click.option("-n", "--namespace", metavar="N", default="", help="Where the role holds; also the namespace of the kubeconfig.")
@click.option("--all-namespaces", "everywhere", is_flag=True, help="The role holds in all of them, and for what is in none.")
def add_user(
    name: str,
    groups: tuple[str, ...],
    data: Path,
    kubeconfig: Path | None,
    days: int,
    roles: tuple[str, ...],
    namespace: str,
    everywhere: bool,
) -> None:
    """Write a kubeconfig with a client certificate for NAME.

    What NAME may do is a matter of roles: give one with --role while the engine runs, or bind one with kubectl to the user, or to
    one of the groups. The certificate cannot be taken back before it ends; what it may do can, at any time.
    """
    from herder.app import users

    try:
        click.echo(users.add(users.NewUser(name, groups, days, roles, namespace, everywhere), DataDirectory(data), kubeconfig))
    except Refusal as refusal:
        _refuse(str(refusal), refusal.code)


def _refuse(sentence: str, code: int) -> None:
    if sentence:
        click.echo(f"herder: {sentence}", err=True)
    sys.exit(code)


@cli.command(hidden=True)
@click.option("--data", type=click.Path(path_type=Path), required=True)
@click.option("--listen-fd", type=int, required=True)
@click.option("--ready-fd", type=int, required=True)
@click.option("--node-doors", type=int, default=0)
@click.option("--simulated-nodes", type=int, default=0)
@click.option("--beside", multiple=True, help="A process whose metrics are shown with the engine's.")
def engine(data: Path, listen_fd: int, ready_fd: int, node_doors: int, simulated_nodes: int, beside: tuple[str, ...]) -> None:
    """The engine's process; started by `herder up`."""
    from herder.app import engine_process
    from herder.app.identities import node_names
    from herder.server.housekeeping.own_nodes import OwnNodes

    logs.configure("engine")
    nodes = OwnNodes(node_names(node_doors), node_names(simulated_nodes))
    sys.exit(asyncio.run(engine_process.run(DataDirectory(data), listen_fd, ready_fd, nodes, beside)))


@cli.command(hidden=True)
@click.option("--data", type=click.Path(path_type=Path), required=True)
@click.option("--nodes", type=int, required=True)
@click.option("--runtime", required=True)
@click.option("--ready-fd", type=int, required=True)
@click.option("--allow-local-imports", is_flag=True)
@click.option("--heartbeat", type=float)
@storage_reserve_option
def agents(
    data: Path, nodes: int, runtime: str, ready_fd: int, allow_local_imports: bool, heartbeat: float | None, storage_reserve: str
) -> None:
    """The agents' process; started by `herder up`."""
    from herder.app import agents_process

    # Only what a person has to know: the terminal of `herder up` is for that.
    logs.configure("agents", logging.WARNING)
    settings = agents_process.Settings(nodes, runtime, allow_local_imports, heartbeat, storage_reserve)
    sys.exit(asyncio.run(agents_process.run(DataDirectory(data), settings, ready_fd)))


def main() -> None:
    cli()
