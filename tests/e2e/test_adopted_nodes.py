"""Nodes that a user labels as simulated are adopted, whatever else `herder up` runs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.e2e.guest.conftest import qemu  # a fixture
from tests.e2e.herder import Herder
from tests.e2e.kubectl import Kubectl
from tests.e2e.manifests import ROOT, machine
from tests.e2e.program import Up, until
from tests.engines.resources import NODES, PODS

__all__ = ["qemu"]
EXAMPLE = ROOT / "examples" / "mixed-nodes.yaml"
MERGE = {"Content-Type": "application/merge-patch+json"}
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


def _runs_there(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", str(EXAMPLE))
    kubectl("wait", "--for=condition=Ready", "node/odd", "node/plain-1", "node/plain-2", "--timeout=60s")
    wanted = machine("adopted", "Always")
    wanted["spec"]["template"]["spec"]["nodeSelector"] = {"example.com/rack": "mixed"}
    kubectl.create(wanted)
    kubectl("wait", "--for=condition=Ready", "vm/adopted", "--timeout=60s")
    node = kubectl.json("get", "vmi", "adopted")["status"]["nodeName"]
    assert node in ("odd", "plain-1", "plain-2")
    assert kubectl.json("get", "node", node)["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("simulated://")


def test_without_nodes_of_its_own(tmp_path: Path, kubectl_program: Path) -> None:
    with Up(tmp_path, nodes=0) as up:
        _runs_there(Kubectl(kubectl_program, up.kubeconfig, tmp_path))


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory, qemu: str) -> Iterator[Up]:
    with Up(tmp_path_factory.mktemp("beside"), "--runtime", "qemu", nodes=1) as up:
        yield up


@pytest.fixture
def kubectl(beside: Up, kubectl_program: Path, tmp_path: Path) -> Kubectl:
    return Kubectl(kubectl_program, beside.kubeconfig, tmp_path)


def test_beside_qemu_nodes(kubectl: Kubectl) -> None:
    _runs_there(kubectl)
    assert kubectl.json("get", "node", "node-1")["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("qemu://")


def test_a_qemu_node_that_somebody_labels_as_simulated_stays_with_its_own_agent(kubectl: Kubectl) -> None:
    kubectl("label", "node", "node-1", "herder.dev/runtime=simulated", "--overwrite")
    try:
        kubectl("apply", "-f", str(EXAMPLE))
        kubectl("wait", "--for=condition=Ready", "node/odd", "--timeout=60s")
        pod: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "plain"},
            "spec": {"nodeName": "node-1", "containers": [{"name": "one", "image": "none"}]},
        }
        kubectl.create(pod, {**pod, "metadata": {"name": "other"}, "spec": {**pod["spec"], "nodeName": "odd"}})
        # Plain pods run on simulated nodes alone.
        kubectl("wait", "--for=condition=Ready", "pod/other", "--timeout=60s")
        kubectl("wait", "--for=jsonpath={.status.phase}=Failed", "pod/plain", "--timeout=60s")
        assert "runs virtual machines" in kubectl.json("get", "pod", "plain")["status"]["message"]
    finally:
        kubectl("label", "node", "node-1", "herder.dev/runtime=qemu", "--overwrite")
        kubectl("delete", "pod", "plain", "other", "--wait=false", "--force", "--ignore-not-found")


async def test_the_account_of_simulated_nodes_may_not_act_for_others(beside: Up, kubectl: Kubectl) -> None:
    pod = {"metadata": {"name": "bound"}, "spec": {"nodeName": "node-1", "containers": [{"name": "one", "image": "none"}]}}
    kubectl.create({"apiVersion": "v1", "kind": "Pod", **pod})
    untrue = {"status": {"message": "untrue"}}
    connector = aiohttp.UnixConnector(str(beside.data / "herder-simulated-nodes.sock"))
    async with aiohttp.ClientSession("http://herder", connector=connector) as session:

        async def code(method: str, path: str, body: Any = None) -> int:
            async with session.request(method, path, json=body, headers=MERGE if method == "PATCH" else {}) as answer:
                if answer.status == 403:
                    assert "is not simulated" in (await answer.json())["message"]
                return answer.status

        assert await code("PATCH", PODS.path("default", "bound") + "/status", untrue) == 403
        assert await code("DELETE", PODS.path("default", "bound")) == 403
        assert await code("PATCH", NODES.path(name="node-1"), {"metadata": {"labels": {"herder.dev/runtime": "simulated"}}}) == 403
        assert await code("PATCH", NODES.path(name="node-1") + "/status", {"status": {"capacity": {"cpu": "1"}}}) == 403
        assert await code("PATCH", f"{LEASES}/node-1", {"spec": {"holderIdentity": "somebody"}}) == 403
        assert await code("POST", NODES.path(), {"metadata": {"name": "new"}}) == 403
        made = {"metadata": {"name": "new", "labels": {"herder.dev/runtime": "simulated"}}}
        assert await code("POST", NODES.path(), made) == 201
    assert kubectl.json("get", "pod", "bound")["status"].get("message") != "untrue"
    kubectl("delete", "pod", "bound", "--wait=false", "--force")
    kubectl("delete", "node", "new")


def test_a_node_with_an_agent_of_its_own_is_left_to_that(tmp_path: Path, kubectl_program: Path) -> None:
    """`herder node` is simulated too, unless it is said otherwise: two that act for one node would start everything twice."""
    with Up(tmp_path, nodes=0) as up:
        kubectl = Kubectl(kubectl_program, up.kubeconfig, tmp_path)
        config = tmp_path / "n1.kubeconfig"
        herder = Herder(None, tmp_path)
        herder("user", "add", "system:node:n1", "--group", "system:nodes", "--data", str(up.data), "--kubeconfig", str(config))
        agent = herder.start("node", "--kubeconfig", str(config), "--name", "n1", "--no-taint", "--heartbeat", "0.5")
        try:
            until(lambda: kubectl.run("get", "node", "n1").returncode == 0, "it did not register", 60)
            # Adopted later than n1 would have been.
            kubectl("apply", "-f", str(EXAMPLE))
            kubectl("wait", "--for=condition=Ready", "node/n1", "node/odd", "--timeout=60s")
            owners = {one["metadata"]["name"]: one["metadata"]["labels"] for one in kubectl.json("get", "nodes")["items"]}
            assert (owners["n1"]["herder.dev/agent"], owners["odd"]["herder.dev/agent"]) == ("n1", "herder-up")
        finally:
            agent.terminate()
            agent.wait(20)
        # Nobody else speaks for it.
        leases = kubectl.inside("kube-node-lease")
        silent, other = _renewed(leases, "n1"), _renewed(leases, "odd")
        until(lambda: _renewed(leases, "odd") != other, "odd is silent", 60)
        assert _renewed(leases, "n1") == silent


def _renewed(leases: Kubectl, node: str) -> str:
    return leases.json("get", "lease", node)["spec"]["renewTime"]
