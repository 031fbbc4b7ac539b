"""The real metrics-server beside a real API server: by its own account and roles, as its manifests have them."""

import asyncio
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.behaviour.clients import cluster_of, write_kubeconfig
from tests.engines.api import Api, Json
from tests.engines.credentials import token_for
from tests.engines.engine import Engine, Unavailable
from tests.engines.processes import Child, free_ports
from tests.engines.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, SERVICE_ACCOUNTS, Resource
from tests.engines.waiting import eventually

API_SERVICES = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", namespaced=False)
SERVICES = Resource("", "v1", "services", "Service")
GROUP, VERSION = "metrics.k8s.io", "v1beta1"
API_SERVICE = f"{VERSION}.{GROUP}"
_BUILD = Path(__file__).parents[2] / "tools" / "metrics_server" / "build.sh"
NAMESPACE, NAME = "kube-system", "metrics-server"
ACCOUNT: Json = {"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}
READS = [
    {"apiGroups": [""], "resources": ["nodes/metrics"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get", "list", "watch"]},
]
# What it keeps at least between two looks at the nodes: no metrics-server looks more often.
RESOLUTION = "10s"
PATIENCE_WITH_NODES = "9s"


def find_program() -> Path:
    """Built now if it never was."""
    answer = subprocess.run([str(_BUILD)], capture_output=True, text=True, check=False)
    if answer.returncode:
        lines = answer.stderr.strip().splitlines() or ["no reason given"]
        raise Unavailable(f"metrics-server is not available: {lines[-1]}")
    return Path(answer.stdout.strip()) / NAME


@asynccontextmanager
async def running_metrics_server(engine: Engine, api: Api, folder: Path) -> AsyncGenerator[Child]:
    """Registered with the API server, which finds it by a Service that is a name for this machine."""
    program = find_program()
    (port,) = free_ports(1)
    await _account(api)
    # With nothing but its token, to the API server as to the nodes.
    token = {"token": await token_for(api, NAMESPACE, NAME)}
    kubeconfig = str(write_kubeconfig(folder / "metrics-server.kubeconfig", cluster_of(engine), token))
    command = [
        str(program),
        *(f"--{whose}={kubeconfig}" for whose in ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")),
        f"--kubelet-certificate-authority={engine.ca}",
        "--kubelet-preferred-address-types=InternalIP",
        "--kubelet-use-node-status-port",
        f"--metric-resolution={RESOLUTION}",
        f"--kubelet-request-timeout={PATIENCE_WITH_NODES}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={folder}",
    ]
    child = Child(command, folder / "metrics-server.log")
    try:
        await eventually(lambda: _listens(child, port), patience=60)
        await _register(api, port)
        yield child
    finally:
        await api.delete(API_SERVICES, API_SERVICE)
        child.stop()


async def _listens(child: Child, port: int) -> bool:
    """Registered earlier, it would be taken for lost, and looked at again only after a while."""
    child.check()
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


async def _account(api: Api) -> None:
    account = {"metadata": {"name": NAME}}
    await _made(api, SERVICE_ACCOUNTS, account, NAMESPACE)
    await _made(api, CLUSTER_ROLES, {"metadata": {"name": f"system:{NAME}"}, "rules": READS})
    await _made(api, CLUSTER_ROLE_BINDINGS, _binding(f"system:{NAME}", "ClusterRole", f"system:{NAME}"))
    await _made(api, CLUSTER_ROLE_BINDINGS, _binding(f"{NAME}:system:auth-delegator", "ClusterRole", "system:auth-delegator"))
    reader = _binding(f"{NAME}-auth-reader", "Role", "extension-apiserver-authentication-reader")
    await _made(api, ROLE_BINDINGS, reader, NAMESPACE)


async def _register(api: Api, port: int) -> None:
    place = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
    await _made(api, SERVICES, {"metadata": {"name": NAME}, "spec": place}, NAMESPACE)
    spec = {
        "group": GROUP,
        "version": VERSION,
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "insecureSkipTLSVerify": True,
        "service": {"name": NAME, "namespace": NAMESPACE, "port": port},
    }
    await _made(api, API_SERVICES, {"metadata": {"name": API_SERVICE}, "spec": spec})


async def _made(api: Api, resource: Resource, body: Json, namespace: str = "") -> None:
    (await api.create(resource, body, namespace)).ok  # noqa: B018


def _binding(name: str, kind: str, role: str) -> Json:
    role_ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
    return {"metadata": {"name": name}, "roleRef": role_ref, "subjects": [ACCOUNT]}
