"""The alternative: etcd and kube-apiserver with the settings that they come with, durable, TLS everywhere, RBAC on.

Nothing else runs beside them: a scheduler and a controller manager would only take processor time from what is measured. The client
is in system:masters on both sides, which kube-apiserver exempts from its queues: that is the fastest way in that it has.
"""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.engines.certificates import Authority, write_key
from tests.engines.engine import Engine
from tests.engines.kubernetes import api_server_command, etcd_command, find_programs
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
    commands = [
        etcd_command(folder, etcd_port, peer_port, authority, serving),
        api_server_command(folder, port, etcd_port, authority, serving),
    ]
    children: list[Child] = []
    try:
        for program, *arguments in commands:
            children.append(Child([str(programs / program), *arguments], folder / f"{program}.log"))
        wait_until_ready(engine, children, 60)
        yield engine
    finally:
        for child in reversed(children):
            child.stop()  # nothing of it is kept: no reason to ask
