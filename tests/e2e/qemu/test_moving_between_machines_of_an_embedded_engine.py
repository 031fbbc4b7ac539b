"""Agents that joined an embedded engine from two machines: it signs nothing on request, so they show what they were given."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from herder.pki.authority import Authority
from herder.pki.files import write_private
from tests.e2e.herder import Herder
from tests.e2e.kubectl import Kubectl
from tests.e2e.program import Up
from tests.e2e.qemu.sites import ADDRESSES, Machine, Site, counting
from tests.engines.embedded import find_program
from tests.engines.processes import free_ports

pytestmark = pytest.mark.usefixtures("migrations")


def given(folder: Path, up: Up, name: str) -> tuple[str, ...]:
    """Files of somebody who has an authority of their own at hand: here the engine's."""
    pair = Authority.open(up.data / "pki").client(f"system:node:{name}", ("system:nodes",), hosts=(name,))
    certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
    write_private(key, pair.key)
    write_private(certificate, pair.certificate)
    return "--migration-cert", str(certificate), "--migration-key", str(key), "--migration-ca", str(up.data / "pki" / "ca.crt")


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
        options = (*given(tmp_path, up, "right"), "--migration-ports", "{}-{}".format(*ports))
        left = Machine(tmp_path, "left", tmp_path / "left.kubeconfig")
        right = Machine(tmp_path, "right", tmp_path / "right.kubeconfig", *options)
        kubectl = Kubectl(kubectl_program, up.kubeconfig, tmp_path, "default")
        with counting({"left": left, "right": right}, kubectl, Herder(up.kubeconfig, tmp_path, "default"), guest) as made:
            yield made


def test_a_guest_moves_by_the_certificate_of_the_kubeconfig_and_by_one_that_was_given(site: Site, ports: tuple[int, int]) -> None:
    heard = site.move() + site.move()
    site.check_whole(heard)
    assert site.machines["right"].place == (ADDRESSES["right"], ports[0])
