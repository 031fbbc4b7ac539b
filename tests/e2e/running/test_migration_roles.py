"""Who may migrate and who may not, with kubeconfigs that `herder user add` wrote."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.herder import Herder
from tests.e2e.kubectl import Kubectl
from tests.e2e.program import Up
from tests.e2e.running.test_migration_commands import node_of, other, slow
from tests.e2e.running.test_migration_commands import running as running

Holder = Callable[[str], Herder]
COPYING = "--for=jsonpath={.status.phase}=Running"
MIGRATION = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration"}


@pytest.fixture
def holder(herd: Up, here: Kubectl, tmp_path: Path) -> Holder:
    """A new person who has this role in the namespace, and nothing else."""

    def make(role: str) -> Herder:
        name = f"{role}-{here.namespace}"[:60]
        given = ("--role", role, "--namespace", here.namespace)
        Herder(None, tmp_path)("user", "add", name, *given, "--data", str(herd.data), "--kubeconfig", name)
        return Herder(tmp_path / name, tmp_path, here.namespace)

    return make


def test_a_migrator_moves_and_cancels_and_edits_nothing(here: Kubectl, holder: Holder, running: str) -> None:
    migrator = holder("vm-migrator")
    assert f"It would go to {other(running)}." in migrator("explain", "target", "web")
    assert "progressTimeout" in migrator("explain", "policy", "web")
    said = migrator.refused("migrate", "web", "--to", running)
    assert said.startswith("herder: no node can take web, so no migration was made: AlreadyOnNode: "), said
    assert here("get", "migrationreviews,vmim", "-o", "name") == ""
    assert migrator("migrate", "web", "--wait").splitlines()[-1] == f"Succeeded to {other(running)}"
    slow(here)
    made = migrator("migrate", "web").split()[0]
    here("wait", made, COPYING, "--timeout=60s")
    assert "is being cancelled" in migrator("cancel", "web", "--wait")
    assert node_of(here) == other(running)
    assert 'cannot patch resource "virtualmachines"' in migrator.refused("stop", "web")
    assert 'cannot get resource "nodes"' in migrator.refused("drain", running, "--no-wait"), "its role is of one namespace"


def test_an_owner_neither_migrates_nor_cancels(here: Kubectl, holder: Holder, running: str) -> None:
    owner = holder("vm-owner")
    assert 'cannot create resource "virtualmachineinstancemigrations"' in owner.refused("migrate", "web")
    assert here("get", "vmim", "-o", "name") == ""
    slow(here)
    here.create({**MIGRATION, "metadata": {"name": "m"}, "spec": {"vmiName": "web"}})
    here("wait", "vmim/m", COPYING, "--timeout=60s")
    assert 'cannot delete resource "virtualmachineinstancemigrations"' in owner.refused("cancel", "web")
    assert here("get", "vmim", "m", "-o", "jsonpath={.metadata.deletionTimestamp}") == ""
    owner("stop", "web")
