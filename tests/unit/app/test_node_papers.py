"""What `herder node` shows to other nodes, and what it says where it has nothing to show."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from herder.api.world import RealWorld
from herder.app.migration_options import MigrationOptions, settings_for
from herder.app.node_migration import MigrationSettings, network_of
from herder.app.node_papers import FromCluster, Kept
from herder.app.node_serving import EndpointSettings, Serving
from herder.app.refusal import CANNOT_USE_FILE, WRONG_USE, Refusal
from herder.kube.trust import Material, Trust
from herder.nodes.moving.papers import Lacking
from herder.pki.authority import Authority, Pair
from herder.pki.files import write_private

GROUP = ("system:nodes",)
AUTHORITY = Authority.make()
KNOWN_BY = Material("certificate-authority-data", AUTHORITY.pair.certificate)
NONE = MigrationOptions(address="", ports="", cert=None, key=None, ca=None)
BOTH = AUTHORITY.client("system:node:n1", GROUP, hosts=("n1",))
CLIENT = AUTHORITY.client("system:node:n1", GROUP)


def trust(pair: Pair | None) -> Trust:
    if pair is None:
        return Trust()
    return Trust(KNOWN_BY, Material("client-certificate-data", pair.certificate), Material("client-key-data", pair.key))


def settings(folder: Path, options: MigrationOptions = NONE, pair: Pair | None = CLIENT) -> MigrationSettings:
    made = settings_for(options, "n1", "127.0.0.1", folder, KNOWN_BY, lambda: trust(pair))
    assert made is not None
    return made


def serving(folder: Path) -> Serving:
    """Of a node whose certificate nobody has approved yet."""
    return Serving(folder / "serving", EndpointSettings("n1", "127.0.0.1", 0, AUTHORITY.pair.certificate, Trust), RealWorld())


def from_cluster(folder: Path, pair: Pair | None, signed: Serving | None) -> FromCluster:
    return FromCluster(lambda: trust(pair), signed, Kept("n1", folder / "kept", KNOWN_BY, RealWorld()))


def written(folder: Path, pair: Pair) -> MigrationOptions:
    cert, key = folder / "n1.crt", folder / "n1.key"
    write_private(cert, pair.certificate)
    write_private(key, pair.key)
    return msgspec.structs.replace(NONE, cert=cert, key=key)


# --- of the cluster --------------------------------------------------------------------------------------------------------------


def test_a_node_shows_its_own_certificate_to_those_it_goes_to_and_the_signed_one_to_those_who_come(tmp_path: Path) -> None:
    signed = serving(tmp_path)
    papers = from_cluster(tmp_path, CLIENT, signed)
    assert papers.client().certificate.read_bytes() == CLIENT.certificate
    signed.asked = "herder-serving-n1-x7k2p"
    with pytest.raises(Lacking, match="has not signed its certificate yet: kubectl certificate approve herder-serving-n1-x7k2p"):
        papers.server()
    write_private(signed.certificate, BOTH.certificate)
    write_private(signed.key, BOTH.key)
    server = papers.server()
    assert (server.certificate.read_bytes(), server.key.read_bytes()) == BOTH
    assert (server.key.stat().st_mode & 0o777, server.key.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_one_that_is_good_for_both_needs_nobody_to_sign_another(tmp_path: Path) -> None:
    papers = from_cluster(tmp_path, BOTH, None)
    assert papers.server().certificate.read_bytes() == papers.client().certificate.read_bytes() == BOTH.certificate


def test_a_kubeconfig_that_was_renewed_is_read_again(tmp_path: Path) -> None:
    shown = [trust(CLIENT)]
    papers = FromCluster(lambda: shown[-1], None, Kept("n1", tmp_path / "kept", KNOWN_BY, RealWorld()))
    papers.client()
    renewed = AUTHORITY.client("system:node:n1", GROUP)
    shown.append(trust(renewed))
    assert papers.client().certificate.read_bytes() == renewed.certificate
    assert papers.client().key.read_bytes() == renewed.key


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        (None, "the kubeconfig holds no client certificate; for moves, give one with --migration-cert"),
        (
            Authority.make().client("system:node:n1", GROUP),
            "client-certificate-data: was not signed by an authority of certificate-",
        ),
        (AUTHORITY.client("system:node:n2", GROUP), "client-certificate-data: is the certificate of CN=system:node:n2"),
    ],
)
def test_what_the_kubeconfig_lacks_is_said(tmp_path: Path, pair: Pair | None, said: str) -> None:
    with pytest.raises(Lacking, match=said):
        from_cluster(tmp_path, pair, serving(tmp_path)).client()


# --- by options ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"address": "n1.example"}, "--migration-address n1.example: is no IP address"),
        ({"address": "0.0.0.0"}, "--migration-address 0.0.0.0: other nodes are told to come there"),
        ({"ports": "49152"}, "--migration-ports 49152: give two ports, such as 49152-49215"),
        ({"ports": "49152-49152"}, "--migration-ports 49152-49152: give two ports"),
        ({"ports": "0-70000"}, "--migration-ports 0-70000: give two ports"),
        ({"cert": Path("n1.crt")}, "--migration-cert n1.crt: give --migration-cert and --migration-key together"),
        ({"key": Path("n1.key")}, "--migration-key n1.key: give --migration-cert and --migration-key together"),
    ],
)
def test_wrong_options_are_named_with_what_is_right(tmp_path: Path, changes: dict[str, object], said: str) -> None:
    with pytest.raises(Refusal, match=re.escape(said)) as refused:
        settings(tmp_path, msgspec.structs.replace(NONE, **changes))
    assert refused.value.code == WRONG_USE


def test_simulated_guests_have_no_use_for_them() -> None:
    with pytest.raises(Refusal, match="--migration-ports 1-2: simulated guests move within their process"):
        settings_for(msgspec.structs.replace(NONE, ports="1-2"), "n1", "127.0.0.1", None, KNOWN_BY, Trust)
    assert settings_for(NONE, "n1", "127.0.0.1", None, KNOWN_BY, Trust) is None


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        (CLIENT, "--migration-cert .*/n1.crt: may not be used for server auth"),
        (Pair(b"hello", CLIENT.key), "--migration-cert .*/n1.crt: holds no certificate in PEM"),
        (
            Pair(BOTH.certificate, CLIENT.key),
            "--migration-key .*/n1.key: is the key of another certificate; it should be .*/n1.crt",
        ),
        (Pair(BOTH.certificate, b"hello"), "--migration-key .*/n1.key: holds no private key in PEM"),
        (
            Authority.make().client("system:node:n1", GROUP, hosts=("n1",)),
            "not signed by an authority of certificate-authority-data",
        ),
    ],
)
def test_files_that_cannot_be_used_are_refused_before_anything_starts(tmp_path: Path, pair: Pair, said: str) -> None:
    with pytest.raises(Refusal, match=said) as refused:
        settings(tmp_path, written(tmp_path, pair))
    assert refused.value.code == CANNOT_USE_FILE


def test_files_that_are_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=r"--migration-cert: .*/n1.crt: cannot be read: No such file"):
        settings(tmp_path, msgspec.structs.replace(NONE, cert=tmp_path / "n1.crt", key=tmp_path / "n1.key"))
    with pytest.raises(Refusal, match=r"--migration-ca: .*/ca.crt: cannot be read: No such file"):
        settings(tmp_path, msgspec.structs.replace(NONE, ca=tmp_path / "ca.crt"))
    (tmp_path / "ca.crt").write_text("hello")
    with pytest.raises(Refusal, match=r"--migration-ca .*/ca.crt: holds no certificate in PEM"):
        settings(tmp_path, msgspec.structs.replace(NONE, ca=tmp_path / "ca.crt"))


def test_another_authority_may_sign_for_nodes(tmp_path: Path) -> None:
    other = Authority.make()
    (tmp_path / "ca.crt").write_bytes(other.pair.certificate)
    given = written(tmp_path, other.client("system:node:n1", GROUP, hosts=("n1",)))
    assert settings(tmp_path, msgspec.structs.replace(given, ca=tmp_path / "ca.crt")).certificate.path == str(tmp_path / "n1.crt")


# --- the network -----------------------------------------------------------------------------------------------------------------


async def test_without_anything_to_show_guests_stay_on_this_machine(tmp_path: Path) -> None:
    assert network_of(settings(tmp_path), None, RealWorld()) is None


async def test_the_agent_has_the_first_port_and_guests_have_the_others(tmp_path: Path, free_range: tuple[int, int]) -> None:
    first, last = free_range
    chosen = msgspec.structs.replace(NONE, ports=f"{first}-{last}", address="127.0.0.2")
    network = network_of(settings(tmp_path, chosen, BOTH), None, RealWorld())
    assert network is not None
    assert network.link.address == f"tls:127.0.0.2:{first}"
    assert (network.wire.address, network.wire.name, network.wire.ports) == ("127.0.0.2", "n1", (first + 1, last))
    await network.link.close()


@pytest.fixture
def free_range() -> tuple[int, int]:
    from tests.engines.processes import free_ports

    (first,) = free_ports(1)
    return first, min(first + 10, 65535)


async def test_an_agent_that_comes_back_is_found_where_it_was(tmp_path: Path) -> None:
    """What was under way has its address."""
    addresses: list[str] = []
    for _ in range(2):
        network = network_of(settings(tmp_path, pair=BOTH), None, RealWorld())
        assert network is not None
        addresses.append(network.link.address)
        await network.link.close()
    assert addresses[0] == addresses[1]


async def test_an_address_that_is_not_of_this_machine_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=r"--migration-address 192\.0\.2\.1:0: cannot be listened on"):
        network_of(settings(tmp_path, msgspec.structs.replace(NONE, address="192.0.2.1"), BOTH), None, RealWorld())
