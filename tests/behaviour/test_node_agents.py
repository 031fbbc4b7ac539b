"""`herder node`: the agent of one node, with the identity of that node and no more, on any cluster."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from herder.api import simulated_account
from tests.behaviour.candidates import Candidate
from tests.behaviour.clients import cluster_of, write_kubeconfig
from tests.behaviour.manifests import pod
from tests.engines.api import Api, Json, connect
from tests.engines.credentials import account, rule, sign, token_for, until_allowed
from tests.engines.embedded import find_program
from tests.engines.engine import Engine
from tests.engines.processes import free_ports
from tests.engines.resources import LEASES, NAMESPACES, NODES, PODS, Resource
from tests.engines.restartable import Restartable, restartable
from tests.engines.waiting import eventually

VM_HOST = {"key": "herder.dev/vm-host", "effect": "NoSchedule"}
GUEST: Json = {"instance": {"name": "i", "uid": "u"}, "spec": {"domain": {"devices": {}}}}


def kubeconfig_of(engine: Engine, folder: Path, name: str) -> Path:
    pair = sign(engine, folder, f"system:node:{name}", "system:nodes")
    shown = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
    return write_kubeconfig(folder / f"{name}.kubeconfig", cluster_of(engine), shown)


class Program:
    """`herder node`, which may be started several times."""

    def __init__(self, engine: Engine, folder: Path, name: str) -> None:
        self._folder = folder
        self.name = name
        self.kubeconfig = kubeconfig_of(engine, folder, name)
        self.runs: list[Candidate] = []

    def start(self, *more: str, kubeconfig: Path | None = None) -> Candidate:
        command = [str(find_program()), "node", "--kubeconfig", str(kubeconfig or self.kubeconfig), "--name", self.name, *more]
        self.runs.append(Candidate(command, self._folder / f"{self.name}-{len(self.runs)}.log"))
        return self.runs[-1]

    def close(self) -> None:
        for one in self.runs:
            one.close()


@pytest.fixture
def program(engine: Engine, tmp_path: Path, unique: Callable[..., str]) -> Iterator[Program]:
    made = Program(engine, tmp_path, unique("node"))
    yield made
    made.close()


async def ready(api: Api, name: str, other_than: str = "") -> Json:
    """The Node once it says that it is ready."""

    async def look() -> Json:
        reply = await api.get(NODES, name)
        node: Json = reply.body if reply.code == 200 else {"metadata": {"uid": other_than}}
        conditions = {one["type"]: one["status"] for one in node.get("status", {}).get("conditions", ())}
        return node if node["metadata"]["uid"] != other_than and conditions.get("Ready") == "True" else {}

    return await eventually(look, patience=60)


async def guest(api: Api, namespace: str, name: str, node: str) -> None:
    definition = {**GUEST, "instance": {**GUEST["instance"], "namespace": namespace}}
    body = pod(name, {"annotations": {"herder.dev/guest": json.dumps(definition)}})
    body["spec"] |= {"nodeName": node, "restartPolicy": "Never", "terminationGracePeriodSeconds": 30}
    (await api.create(PODS, body, namespace)).ok  # noqa: B018


async def in_phase(api: Api, namespace: str, name: str, phase: str) -> Json:
    async def look() -> Json:
        found = (await api.get(PODS, name, namespace)).ok
        assert found["status"]["phase"] == phase, found["status"]
        return found

    return await eventually(look, patience=60)


@pytest.mark.slow
async def test_it_registers_its_node_ready_and_closed_to_strangers(api: Api, program: Program) -> None:
    program.start("--capacity", "cpu=2,memory=4Gi")
    node = await ready(api, program.name)
    assert (node["status"]["capacity"]["cpu"], node["status"]["capacity"]["memory"]) == ("2", "4Gi")
    assert node["metadata"]["labels"]["kubevirt.io/schedulable"] == "true"

    async def open_to_machines_alone() -> bool:
        """A real API server closes each new node, until its controller manager hears that the node is ready."""
        assert (await api.get(NODES, program.name)).ok["spec"]["taints"] == [VM_HOST]
        return True

    await eventually(open_to_machines_alone, patience=60)
    lease = (await api.get(LEASES, program.name, "kube-node-lease")).ok
    assert lease["spec"]["holderIdentity"] == program.name


@pytest.mark.slow
async def test_how_often_it_says_that_it_is_there_can_be_chosen_and_where_it_tells_its_numbers(api: Api, program: Program) -> None:
    (port,) = free_ports(1)
    program.start("--heartbeat", "0.5", "--metrics-listen", f"127.0.0.1:{port}")
    await ready(api, program.name)
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:

        async def well() -> bool:
            async with session.get("/readyz") as answer:
                return answer.status == 200

        await eventually(well)
        async with session.get("/metrics") as answer:
            families = {family.name: family for family in text_string_to_metric_families(await answer.text())}
    assert {one.labels["name"] for one in families["workqueue_depth"].samples} == {"pods"}
    assert {one.labels["resource"] for one in families["herder_cache_objects"].samples} == {"pods", "nodes"}
    assert "process_start_time_seconds" in families

    async def there() -> Any:
        return (await api.get(LEASES, program.name, "kube-node-lease")).ok["spec"]

    lease = await eventually(there)
    assert lease["leaseDurationSeconds"] == 2

    async def renewed() -> bool:
        return (await api.get(LEASES, program.name, "kube-node-lease")).ok["spec"]["renewTime"] != lease["renewTime"]

    await eventually(renewed, patience=8)


@pytest.mark.slow
async def test_without_its_taint_anything_may_come(api: Api, program: Program) -> None:
    program.start("--no-taint")
    await ready(api, program.name)

    async def open_to_all() -> bool:
        assert not (await api.get(NODES, program.name)).ok["spec"].get("taints")
        return True

    await eventually(open_to_all, patience=60)


@pytest.mark.slow
async def test_it_runs_what_is_bound_to_it_and_lets_it_go(api: Api, program: Program, namespace: str) -> None:
    program.start()
    await ready(api, program.name)
    await guest(api, namespace, "mine", program.name)
    await in_phase(api, namespace, "mine", "Running")
    assert (await api.delete(PODS, "mine", namespace)).code == 200

    async def gone() -> bool:
        return (await api.get(PODS, "mine", namespace)).code == 404

    await eventually(gone, patience=60)


@pytest.mark.slow
async def test_killed_and_started_again_it_takes_up_its_guests(api: Api, program: Program, namespace: str) -> None:
    first = program.start()
    await ready(api, program.name)
    await guest(api, namespace, "mine", program.name)
    before = await in_phase(api, namespace, "mine", "Running")
    first.close()
    await guest(api, namespace, "later", program.name)
    program.start()
    await in_phase(api, namespace, "later", "Running")
    after = await in_phase(api, namespace, "mine", "Running")
    assert after["status"]["startTime"] == before["status"]["startTime"]
    assert after["status"]["containerStatuses"][0]["restartCount"] == 0


@pytest.mark.slow
async def test_told_to_stop_it_leaves_its_node_and_pods(api: Api, program: Program, namespace: str) -> None:
    first = program.start()
    await ready(api, program.name)
    await guest(api, namespace, "mine", program.name)
    await in_phase(api, namespace, "mine", "Running")
    first.send(signal.SIGTERM)
    assert await first.ended() == 0
    assert (await api.get(NODES, program.name)).code == 200
    assert (await api.get(PODS, "mine", namespace)).ok["status"]["phase"] == "Running"


@pytest.mark.slow
async def test_a_deleted_node_ends_its_guests_before_it_comes_back(api: Api, program: Program, namespace: str) -> None:
    """Deleting a Node says that its guests may be started elsewhere."""
    program.start()
    uid = (await ready(api, program.name))["metadata"]["uid"]
    await guest(api, namespace, "mine", program.name)
    await in_phase(api, namespace, "mine", "Running")
    assert (await api.delete(NODES, program.name)).code == 200
    again = await ready(api, program.name, other_than=uid)
    assert VM_HOST in again["spec"]["taints"]
    ended = await in_phase(api, namespace, "mine", "Failed")
    told = next(one for one in ended["status"]["conditions"] if one["type"] == "herder.dev/Guest")
    report = json.loads(told["message"])
    assert (report["state"], report["reason"]) == ("Failed", "GuestLost")
    # What comes now is for the node that came back.
    await guest(api, namespace, "next", program.name)
    await in_phase(api, namespace, "next", "Running")


@pytest.mark.slow
async def test_the_identity_of_another_node_is_refused_with_a_sentence(engine: Engine, program: Program, tmp_path: Path) -> None:
    stranger = kubeconfig_of(engine, tmp_path, "stranger")
    run = program.start(kubeconfig=stranger)
    assert await run.ended() == 7
    said = run.log.read_text()
    assert f"does not take us for node {program.name}" in said
    assert "docs/nodes.md" in said
    assert "Traceback" not in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--capacity", "cpu"), "'cpu' is not NAME=QUANTITY"),
        (("--capacity", "memory=lots"), "'lots' is no quantity"),
        (("--capacity", "cpu=0"), "must be more than zero"),
        (("--storage", "x"), "simulated nodes keep nothing"),
        (("--migration-cert", "x"), "--migration-cert x: simulated guests move within their process; it is for --runtime qemu"),
        (("--name", "Node_1"), "cannot be the name of a node"),
    ],
)
async def test_wrong_options_are_named(program: Program, options: tuple[str, ...], why: str) -> None:
    run = program.start(*options)
    assert await run.ended() == 2
    said = run.log.read_text()
    assert why in said
    assert "Unclosed" not in said


# --- the API server goes away ----------------------------------------------------------------------------------------------------


@pytest.fixture
def mortal(engine: Engine, tmp_path: Path) -> Iterator[Restartable]:
    """One of the test's own, of the same kind."""
    folder = tmp_path / "engine"
    folder.mkdir()
    with restartable(engine.name, folder) as made:
        yield made


@pytest.mark.slow
async def test_an_api_server_that_restarts_is_waited_for(mortal: Restartable, tmp_path: Path, unique: Any) -> None:
    program = Program(mortal.engine, tmp_path, unique("node"))
    try:
        program.start()
        async with connect(mortal.engine) as api:
            (await api.create(NAMESPACES, {"metadata": {"name": "test"}})).ok  # noqa: B018
            uid = (await ready(api, program.name))["metadata"]["uid"]
            await guest(api, "test", "before", program.name)
            before = await in_phase(api, "test", "before", "Running")
        await asyncio.to_thread(mortal.kill)
        await asyncio.to_thread(mortal.start)
        async with connect(mortal.engine) as api:
            await guest(api, "test", "after", program.name)
            await in_phase(api, "test", "after", "Running")
            kept = await in_phase(api, "test", "before", "Running")
            assert kept["status"]["startTime"] == before["status"]["startTime"]
            assert (await ready(api, program.name))["metadata"]["uid"] == uid
        assert program.runs[0].runs()
    finally:
        program.close()


# --- many at once ----------------------------------------------------------------------------------------------------------------


@pytest.fixture
async def fleet_kubeconfig(api: Api, engine: Engine, tmp_path: Path) -> AsyncIterator[Path]:
    """With the account that `herder install` makes."""
    system: Json = {"metadata": {"name": "herder-system"}, "apiVersion": "v1", "kind": "Namespace"}
    for body in (system, *simulated_account.documents()):
        group, _, version = body["apiVersion"].rpartition("/")
        resource = Resource(group, version, f"{body['kind'].lower()}s", body["kind"])
        name, namespace = body["metadata"]["name"], body["metadata"].get("namespace", "")
        (await api.patch(resource, name, body, namespace, kind="apply", fieldManager="test", force="true")).ok  # noqa: B018
    who = account("herder-system", "herder-simulated-nodes")
    await until_allowed(api, "", who, rule("patch", "pods/status"))
    await until_allowed(api, "kube-node-lease", who, rule("create", "leases", "coordination.k8s.io"))
    token = await token_for(api, "herder-system", "herder-simulated-nodes")
    yield write_kubeconfig(tmp_path / "fleet.kubeconfig", cluster_of(engine), {"token": token})


@pytest.mark.slow
async def test_a_fleet_of_simulated_nodes_has_one_account(
    api: Api, program: Program, fleet_kubeconfig: Path, namespace: str
) -> None:
    program.start("--simulated", "3", kubeconfig=fleet_kubeconfig)
    for number in (1, 2, 3):
        await ready(api, f"{program.name}-{number}")
    await guest(api, namespace, "mine", f"{program.name}-2")
    await in_phase(api, namespace, "mine", "Running")
    assert (await api.delete(PODS, "mine", namespace)).code == 200

    async def gone() -> bool:
        return (await api.get(PODS, "mine", namespace)).code == 404

    await eventually(gone, patience=60)
