"""The alternative: etcd and kube-apiserver with the settings that they come with, durable, TLS everywhere, RBAC on.

Nothing else runs beside them: a scheduler and a controller manager would only take processor time from what is measured. The client
is in system:masters on both sides, which kube-apiserver exempts from its queues: that is the fastest way in that it has.
"""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.engines.certificates import Authority, Pair, write_key
from tests.engines.engine import Engine
from tests.engines.kubernetes import find_programs
from tests.engines.processes import Child, free_ports, wait_until_ready


@contextmanager
def run_real(folder: Path) -> Generator[Engine]:
    programs = find_programs()
    etcd_port, peer_port, port = free_ports(3)
    authority = Authority(folder)
    admin = authority.sign("admin", "system:masters")
    serving = authority.sign("serving")
    write_key(folder / "accounts.key")
    server = f"https://127.0.0.1:{port}"
    engine = Engine("kubernetes", server, authority.certificate, admin.certificate, admin.key, folder / "kubeconfig")
    commands = [_etcd(folder, etcd_port, peer_port, authority, serving), _api_server(folder, port, etcd_port, authority, serving)]
    children: list[Child] = []
    try:
        for program, *arguments in commands:
            children.append(Child([str(programs / program), *arguments], folder / f"{program}.log"))
        wait_until_ready(engine, children, 60)
        yield engine
    finally:
        for child in reversed(children):
            child.stop()  # nothing of it is kept: no reason to ask


def _etcd(folder: Path, port: int, peer_port: int, authority: Authority, serving: Pair) -> list[str]:
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


def _api_server(folder: Path, port: int, etcd_port: int, authority: Authority, serving: Pair) -> list[str]:
    return [
        "kube-apiserver",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--tls-cert-file={serving.certificate}",
        f"--tls-private-key-file={serving.key}",
        f"--client-ca-file={authority.certificate}",
        f"--cert-dir={folder}",
        f"--etcd-servers=https://127.0.0.1:{etcd_port}",
        f"--etcd-cafile={authority.certificate}",
        f"--etcd-certfile={serving.certificate}",
        f"--etcd-keyfile={serving.key}",
        "--authorization-mode=RBAC",
        "--disable-admission-plugins=ServiceAccount",  # nobody makes accounts without a controller manager
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder / 'accounts.key'}",
        f"--service-account-signing-key-file={folder / 'accounts.key'}",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--endpoint-reconciler-type=none",  # 127.0.0.1 is no address for an endpoint
    ]
