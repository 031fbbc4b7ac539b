"""Two agents that share nothing but their cluster, as on two machines: real guests move between them over TLS, and strangers do not."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from herder.pki.authority import Authority
from tests.behaviour.candidates import Candidate
from tests.behaviour.test_node_agents import Program, ready
from tests.conftest import EngineMissing
from tests.e2e.guest.machine import assert_unbroken, ticks_of
from tests.e2e.herder import Herder
from tests.e2e.kubectl import Kubectl
from tests.e2e.program import until
from tests.e2e.qemu.test_up import EXAMPLES
from tests.engines.api import connect
from tests.engines.certificates import Pair
from tests.engines.credentials import sign
from tests.engines.embedded import find_program
from tests.engines.engine import Engine, Unavailable
from tests.engines.kubernetes import run_kubernetes

pytestmark = [pytest.mark.kubernetes, pytest.mark.usefixtures("migrations")]
PATIENCE = 120.0
ADDRESSES = {"left": "127.0.0.2", "right": "127.0.0.3"}


class Machine:
    """One agent, with its own storage, address and identity."""

    def __init__(self, cluster: Engine, folder: Path, name: str) -> None:
        folder.mkdir()
        self.name = name
        self.storage = folder / "storage"
        self.agent = Program(cluster, folder, name)
        # The way to the cluster says 127.0.0.1 of both: there one would not have to be told where it is.
        address = ("--address", ADDRESSES[name])
        self.run = self.agent.start("--runtime", "qemu", "--storage", str(self.storage), *address)

    @property
    def said(self) -> str:
        return self.run.log.read_text()

    @property
    def place(self) -> tuple[str, int]:
        return ADDRESSES[self.name], int((self.storage / "migration" / self.name / "port").read_text())

    def log(self) -> Path:
        (found,) = self.storage.glob("nodes/*/guests/*/console.log")
        return found

    def sockets(self) -> list[Path]:
        """Over which guests would move within one machine."""
        return [path for name in ("agent.socket", "migration.socket") for path in self.storage.rglob(name)]


class Site:
    def __init__(self, cluster: Engine, machines: dict[str, Machine], kubectl: Kubectl, herder: Herder) -> None:
        self.cluster = cluster
        self.machines = machines
        self.kubectl = kubectl
        self.herder = herder

    def where(self) -> Machine:
        return self.machines[self.kubectl("get", "vmi", "counter", "-o", "jsonpath={.status.nodeName}")]

    def requests(self) -> list[str]:
        return [name.partition("/")[2] for name in self.kubectl("get", "csr", "-o", "name").split()]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    try:
        with run_kubernetes(tmp_path_factory.mktemp("cluster")) as running:
            yield running
    except Unavailable as reason:
        raise EngineMissing(str(reason)) from None


@pytest.fixture(scope="module")
async def site(
    cluster: Engine, qemu: str, guest: Path, kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    install = [str(find_program()), "install", "--kubeconfig", str(cluster.kubeconfig)]
    await asyncio.to_thread(subprocess.run, install, check=True, capture_output=True, timeout=120)
    keeping = Candidate([str(find_program()), "controllers", "--kubeconfig", str(cluster.kubeconfig)], folder / "controllers.log")
    machines = {name: Machine(cluster, folder / name, name) for name in ADDRESSES}
    kubectl = Kubectl(kubectl_program, cluster.kubeconfig, folder, "default")
    try:
        async with connect(cluster) as api:
            for name in machines:
                await ready(api, name)
        kubectl("create", "configmap", "counter-kernel", f"--from-file=guest.elf={guest}")
        kubectl("apply", "-f", str(EXAMPLES / "counter.yaml"))
        made = Site(cluster, machines, kubectl, Herder(cluster.kubeconfig, folder, "default"))
        until(lambda: "Running" in kubectl("get", "vm", "counter"), "it does not run", PATIENCE)
        yield made
        kubectl("delete", "vm", "counter", "--timeout=60s")
    finally:
        for machine in machines.values():
            machine.agent.close()
        keeping.close()


def test_until_its_certificate_is_approved_a_node_says_how_to_do_that(site: Site) -> None:
    told = site.herder.run("migrate", "counter", "--wait")
    assert told.code != 0
    target = next(name for name in ADDRESSES if name != site.where().name)
    (request,) = (name for name in site.requests() if name.startswith(f"herder-serving-{target}-"))
    assert f"kubectl certificate approve {request}" in told.out + told.err


def test_a_guest_moves_there_and_back_over_tls_without_missing_a_tick(site: Site) -> None:
    site.kubectl("certificate", "approve", *site.requests())
    for machine in site.machines.values():
        until(lambda machine=machine: "the cluster has signed" in machine.said, "no certificate was signed", PATIENCE)
    heard = ""
    for _ in range(2):
        source = site.where()
        with source.log().open() as log:
            until(lambda source=source: len(ticks_of(source.log().read_text())) > 5, "it does not count", PATIENCE)
            told = site.herder.run("migrate", "counter", "--wait")
            assert told.code == 0, told.out + told.err
            heard += log.read()
        target = site.where()
        assert target is not source
        state = site.kubectl("get", "vmi", "counter", "-o", "jsonpath={.status.migrationState.targetNodeAddress}")
        assert state == "tls:{}:{}".format(*target.place)
        until(lambda target=target: len(ticks_of(target.log().read_text())) > 5, "it does not go on", PATIENCE)
    last = target.log().read_text()
    assert_unbroken(heard + last[: last.rfind("\n") + 1])
    assert not [path for machine in site.machines.values() for path in machine.sockets()]


def test_a_stranger_with_a_certificate_of_another_authority_is_sent_away(site: Site, tmp_path: Path) -> None:
    """It says that it is a node."""
    made = Authority.make().client("system:node:left", ("system:nodes",), hosts=("left",))
    pair = Pair(tmp_path / "crt", tmp_path / "key")
    pair.certificate.write_bytes(made.certificate)
    pair.key.write_bytes(made.key)
    line = _sent_away(site, pair)
    assert "somebody without a certificate of this cluster was sent away" in line
    assert "unable to get local issuer certificate" in line


def test_a_user_of_the_cluster_who_is_no_node_is_sent_away(site: Site, tmp_path: Path) -> None:
    line = _sent_away(site, sign(site.cluster, tmp_path, "jane", "developers"))
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
