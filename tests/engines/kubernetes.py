"""A real Kubernetes control plane without kubelets: etcd, API server, scheduler, controller manager, and beside it our webhook."""

import json
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.engines.certificates import Authority, Pair, write_key
from tests.engines.engine import Engine, Unavailable
from tests.engines.processes import Child, free_ports, wait_until_file, wait_until_ready
from tests.engines.webhook import command as webhook_command

_ROOT = Path(__file__).parents[2]
_BUILD = _ROOT / "tools" / "kube" / "build.sh"
# No peers to hear from; a busy machine must not look like a lost leader. And nothing of it is kept.
_QUICK_ETCD = ("--unsafe-no-fsync", "--heartbeat-interval=500", "--election-timeout=2500")
KUBELET_CLIENT = "kube-apiserver-kubelet-client"
FRONT_PROXY = "front-proxy-client"
_PROGRAMS = ("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager")


def find_programs() -> Path:
    """The folder with the programs, built now if they never were."""
    answer = subprocess.run([str(_BUILD), *_PROGRAMS], capture_output=True, text=True, check=False)
    if answer.returncode:
        lines = answer.stderr.strip().splitlines() or ["no reason given"]
        raise Unavailable(f"the kubernetes engine is not available: {lines[-1]}")
    return Path(answer.stdout.strip())


class _Started:
    """What runs, in the order in which it was started."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.children: list[Child] = []
        self._folder = folder
        self._programs = programs

    def __call__(self, command: list[str]) -> Child:
        self.children.append(Child([str(self._programs / command[0]), *command[1:]], self._folder / f"{command[0]}.log"))
        return self.children[-1]

    def stop(self) -> None:
        for child in reversed(self.children):
            child.stop()  # nothing of it is kept: no reason to ask


@contextmanager
def run_kubernetes(folder: Path) -> Generator[Engine]:
    with run_cluster(folder) as (engine, start, manager):
        (port,) = free_ports(1)
        registered = folder / "webhook.registered"
        webhook = Child(webhook_command(engine, port, registered), folder / "webhook.log", folder=_ROOT)
        start.children.append(webhook)
        _wait_for_controllers(manager)
        wait_until_file(registered, webhook, 30)
        yield engine


@contextmanager
def run_kubernetes_alone(folder: Path) -> Generator[Engine]:
    """Without our webhook: nobody asks our rules."""
    with run_cluster(folder) as (engine, _, manager):
        _wait_for_controllers(manager)
        yield engine


@contextmanager
def run_cluster(folder: Path) -> Generator[tuple[Engine, "_Started", Child]]:
    with _run_api_server(folder) as (engine, start):
        # Only now: started earlier they would sleep for seconds before they try again.
        manager = start(controller_manager_command(folder, engine))
        start(_scheduler(engine))
        yield engine, start, manager


@contextmanager
def run_api_server(folder: Path) -> Generator[Engine]:
    """Nobody but the API server: no controllers, and no webhook that a test did not start itself."""
    with _run_api_server(folder) as (engine, _):
        yield engine


@contextmanager
def _run_api_server(folder: Path) -> Generator[tuple[Engine, _Started]]:
    start = _Started(folder, find_programs())
    etcd_port, peer_port, port = free_ports(3)
    authority = Authority(folder)
    admin = authority.sign("admin", "system:masters")
    engine = engine_at(folder, f"https://127.0.0.1:{port}", authority, admin)
    serving = authority.sign("serving")
    authority.sign("kubelet")  # what a node's endpoint shows to the API server
    write_key(folder / "accounts.key")
    try:
        start([*etcd_command(folder, etcd_port, peer_port, authority, serving), *_QUICK_ETCD])
        start([*api_server_command(folder, port, etcd_port, authority, serving), "--profiling=false"])
        wait_until_ready(engine, start.children, 60)
        yield engine, start
    finally:
        start.stop()


def _wait_for_controllers(manager: Child, patience: float = 30) -> None:
    """The garbage collector is the last to be of use: without it, tests of owners only wait longer."""
    deadline = time.monotonic() + patience
    while "Proceeding to collect garbage" not in manager.log.read_text(errors="replace") and time.monotonic() < deadline:
        manager.check()
        time.sleep(0.05)


def engine_at(folder: Path, server: str, authority: Authority, admin: Pair) -> Engine:
    kubeconfig = folder / "kubeconfig"
    user = {"client-certificate": str(admin.certificate), "client-key": str(admin.key)}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority": str(authority.certificate)}}],
        "users": [{"name": "admin", "user": user}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
        "current-context": "test",
    }
    kubeconfig.write_text(json.dumps(document))
    return Engine("kubernetes", server, authority.certificate, admin.certificate, admin.key, kubeconfig)


def etcd_command(folder: Path, port: int, peer_port: int, authority: Authority, serving: Pair) -> list[str]:
    client, peer = f"https://127.0.0.1:{port}", f"http://127.0.0.1:{peer_port}"
    return [
        "etcd",
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--client-cert-auth",
        f"--trusted-ca-file={authority.certificate}",
        f"--cert-file={serving.certificate}",
        f"--key-file={serving.key}",
        "--log-level=warn",
    ]


def api_server_command(folder: Path, port: int, etcd_port: int, authority: Authority, serving: Pair) -> list[str]:
    kubelet_client = authority.sign(KUBELET_CLIENT)
    front_proxy = authority.sign(FRONT_PROXY)
    return [
        "kube-apiserver",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--tls-cert-file={serving.certificate}",
        f"--tls-private-key-file={serving.key}",
        f"--client-ca-file={authority.certificate}",
        f"--cert-dir={folder}",
        f"--kubelet-certificate-authority={authority.certificate}",
        f"--kubelet-client-certificate={kubelet_client.certificate}",
        f"--kubelet-client-key={kubelet_client.key}",
        "--kubelet-preferred-address-types=InternalIP",
        # What servers of other groups (a metrics-server) know the API server by, and who it says that asks.
        f"--proxy-client-cert-file={front_proxy.certificate}",
        f"--proxy-client-key-file={front_proxy.key}",
        f"--requestheader-client-ca-file={authority.certificate}",
        f"--requestheader-allowed-names={FRONT_PROXY}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--etcd-servers=https://127.0.0.1:{etcd_port}",
        f"--etcd-cafile={authority.certificate}",
        f"--etcd-certfile={serving.certificate}",
        f"--etcd-keyfile={serving.key}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--disable-admission-plugins=ServiceAccount",  # pods without a token; nobody need make one for them here
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder / 'accounts.key'}",
        f"--service-account-signing-key-file={folder / 'accounts.key'}",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--endpoint-reconciler-type=none",  # 127.0.0.1 is no address for an endpoint
    ]


def controller_manager_command(folder: Path, engine: Engine) -> list[str]:
    return [
        "kube-controller-manager",
        f"--kubeconfig={engine.kubeconfig}",
        "--bind-address=127.0.0.1",
        "--secure-port=0",
        "--leader-elect=false",
        f"--service-account-private-key-file={folder / 'accounts.key'}",
        f"--root-ca-file={engine.ca}",
        f"--cluster-signing-cert-file={engine.ca}",
        f"--cluster-signing-key-file={engine.ca.parent / 'ca.key'}",
        "--concurrent-namespace-syncs=10",
        "--horizontal-pod-autoscaler-sync-period=1s",  # nobody should wait for the usual 15
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
        "--profiling=false",
    ]


def _scheduler(engine: Engine) -> list[str]:
    return [
        "kube-scheduler",
        f"--kubeconfig={engine.kubeconfig}",
        "--bind-address=127.0.0.1",
        "--secure-port=0",
        "--leader-elect=false",
        "--profiling=false",
    ]
