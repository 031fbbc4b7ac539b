"""The installed program, as a person starts it, with no nodes."""

import base64
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.engines.engine import Engine, Unavailable
from tests.engines.processes import Child, free_ports, wait_until_file, wait_until_ready


def find_program() -> Path:
    program = Path(sys.executable).with_name("herder")
    if not program.exists():
        raise Unavailable("the embedded engine is not available: herder is not installed beside this Python")
    return program


@contextmanager
def run_embedded(folder: Path) -> Generator[Engine]:
    (port,) = free_ports(1)
    kubeconfig = folder / "kubeconfig"
    data = folder / "data"
    # The engine alone: what is tested with it is what an API server does, and nobody else may touch the objects.
    only = ["--nodes", "0", "--no-controllers"]
    arguments = ["up", "--data", str(data), "--listen", f"127.0.0.1:{port}", *only, "--kubeconfig", str(kubeconfig)]
    child = Child([str(find_program()), *arguments], folder / "herder.log")
    try:
        wait_until_file(kubeconfig, child, 20)
        engine = read_kubeconfig("embedded", kubeconfig, folder)
        wait_until_ready(engine, [child], 20)
        yield engine
    finally:
        child.stop(patience=10)


def read_kubeconfig(name: str, kubeconfig: Path, folder: Path) -> Engine:
    """The connection of the current context; what it holds inline is written to files in `folder`."""
    document: dict[str, Any] = yaml.safe_load(kubeconfig.read_text())
    context = _named(document["contexts"], document["current-context"])["context"]
    cluster = _named(document["clusters"], context["cluster"])["cluster"]
    user = _named(document["users"], context["user"])["user"]
    return Engine(
        name,
        cluster["server"],
        _file_of(cluster, "certificate-authority", kubeconfig, folder),
        _file_of(user, "client-certificate", kubeconfig, folder),
        _file_of(user, "client-key", kubeconfig, folder),
        kubeconfig,
    )


def _named(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(item for item in items if item["name"] == name)


def _file_of(entry: dict[str, Any], field: str, kubeconfig: Path, folder: Path) -> Path:
    if inline := entry.get(f"{field}-data"):
        path = folder / f"{field}.pem"
        path.touch(mode=0o600)
        path.write_bytes(base64.b64decode(inline))
        return path
    return kubeconfig.parent / entry[field]
