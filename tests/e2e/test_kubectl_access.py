"""kubectl as somebody else: with `--as`, with a token, and with a role that it applied."""

from pathlib import Path

from tests.e2e.kubectl import Kubectl
from tests.engines.api import Api
from tests.engines.credentials import binding, token_for, user
from tests.engines.resources import ROLE_BINDINGS, SERVICE_ACCOUNTS

ROLES = Path(__file__).parents[2] / "deploy" / "roles"


async def test_as_somebody_else(here: Kubectl, api: Api) -> None:
    said = here.refused("get", "vm", "--as", "jane")
    assert said == (
        "Error from server (Forbidden): virtualmachines.kubevirt.io is forbidden: "
        f'User "jane" cannot list resource "virtualmachines" in API group "kubevirt.io" in the namespace "{here.namespace}"'
    )
    (await api.create(ROLE_BINDINGS, binding("jane", "vm-owner", user("jane")), here.namespace)).ok  # noqa: B018
    assert here.run("get", "vm", "--as", "jane").returncode == 0
    assert "cannot list resource" in here.refused("get", "secrets", "--as", "jane")


async def test_with_a_token(here: Kubectl, api: Api, tmp_path: Path) -> None:
    (await api.create(SERVICE_ACCOUNTS, {"metadata": {"name": "robot"}}, here.namespace)).ok  # noqa: B018
    token = await token_for(api, here.namespace, "robot")
    bare = tmp_path / "bare"
    # The kubeconfig without its certificate, which would count more.
    bare.write_text(
        here("config", "view", "--raw", "-o", "json")
        .replace('"client-certificate-data"', '"x"')
        .replace('"client-key-data"', '"y"')
    )
    as_robot = Kubectl(here.program, bare, here.home, here.namespace)
    said = as_robot.refused("get", "pods", "--token", token)
    assert f'User "system:serviceaccount:{here.namespace}:robot" cannot list resource "pods"' in said
    assert "Unauthorized" in as_robot.refused("get", "pods", "--token", token[:-4])


def test_roles_are_reconciled(here: Kubectl) -> None:
    for path in sorted(ROLES.glob("*.yaml")):
        assert "reconciled" in here("auth", "reconcile", "-f", str(path))
    assert "virtualmachineinstancemigrations.kubevirt.io" in here("describe", "clusterrole", "vm-migrator")
