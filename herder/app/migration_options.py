"""The options of `herder node` that say how guests come from other machines and go there. None is needed on a usual cluster."""

from __future__ import annotations

import functools
import ipaddress
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from herder.app.refusal import WRONG_USE, Refusal

if TYPE_CHECKING:
    from herder.app.node_migration import MigrationSettings
    from herder.kube.trust import Material, Trust

_FILE = click.Path(path_type=Path, dir_okay=False)
_OPTIONS = (
    click.option("--migration-address", metavar="IP", default="", help="Where other nodes send guests to.  [default: --address]"),
    click.option("--migration-ports", metavar="FIRST-LAST", default="", help="The first for the agent.  [default: free ones]"),
    click.option("--migration-cert", type=_FILE, help="What we show to other nodes.  [default: what the cluster signs]"),
    click.option("--migration-key", type=_FILE, help="The key of --migration-cert."),
    click.option("--migration-ca", type=_FILE, help="Who signs for nodes.  [default: the cluster's CA]"),
)


class MigrationOptions(msgspec.Struct, frozen=True):
    address: str
    ports: str
    cert: Path | None
    key: Path | None
    ca: Path | None

    def given(self) -> dict[str, object]:
        return {f"--migration-{name}": value for name, value in msgspec.structs.asdict(self).items() if value}


def migration_options(command: Callable[..., None]) -> Callable[..., None]:
    """All of them, as the one argument `migration`."""

    @functools.wraps(command)
    def gathered(*arguments: Any, **options: Any) -> None:
        own = {field: options.pop(f"migration_{field}") for field in MigrationOptions.__struct_fields__}
        return command(*arguments, migration=MigrationOptions(**own), **options)

    return functools.reduce(lambda made, option: option(made), reversed(_OPTIONS), gathered)


def settings_for(
    options: MigrationOptions, node: str, address: str, storage: Path | None, authority: Material, shown: Callable[[], Trust]
) -> MigrationSettings | None:
    """None for simulated guests. Raises Refusal for what cannot be used."""
    from herder.api.world import RealWorld
    from herder.app.node_migration import MigrationSettings, check

    given = options.given()
    if storage is None:
        for option, value in given.items():
            raise Refusal(f"{option} {value}: simulated guests move within their process; it is for --runtime qemu", WRONG_USE)
        return None
    if (options.cert is None) != (options.key is None):
        (one,) = given.keys() & {"--migration-cert", "--migration-key"}
        raise Refusal(f"{one} {given[one]}: give --migration-cert and --migration-key together", WRONG_USE)
    settings = MigrationSettings(
        node=node,
        address=_address(options.address) or address,
        folder=storage.absolute() / "migration" / node,
        authority=_material("ca", options.ca) or authority,
        shown=shown,
        ports=_ports(options.ports),
        certificate=_material("cert", options.cert),
        key=_material("key", options.key),
    )
    check(settings, RealWorld())
    return settings


def _material(name: str, path: Path | None) -> Material:
    from herder.kube.trust import Material

    return Material(f"--migration-{name}", path=str(path) if path is not None else "")


def _address(address: str) -> str:
    try:
        found = ipaddress.ip_address(address) if address else None
    except ValueError:
        raise Refusal(f"--migration-address {address}: is no IP address, such as 10.0.0.7", WRONG_USE) from None
    if found is not None and found.is_unspecified:
        how = "other nodes are told to come there: give an address of this machine, such as 10.0.0.7"
        raise Refusal(f"--migration-address {address}: {how}", WRONG_USE)
    return str(found) if found is not None else ""


def _ports(text: str) -> tuple[int, int] | None:
    first, separator, last = text.partition("-")
    if not text:
        return None
    numbers = [int(one) for one in (first, last) if one.isascii() and one.isdigit()]
    if not separator or len(numbers) != 2 or not 1 <= numbers[0] < numbers[1] <= 65535:
        how = "give two ports, such as 49152-49215: the first is for the agent, each of the others for one guest on its way"
        raise Refusal(f"--migration-ports {text}: {how}", WRONG_USE)
    return numbers[0], numbers[1]
