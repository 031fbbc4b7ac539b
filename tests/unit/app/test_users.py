"""What is in the certificate of a node that joins an embedded engine."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from herder.app.data_directory import DataDirectory
from herder.app.users import NewUser, add
from herder.kube.connect import shown
from herder.pki import reading
from herder.pki.authority import Authority
from herder.pki.files import write_private


@pytest.fixture
def directory(tmp_path: Path) -> DataDirectory:
    found = DataDirectory(tmp_path / "data")
    found.pki.mkdir(parents=True)
    write_private(found.pki / "server.crt", Authority.open(found.pki).server(("127.0.0.1", "localhost", "box")).certificate)
    return found


def certificate(directory: DataDirectory, folder: Path, name: str, *groups: str) -> bytes:
    add(NewUser(name, groups, 30), directory, folder / "kubeconfig")
    return shown(folder / "kubeconfig", None).certificate.read()


def test_other_nodes_may_come_to_a_node_by_its_name(directory: DataDirectory, tmp_path: Path) -> None:
    made = certificate(directory, tmp_path, "system:node:n1", "system:nodes")
    assert (reading.hosts(made), reading.usages(made)) == (("n1",), {"client auth", "server auth"})


@pytest.mark.parametrize(
    ("name", "groups"),
    [("jane", ("people",)), ("system:node:localhost", ("system:nodes",)), ("system:node:box", ("system:nodes",))],
)
def test_nobody_else_may_and_nobody_poses_as_the_engine(
    directory: DataDirectory, tmp_path: Path, name: str, groups: tuple[str, ...]
) -> None:
    made = certificate(directory, tmp_path, name, *groups)
    assert (reading.hosts(made), reading.usages(made)) == ((), {"client auth"})


def test_what_a_kubeconfig_shows_is_read_anew(directory: DataDirectory, tmp_path: Path) -> None:
    first = certificate(directory, tmp_path, "system:node:n1", "system:nodes")
    assert certificate(directory, tmp_path, "system:node:n1", "system:nodes") != first
    document = yaml.safe_load((tmp_path / "kubeconfig").read_text())
    document["users"][0]["user"] = {"token": "word"}
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(document))
    assert not shown(tmp_path / "kubeconfig", None).certificate
