"""`herder node`: an agent for a cluster that runs already."""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click
import msgspec

from herder.api import labels
from herder.api.names import dns_subdomain
from herder.api.quantity import parse_quantity
from herder.app import logs
from herder.app.address import Address, listen_on
from herder.app.migration_options import MigrationOptions, migration_options
from herder.app.migration_options import settings_for as migration_settings
from herder.app.refusal import CANNOT_RUN, CANNOT_USE_FILE, WRONG_USE, Refusal
from herder.app.storage_reserve import reserve_of, storage_reserve_option
from herder.cli.main import cli

if TYPE_CHECKING:
    from herder.kube.connect import Connection

MOST_SIMULATED = 10_000
LABEL_VALUE = 63


class Capacity(click.ParamType[dict[str, str]]):
    name = "cpu=N,memory=N"

    def convert(self, value: str | dict[str, str], param: click.Parameter | None, ctx: click.Context | None) -> dict[str, str]:
        if isinstance(value, dict):
            return value
        found: dict[str, str] = {}
        for part in value.split(","):
            name, separator, amount = part.strip().partition("=")
            if not (name and separator):
                self.fail(f"{part!r} is not NAME=QUANTITY, such as memory=8Gi", param, ctx)
            found[name] = self._checked(name, amount, param, ctx)
        return found

    def _checked(self, name: str, amount: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            quantity = parse_quantity(amount)
        except ValueError:
            self.fail(f"{name}={amount}: {amount!r} is no quantity; write for example 4, 500m or 8Gi", param, ctx)
        if quantity.value() < 1:
            self.fail(f"{name}={amount}: must be more than zero", param, ctx)
        return amount


@cli.group(invoke_without_command=True)
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="The cluster, and who we are there.  [default: as kubectl]")
@click.option("--context", metavar="C", help="Which context of the kubeconfig.  [default: its current one]")
@click.option("--name", metavar="NAME", default="", help="The node; with --simulated what their names begin with.")
@click.option("--simulated", type=click.IntRange(1, MOST_SIMULATED), metavar="N", help="So many simulated nodes at once.")
@click.option(
    "--runtime", type=click.Choice(["simulated", "qemu"]), default="simulated", show_default=True, help="What guests run on."
)
@click.option("--capacity", type=Capacity(), default={}, help="What the node offers.  [default: cpu=8,memory=32Gi]")
@click.option("--taint/--no-taint", default=True, show_default=True, help="Whether other pods are kept away.")
@click.option("--storage", type=click.Path(path_type=Path, file_okay=False), help="Where volumes and guests are kept (qemu).")
@click.option(
    "--storage-domain", metavar="NAME", default="", help="The same for nodes that see the same folder.  [default: its own]"
)
@click.option("--address", metavar="IP", default="", help="Where the API server finds us.  [default: as we find it]")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="For logs and consoles.  [default: a free one]")
@click.option(
    "--client-ca", type=click.Path(path_type=Path, dir_okay=False), help="Who signs API servers.  [default: the cluster's CA]"
)
@migration_options
@click.option("--heartbeat", type=click.FloatRange(0.1, 3600), metavar="SECONDS", help="Between two signs of life.  [default: 10]")
@click.option("--metrics-listen", type=Address(), help="Where /healthz, /readyz and /metrics are served.  [default: nowhere]")
@click.option("--allow-local-imports", is_flag=True, help="Let images be fetched from this machine and its link, too.")
@storage_reserve_option
@click.pass_context
def node(
    context_of_click: click.Context,
    kubeconfig: Path | None,
    context: str | None,
    name: str,
    simulated: int | None,
    runtime: str,
    capacity: dict[str, str],
    taint: bool,
    storage: Path | None,
    storage_domain: str,
    address: str,
    port: int,
    client_ca: Path | None,
    migration: MigrationOptions,
    heartbeat: float | None,
    metrics_listen: tuple[str, int] | None,
    allow_local_imports: bool,
    storage_reserve: str,
) -> None:
    """Run the agent of one node, against any cluster, as whom the kubeconfig says.

    `herder up` runs agents by itself; this is for a cluster that runs already. docs/nodes.md says how to make the identity.
    """
    if context_of_click.invoked_subcommand is not None:
        return
    from herder.app import node_process
    from herder.app.cluster import connection_to
    from herder.app.node_serving import EndpointSettings, address_towards
    from herder.kube.connect import shown
    from herder.nodes.imports import ImportSettings
    from herder.nodes.local import share
    from herder.nodes.node import CAPACITY, RENEW_EVERY, NodeSettings

    logs.configure("node")

    async def run() -> None:
        _check_runtime(runtime, storage, simulated is not None)
        names = tuple(f"{name}-{number}" for number in range(1, simulated + 1)) if simulated else (name,)
        _check_name(name, names)
        listener = listen_on("--metrics-listen", *metrics_listen) if metrics_listen else None
        cluster = connection_to(kubeconfig, context, node_process.AGENT)
        try:
            settings = settings_with(cluster, names)
        except Refusal:
            await cluster.transport.close()
            raise
        await node_process.run(cluster.transport, settings, click.echo, listener)

    def settings_with(cluster: Connection, names: tuple[str, ...]) -> node_process.Settings:
        ours = _checked_address(address) or address_towards(cluster.server)
        renew = heartbeat or RENEW_EVERY
        offered = {**CAPACITY, **capacity}
        whose = {labels.AGENT: name[:LABEL_VALUE].rstrip("-.")}
        about = NodeSettings(name=name, capacity=offered, tainted=taint, address=ours, renew_every=renew, labels=whose)
        nodes = tuple(msgspec.structs.replace(about, name=one) for one in names)
        imports = ImportSettings(allow_local_imports, reserve_of(storage_reserve))
        if storage is not None:
            own = share(nodes[0], 1, storage_domain or name)
            nodes = (msgspec.structs.replace(own, capacity={**own.capacity, **capacity}),)
        showing = functools.partial(shown, kubeconfig, context)
        known = _clients_authority(cluster, client_ca)
        kept_in = storage / "serving" / name if storage is not None else None
        endpoint = EndpointSettings(name, ours, port, known, showing, kept_in, simulated is None) if known else None
        moves = migration_settings(migration, name, ours, storage, cluster.authority, showing)
        return node_process.Settings(nodes, simulated is not None, version("herder"), storage, imports, endpoint, moves, heartbeat)

    try:
        asyncio.run(run())
    except Refusal as refusal:
        _refuse(refusal)


@node.command()
@click.option("--kubeconfig", type=click.Path(path_type=Path), required=True, help="As somebody who may ask for certificates.")
@click.option("--context", metavar="C", help="Which context of the kubeconfig.  [default: its current one]")
@click.option("--name", metavar="NAME", required=True, help="The node.")
@click.option("--write", type=click.Path(path_type=Path, dir_okay=False), help="Where to write it.  [default: NAME.kubeconfig]")
def join(kubeconfig: Path, context: str | None, name: str, write: Path | None) -> None:
    """Write the kubeconfig of a node's agent, with a certificate that the cluster signs.

    It is asked for by a CertificateSigningRequest, which somebody (or the cluster itself) has to approve.
    """
    from herder.app import node_join

    path = write or Path(f"{name}.kubeconfig")
    try:
        _check_name(name, (name,))
        asyncio.run(node_join.join(kubeconfig, context, name, path, click.echo))
    except Refusal as refusal:
        _refuse(refusal)
    click.echo(f"{path}: system:node:{name}. Run its agent:\n\n  herder node --kubeconfig {path} --name {name}")


def _clients_authority(cluster: Connection, client_ca: Path | None) -> bytes:
    """Empty where nobody said who signs the certificates of API servers: then nobody can look in."""
    from herder.kube.errors import Misconfigured
    from herder.kube.trust import Material

    authority = Material("--client-ca", path=str(client_ca)) if client_ca is not None else cluster.authority
    try:
        return authority.read() if authority else b""
    except Misconfigured as error:
        raise Refusal(str(error), CANNOT_USE_FILE) from None


def _checked_address(address: str) -> str:
    try:
        return str(ipaddress.ip_address(address)) if address else ""
    except ValueError:
        raise Refusal(f"--address {address}: is no IP address, such as 10.0.0.7", WRONG_USE) from None


def _refuse(refusal: Refusal) -> NoReturn:
    click.echo(f"herder: {refusal}", err=True)
    sys.exit(refusal.code)


def _check_name(name: str, names: tuple[str, ...]) -> None:
    if not name:
        raise Refusal("--name: is missing; give the node's name", WRONG_USE)
    if problems := dns_subdomain(names[-1]):
        raise Refusal(f"--name {name}: cannot be the name of a node: {problems[0]}", WRONG_USE)


def _check_runtime(runtime: str, storage: Path | None, fleet: bool) -> None:
    if runtime == "qemu":
        if fleet:
            raise Refusal("--runtime qemu: --simulated is for simulated nodes; run one agent for each real node", WRONG_USE)
        if storage is None:
            raise Refusal("--runtime qemu: say with --storage DIR where guests and volumes are kept", WRONG_USE)
        _check_program()
    elif storage is not None:
        raise Refusal(f"--storage {storage}: simulated nodes keep nothing; leave it out", WRONG_USE)


def _check_program() -> None:
    from herder.nodes.runtimes.choice import RuntimeMissing, resolve

    try:
        resolve("qemu", version("herder"))
    except RuntimeMissing as error:
        raise Refusal(str(error), CANNOT_RUN) from None
