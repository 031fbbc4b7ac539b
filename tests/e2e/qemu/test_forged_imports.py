"""Tenants who make importer pods themselves, where volumes are those of real QEMU nodes: nothing of others is read or removed.

On each engine, with the program as people install it, and on a real cluster also without our webhook: the node alone suffices.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from herder.api import labels, registry
from herder.api.account import ACCOUNT, SYSTEM_NAMESPACE
from herder.api.storage import ALLOW_CLONE
from tests.behaviour.candidates import Candidate
from tests.behaviour.clients import cluster_of, write_kubeconfig
from tests.behaviour.our_kinds import resource_of
from tests.behaviour.test_node_agents import Program, ready
from tests.conftest import or_skipped
from tests.e2e.program import Up
from tests.engines.api import Api, Json, connect
from tests.engines.credentials import bind, rule, token_for, user, with_certificate
from tests.engines.embedded import find_program
from tests.engines.engine import Engine
from tests.engines.kubernetes import run_kubernetes, run_kubernetes_alone
from tests.engines.resources import CLAIMS, NAMESPACES, PODS, VOLUMES
from tests.engines.waiting import eventually

DATA_VOLUMES = resource_of(registry.DATA_VOLUME)
MIB = 1024 * 1024
PATIENCE = 90.0
NODE = "node-1"


@dataclass(frozen=True)
class Site:
    engine: Engine
    api: Api
    volumes: Path
    # Somebody keeps tenants from making such pods at all.
    admission: bool

    def disk(self, volume: str) -> Path:
        return self.volumes / volume / "disk.img"

    def holding(self, content: bytes) -> list[Path]:
        return [one for one in self.volumes.rglob("*") if one.is_file() and content[:512] in one.read_bytes()]

    async def namespace(self) -> str:
        name = f"test-{uuid.uuid4().hex[:8]}"
        (await self.api.create(NAMESPACES, {"metadata": {"name": name}})).ok  # noqa: B018
        return name

    async def filled(self, namespace: str, name: str, source: Json | None = None) -> str:
        """A DataVolume as a person makes it; the volume that it has filled."""
        size = {} if source else {"resources": {"requests": {"storage": "2Mi"}}}
        spec = {"source": source or {"blank": {}}, "storage": {**size, "storageClassName": labels.STORAGE_CLASS}}
        (await self.api.create(DATA_VOLUMES, {"metadata": {"name": name}, "spec": spec}, namespace)).ok  # noqa: B018

        async def done() -> str:
            status = (await self.api.get(DATA_VOLUMES, name, namespace)).ok.get("status", {})
            assert status.get("phase") == "Succeeded", status
            return (await self.api.get(CLAIMS, name, namespace)).ok["spec"]["volumeName"]

        return await eventually(done, PATIENCE)


@asynccontextmanager
async def embedded(folder: Path) -> AsyncGenerator[Site]:
    with Up(folder, "--runtime", "qemu") as up:
        engine = up.connection(folder)
        async with connect(engine) as api:
            yield Site(engine, api, up.data / "volumes", admission=True)


@asynccontextmanager
async def kubernetes(folder: Path, *, admission: bool) -> AsyncGenerator[Site]:
    """Installed as docs/install.md says; the controllers have the account that was made for them, and the node is that node."""
    run = run_kubernetes if admission else run_kubernetes_alone
    with or_skipped(run(folder)) as engine:
        async with connect(engine) as api:
            install = [str(find_program()), "install", "--kubeconfig", str(engine.kubeconfig)]
            await asyncio.to_thread(subprocess.run, install, check=True, capture_output=True, timeout=120)
            token = await token_for(api, SYSTEM_NAMESPACE, ACCOUNT)
            kubeconfig = write_kubeconfig(folder / "controllers.kubeconfig", cluster_of(engine), {"token": token})
            command = [str(find_program()), "controllers", "--kubeconfig", str(kubeconfig)]
            controllers, agent = Candidate(command, folder / "controllers.log"), Program(engine, folder, NODE)
            try:
                agent.start("--runtime", "qemu", "--storage", str(folder / "storage"))
                await ready(api, NODE)
                yield Site(engine, api, folder / "storage" / "volumes", admission)
            finally:
                agent.close()
                controllers.close()


@pytest.fixture(
    scope="module",
    params=[
        "embedded",
        pytest.param("kubernetes", marks=pytest.mark.kubernetes),
        pytest.param("kubernetes without the webhook", marks=pytest.mark.kubernetes),
    ],
)
async def site(request: pytest.FixtureRequest, qemu: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    run = embedded(folder) if request.param == "embedded" else kubernetes(folder, admission=request.param == "kubernetes")
    async with contextlib.AsyncExitStack() as stack:
        yield await stack.enter_async_context(run)


@dataclass(frozen=True)
class Victim:
    namespace: str
    volume: str
    content: bytes


@pytest.fixture
async def victim(site: Site) -> Victim:
    """A namespace, and a volume in it that holds something."""
    namespace = await site.namespace()
    found = Victim(namespace, await site.filled(namespace, "treasure"), os.urandom(MIB))
    with site.disk(found.volume).open("r+b") as file:
        file.write(found.content)
    return found


@asynccontextmanager
async def tenant_of(site: Site, role: str, namespace: str) -> AsyncGenerator[Api]:
    who = f"tenant-{uuid.uuid4().hex[:8]}"
    await bind(site.api, namespace, role, user(who), rule("create", "pods"))
    async with with_certificate(site.engine, who) as connected:
        yield connected


def forged(name: str, order: Json, **spec: Any) -> Json:
    container = {"name": "importer", "image": "herder.dev/importer"}
    tolerations = [{"operator": "Exists"}]
    return {
        "metadata": {"name": name, "annotations": {labels.IMPORT: json.dumps(order)}},
        "spec": {"nodeName": NODE, "restartPolicy": "Never", "containers": [container], "tolerations": tolerations, **spec},
    }


async def refused_by_the_node(site: Site, namespace: str, name: str) -> None:
    async def failed() -> bool:
        status = (await site.api.get(PODS, name, namespace)).ok["status"]
        assert (status.get("phase"), status.get("reason")) == ("Failed", "ImportForbidden"), status
        return True

    await eventually(failed, PATIENCE)


@pytest.mark.parametrize("role", ["admin", "edit"])
async def test_a_tenant_neither_copies_nor_removes_a_volume_of_others(site: Site, victim: Victim, role: str) -> None:
    namespace, volume = await site.namespace(), victim.volume
    mine = await site.filled(namespace, "mine")
    site.disk(mine).unlink()
    mounts = {"volumes": [{"name": "target", "persistentVolumeClaim": {"claimName": "mine"}}]}
    pods = {
        "removes": forged("removes", {"action": "delete", "volume": volume}),
        "copies": forged("copies", {"action": "clone", "source": volume, "volume": mine, "capacity": 2 * MIB}, **mounts),
    }
    async with tenant_of(site, role, namespace) as tenant:
        for name, pod in pods.items():
            reply = await tenant.create(PODS, pod, namespace)
            if site.admission:
                reply.refused(403, "Forbidden")
                # And by somebody whom admission lets: the node is not impressed.
                (await site.api.create(PODS, pod, namespace)).ok  # noqa: B018
            else:
                assert reply.code == 201, reply.body
            await refused_by_the_node(site, namespace, name)
    assert site.disk(volume).read_bytes()[:MIB] == victim.content
    assert site.holding(victim.content) == [site.disk(volume)]


async def test_what_people_may_do_goes_on(site: Site, victim: Victim) -> None:
    """A copy with the consent of the owner; and what nobody claims any more is cleared away."""
    namespace, theirs, volume = await site.namespace(), victim.namespace, victim.volume
    consent = {"metadata": {"annotations": {ALLOW_CLONE: namespace}}}
    (await site.api.patch(CLAIMS, "treasure", consent, theirs)).ok  # noqa: B018
    copy = await site.filled(namespace, "copy", {"pvc": {"name": "treasure", "namespace": theirs}})
    assert site.disk(copy).read_bytes()[:MIB] == victim.content
    (await site.api.delete(DATA_VOLUMES, "treasure", theirs)).ok  # noqa: B018

    async def gone() -> bool:
        return (await site.api.get(VOLUMES, volume)).code == 404

    await eventually(gone, PATIENCE)
    assert not site.disk(volume).parent.exists()
    assert site.disk(copy).read_bytes()[:MIB] == victim.content
