"""What `herder up` starts has rights of its own, and none of it may do everything."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.e2e.program import Up
from tests.engines.api import Api, connect
from tests.engines.resources import NODES, PODS, SECRETS, Resource
from tests.engines.waiting import eventually

MACHINES = Resource("kubevirt.io", "v1", "virtualmachines", "VirtualMachine")
WHO_AM_I = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with Up(tmp_path_factory.mktemp("herd"), "--runtime", "simulated", nodes=1) as running:
        yield running


@asynccontextmanager
async def _by(socket: Path) -> AsyncGenerator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession("http://herder", connector=aiohttp.UnixConnector(str(socket))) as session:
        yield session


async def _code(session: aiohttp.ClientSession, method: str, path: str, body: Any = None, **headers: str) -> int:
    async with session.request(method, path, json=body, headers=headers) as answer:
        return answer.status


@pytest.mark.parametrize("account", ["herder-controllers", "herder-simulated-nodes"])
async def test_each_process_comes_in_by_a_socket_of_its_own(simulated: Up, account: str) -> None:
    socket = simulated.data / f"{account}.sock"
    assert socket.stat().st_mode & 0o777 == 0o600
    async with _by(socket) as session, session.post(WHO_AM_I, json=REVIEW) as answer:
        known = (await answer.json())["status"]["userInfo"]
    assert known["username"] == f"system:serviceaccount:herder-system:{account}"
    assert known["groups"] == ["system:serviceaccounts", "system:serviceaccounts:herder-system", "system:authenticated"]


async def test_the_agents_of_simulated_nodes_see_nothing_secret_and_give_no_rights(simulated: Up) -> None:
    async with _by(simulated.data / "herder-simulated-nodes.sock") as session:
        assert await _code(session, "GET", NODES.path()) == 200
        for path in (SECRETS.path(), "/api/v1/configmaps", "/apis/kubevirt.io/v1/virtualmachines", "/metrics"):
            assert await _code(session, "GET", path) == 403, path
        assert await _code(session, "DELETE", NODES.path(name="node-1")) == 403
        assert await _code(session, "POST", PODS.path("default"), {"metadata": {"name": "x"}}) == 403
        assert await _code(session, "GET", SECRETS.path(), **{"Impersonate-User": "admin"}) == 403


async def test_the_controllers_make_no_nodes_and_give_no_rights(simulated: Up) -> None:
    async with _by(simulated.data / "herder-controllers.sock") as session:
        assert await _code(session, "GET", PODS.path()) == 200
        assert await _code(session, "POST", NODES.path(), {"metadata": {"name": "x"}}) == 403
        assert await _code(session, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", {}) == 403
        assert await _code(session, "GET", SECRETS.path(), **{"Impersonate-User": "admin"}) == 403


async def test_with_these_rights_a_machine_starts_and_goes(simulated: Up, tmp_path: Path) -> None:
    spec = {"domain": {"memory": {"guest": "64Mi"}, "devices": {}}}
    machine = {"metadata": {"name": "tiny"}, "spec": {"runStrategy": "Always", "template": {"spec": spec}}}
    async with connect(simulated.connection(tmp_path)) as admin:
        (await admin.create(MACHINES, machine, "default")).ok  # noqa: B018
        await eventually(lambda: _status(admin, "Running"), patience=60)
        assert (await admin.delete(MACHINES, "tiny", "default")).code == 200

        async def gone() -> bool:
            return (await admin.get(MACHINES, "tiny", "default")).code == 404 and not (await admin.list(PODS, "default")).items

        await eventually(gone, patience=60)


async def _status(admin: Api, wanted: str) -> bool:
    found = (await admin.get(MACHINES, "tiny", "default")).ok.get("status", {}).get("printableStatus")
    assert found == wanted
    return True


async def test_rights_that_were_taken_away_come_back_with_the_next_start(tmp_path: Path) -> None:
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/herder:controllers"
    with Up(tmp_path, nodes=0) as first:
        async with connect(first.connection(tmp_path)) as admin:
            assert (await admin.request("DELETE", role)).code == 200
    with Up(tmp_path, nodes=0) as second:
        async with connect(second.connection(tmp_path)) as admin:
            assert (await admin.request("GET", role)).code == 200
