"""On a real cluster two agents move real guests to each other over TLS with what the cluster signs for them; strangers do not."""

from __future__ import annotations

import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from herder.pki.authority import Authority
from tests.behaviour.candidates import Candidate
from tests.e2e.herder import Herder
from tests.e2e.kubectl import Kubectl
from tests.e2e.program import until
from tests.e2e.qemu.sites import ADDRESSES, PATIENCE, Machine, Site, counting
from tests.engines.certificates import Pair
from tests.engines.credentials import sign
from tests.engines.embedded import find_program
from tests.engines.engine import Engine

pytestmark = [pytest.mark.kubernetes, pytest.mark.usefixtures("migrations")]


@pytest.fixture(scope="module")
def site(
    cluster: Engine, qemu: str, guest: Path, kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    _herder("install", cluster)
    keeping = Candidate([str(find_program()), "controllers", "--kubeconfig", str(cluster.kubeconfig)], folder / "controllers.log")
    machines: dict[str, Machine] = {}
    for name in ADDRESSES:
        kubeconfig = folder / f"{name}.kubeconfig"
        _herder("node", cluster, "--name", name, "--write", str(kubeconfig))
        machines[name] = Machine(folder, name, kubeconfig)
    kubectl = Kubectl(kubectl_program, cluster.kubeconfig, folder, "default")
    try:
        with counting(machines, kubectl, Herder(cluster.kubeconfig, folder, "default"), guest) as made:
            yield made
    finally:
        keeping.close()


def _herder(verb: str, cluster: Engine, *words: str) -> None:
    more = ["join"] if verb == "node" else []
    command = [str(find_program()), verb, *more, "--kubeconfig", str(cluster.kubeconfig), *words]
    subprocess.run(command, check=True, capture_output=True, timeout=120)


@pytest.fixture
def signed(site: Site) -> Site:
    """With what somebody has approved, unless it was before."""
    for name, machine in site.machines.items():
        request = until(lambda name=name: requested(site, name), "nothing was asked for", PATIENCE)
        site.kubectl("certificate", "approve", request)
        until(lambda machine=machine: "the cluster has signed" in machine.said, "no certificate was signed", PATIENCE)
    return site


def requested(site: Site, node: str) -> str:
    """The request for the certificate that the node shows to those who come."""
    listed = (name.partition("/")[2] for name in site.kubectl("get", "csr", "-o", "name").split())
    return next((name for name in listed if name.startswith(f"herder-serving-{node}-")), "")


def test_until_its_certificate_is_approved_a_node_says_how_to_do_that(site: Site) -> None:
    (target,) = site.machines.keys() - {site.where().name}
    request = until(lambda: requested(site, target), "nothing was asked for", PATIENCE)
    told = site.herder.run("migrate", "counter", "--wait")
    assert told.code != 0
    assert f"agents of other nodes cannot reach that of node {target}" in told.err
    assert f"kubectl certificate approve {request}" in told.err


def test_a_guest_moves_there_and_back_over_tls_without_missing_a_tick(signed: Site) -> None:
    heard = signed.move() + signed.move()
    signed.check_whole(heard)


def test_a_stranger_with_a_certificate_of_another_authority_is_sent_away(signed: Site, tmp_path: Path) -> None:
    """It says that it is a node."""
    made = Authority.make().client("system:node:left", ("system:nodes",), hosts=("left",))
    pair = Pair(tmp_path / "crt", tmp_path / "key")
    pair.certificate.write_bytes(made.certificate)
    pair.key.write_bytes(made.key)
    line = _sent_away(signed, pair)
    assert "somebody without a certificate of this cluster was sent away" in line
    assert "unable to get local issuer certificate" in line


def test_a_user_of_the_cluster_who_is_no_node_is_sent_away(signed: Site, cluster: Engine, tmp_path: Path) -> None:
    line = _sent_away(signed, sign(cluster, tmp_path, "jane", "developers"))
    assert "somebody who is no node was sent away" in line
    assert "CN=jane,O=developers" in line


def _sent_away(site: Site, pair: Pair) -> str:
    """What the agent says of who came with it."""
    machine = site.machines["right"]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(pair.certificate, pair.key)
    with socket.create_connection(machine.place) as plain:
        ours = "{}:{}".format(*plain.getsockname())
        try:
            with context.wrap_socket(plain) as stranger:
                stranger.sendall(b"\x00\x00\x00\x02{}")
                assert stranger.recv(100) == b"", "it was answered"
        except (ssl.SSLError, ConnectionError):
            pass
    until(lambda: ours in machine.said, "nothing is said of it", PATIENCE)
    (line,) = (line for line in machine.said.splitlines() if ours in line)
    return line
