"""Agents that joined an embedded engine from two machines: it signs nothing on request, so they show what they were given."""

from __future__ import annotations

import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from herder.pki.authority import Authority, Pair
from herder.pki.files import write_private
from tests.e2e.guest.machine import ticks_of
from tests.e2e.herder import Herder
from tests.e2e.kubectl import Kubectl
from tests.e2e.program import Up
from tests.e2e.qemu.sites import ADDRESSES, Machine, Site, counting, says_back
from tests.engines.embedded import find_program
from tests.engines.processes import free_ports

pytestmark = pytest.mark.usefixtures("migrations")


def renew(folder: Path, data: Path, name: str) -> Pair:
    """Files of somebody who has an authority at hand: here the engine's own."""
    pair = Authority.open(data / "pki").client(f"system:node:{name}", ("system:nodes",), hosts=(name,))
    write_private(folder / f"{name}.key", pair.key)
    write_private(folder / f"{name}.crt", pair.certificate)
    return pair


def options(folder: Path, data: Path, name: str, ports: tuple[int, int]) -> tuple[str, ...]:
    files = {"cert": folder / f"{name}.crt", "key": folder / f"{name}.key", "ca": data / "pki" / "ca.crt"}
    return *(f"--migration-{option}={path}" for option, path in files.items()), "--migration-ports={}-{}".format(*ports)


@pytest.fixture
def ports() -> tuple[int, int]:
    """The first is free, and so is one of the others."""
    (first,) = free_ports(1)
    return first, first + 20


@pytest.fixture
def site(tmp_path: Path, qemu: str, guest: Path, kubectl_program: Path, ports: tuple[int, int]) -> Iterator[Site]:
    with Up(tmp_path, nodes=0) as up:
        for name in ADDRESSES:
            command = [str(find_program()), "user", "add", f"system:node:{name}", "--group", "system:nodes", "--data", str(up.data)]
            subprocess.run(command, check=True, capture_output=True, timeout=60, cwd=tmp_path)
        renew(tmp_path, up.data, "right")
        left = Machine(tmp_path, "left", tmp_path / "left.kubeconfig")
        right = Machine(tmp_path, "right", tmp_path / "right.kubeconfig", *options(tmp_path, up.data, "right", ports))
        kubectl = Kubectl(kubectl_program, up.kubeconfig, tmp_path, "default")
        with counting({"left": left, "right": right}, kubectl, Herder(up.kubeconfig, tmp_path, "default"), guest) as made:
            yield made


def test_a_guest_moves_by_the_certificate_of_the_kubeconfig_and_by_one_that_was_given(
    site: Site, ports: tuple[int, int], tmp_path: Path
) -> None:
    heard = site.move()
    renewed = renew(tmp_path, tmp_path / "data", "right")
    heard += site.move()
    site.check_whole(heard)
    right = site.machines["right"]
    assert right.place == (ADDRESSES["right"], ports[0])
    assert shown_at(right.place) == renewed.certificate.decode(), "it goes on with the old one"


def test_the_engine_looks_into_the_nodes_that_joined_it_and_nobody_else_does(site: Site, tmp_path: Path) -> None:
    site.where().counts()
    pod = site.kubectl("get", "vmi", "counter", "-o", "jsonpath={.status.launcherPodName}")
    assert len(ticks_of(site.kubectl("logs", pod))) > 5
    assert len(ticks_of(site.herder.run("logs", "counter").out)) > 5
    assert says_back(site.kubectl, pod)

    port = site.kubectl("get", "node", site.where().name, "-o", "jsonpath={.status.daemonEndpoints.kubeletEndpoint.Port}")
    other = ssl.create_default_context(cafile=tmp_path / "data" / "pki" / "ca.crt")
    other.check_hostname = False
    other.load_cert_chain(tmp_path / "right.crt", tmp_path / "right.key")
    asked = f"https://{ADDRESSES[site.where().name]}:{port}/containerLogs/default/{pod}/compute"
    with pytest.raises(HTTPError, match="403") as refused:
        urlopen(asked, context=other, timeout=30)
    assert "'system:node:right' is not the API server" in refused.value.read().decode()


def shown_at(place: tuple[str, int]) -> str:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(place) as plain, context.wrap_socket(plain) as stranger:
        found = stranger.getpeercert(binary_form=True)
    assert found is not None
    return ssl.DER_cert_to_PEM_cert(found)
