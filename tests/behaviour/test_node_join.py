"""How a node comes to its identity, as docs/nodes.md says: `herder node join`, or `herder user add` on an embedded engine."""

import asyncio
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.behaviour.clients import cluster_of, write_kubeconfig
from tests.behaviour.test_node_agents import Program, ready
from tests.engines.api import Api, Json
from tests.engines.credentials import grant, rule, sign, user
from tests.engines.embedded import find_program
from tests.engines.engine import Engine
from tests.engines.resources import Resource
from tests.engines.waiting import eventually

REQUESTS = Resource("certificates.k8s.io", "v1", "certificatesigningrequests", "CertificateSigningRequest", namespaced=False)


async def _judge(api: Api, node: str, verdict: str) -> None:
    """What `kubectl certificate approve|deny` does."""

    async def found() -> Json | None:
        items = (await api.list(REQUESTS)).items
        return next((one for one in items if one["metadata"]["name"].startswith(f"herder-node-{node}-")), None)

    request = await eventually(found, patience=30)
    assert request is not None
    condition = {"type": verdict, "status": "True", "reason": "Test", "message": "as the test wants it"}
    request["status"] = {**request.get("status", {}), "conditions": [condition]}
    assert (await api.update(REQUESTS, request, subresource="approval")).code == 200


async def _asker(api: Api, engine: Engine, folder: Path, name: str) -> Path:
    """Somebody who may ask for certificates, and whom the cluster does not trust so far as to approve by itself."""
    if engine.name == "embedded":
        return engine.kubeconfig
    await grant(api, "", user(f"{name}-asker"), rule("create get", "certificatesigningrequests", "certificates.k8s.io"))
    pair = sign(engine, folder, f"{name}-asker")
    shown = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
    return write_kubeconfig(folder / "asker", cluster_of(engine), shown)


def _join(asker: Path, folder: Path, name: str) -> subprocess.CompletedProcess[str]:
    return _run(folder, "node", "join", "--kubeconfig", str(asker), "--name", name)


def _add(engine: Engine, folder: Path, name: str) -> subprocess.CompletedProcess[str]:
    data = engine.kubeconfig.parent / "data"
    return _run(folder, "user", "add", f"system:node:{name}", "--group", "system:nodes", "--data", str(data))


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(find_program()), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=60, check=False)


@pytest.mark.slow
async def test_the_documented_way_leads_to_a_ready_node(
    api: Api, engine: Engine, tmp_path: Path, unique: Callable[..., str]
) -> None:
    name = unique("node")
    if engine.name == "kubernetes":
        asker = await _asker(api, engine, tmp_path, name)
        joining = asyncio.create_task(asyncio.to_thread(_join, asker, tmp_path, name))
        await _judge(api, name, "Approved")
        ended = await joining
        assert "kubectl certificate approve" in ended.stdout
    else:
        ended = await asyncio.to_thread(_add, engine, tmp_path, name)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert f"herder node --kubeconfig {name}.kubeconfig --name {name}" in ended.stdout
    kubeconfig = tmp_path / f"{name}.kubeconfig"
    assert kubeconfig.stat().st_mode & 0o777 == 0o600
    (tmp_path / "other").mkdir()
    program = Program(engine, tmp_path / "other", name)
    try:
        program.start(kubeconfig=kubeconfig)
        assert (await ready(api, name))["metadata"]["name"] == name
    finally:
        program.close()


async def test_a_denied_request_is_told(api: Api, engine: Engine, tmp_path: Path, unique: Callable[..., str]) -> None:
    name = unique("node")
    asker = await _asker(api, engine, tmp_path, name)
    joining = asyncio.create_task(asyncio.to_thread(_join, asker, tmp_path, name))
    if engine.name == "kubernetes":
        await _judge(api, name, "Denied")
        expected = "was denied: as the test wants it"
    else:
        expected = f"this server signs no certificates; `herder user add system:node:{name} --group system:nodes`"
    ended = await joining
    assert ended.returncode == 7
    assert expected in ended.stderr
    assert not (tmp_path / f"{name}.kubeconfig").exists()
