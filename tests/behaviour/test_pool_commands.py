"""What `herder pool …` writes, by somebody with the role vm-owner, on every engine. No controller runs: each write is looked at."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from herder.api import labels, registry
from herder.kube.client import JSON_PATCH
from herder.kube.errors import Conflict
from herder.kube.resources import POOLS as OUR_POOLS
from herder.kube.resources import Key
from herder.rules.pools.revisions import revision_document, wanted_revision
from herder.rules.pools.wishes import back_to
from tests.behaviour.clients import cluster_of, connected, write_kubeconfig
from tests.behaviour.our_kinds import install_crds, resource_of
from tests.engines.api import Api
from tests.engines.credentials import bind, rule, sign, user
from tests.engines.embedded import find_program
from tests.engines.engine import Engine
from tests.engines.resources import CLUSTER_ROLES, CONTROLLER_REVISIONS

Json = dict[str, Any]
ROLE = Path(__file__).parents[2] / "deploy" / "roles" / "vm-owner.yaml"
MACHINES, POOLS, DATA_VOLUMES = (resource_of(info) for info in (registry.MACHINE, registry.POOL, registry.DATA_VOLUME))
DISK = {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Mi"}}}}


def template(memory: str) -> Json:
    return {"spec": {"runStrategy": "Halted", "template": {"spec": {"domain": {"memory": {"guest": memory}}}}}}


class Owner:
    """A person with a kubeconfig, and the pool `web` of two machines that the person may change."""

    def __init__(self, kubeconfig: Path, api: Api, namespace: str) -> None:
        self.kubeconfig, self._api, self._namespace = kubeconfig, api, namespace

    async def __call__(self, *words: str, code: int = 0) -> str:
        pipe = asyncio.subprocess.PIPE
        command = [str(find_program()), "pool", *words, "-n", self._namespace, "--kubeconfig", str(self.kubeconfig)]
        process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
        out, err = await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode == code, f"herder {' '.join(words)}: {process.returncode} {out.decode()}{err.decode()}"
        return (err if code else out).decode()

    async def machine(self, name: str) -> Json:
        return (await self._api.get(MACHINES, name, self._namespace)).ok["metadata"]

    async def pool(self) -> Json:
        return (await self._api.get(POOLS, "web", self._namespace)).ok


@pytest.fixture
async def owner(engine: Engine, api: Api, namespace: str, unique: Callable[..., str], tmp_path: Path) -> Owner:
    await install_crds(api)
    assert (await api.create(CLUSTER_ROLES, yaml.safe_load(ROLE.read_text()))).code in (201, 409)
    name = unique("owner")
    await bind(api, namespace, "vm-owner", user(name), rule("list", "virtualmachines", "kubevirt.io"))
    pair = sign(engine, tmp_path, name)
    person = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
    made = Owner(write_kubeconfig(tmp_path / "config", cluster_of(engine), person), api, namespace)
    spec = {"replicas": 2, "template": template("96Mi"), "scaleInStrategy": {"proactive": {"statePreservation": "Offline"}}}
    (await api.create(POOLS, {"metadata": {"name": "web"}, "spec": spec}, namespace)).ok  # noqa: B018
    await _fill(api, namespace, await made.pool())
    return made


async def _fill(api: Api, namespace: str, pool: Json) -> None:
    """What the controller would have made: two revisions, two machines of the older one, and a volume that is kept."""
    viewed = OUR_POOLS.decode(json.dumps(pool).encode())
    for number, memory in enumerate(("64Mi", "96Mi"), 1):
        document = revision_document(viewed, wanted_revision(viewed, template(memory), {}), number)
        (await api.create(CONTROLLER_REVISIONS, document, namespace)).ok  # noqa: B018
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachinePool", "name": "web", "uid": pool["metadata"]["uid"]}
    for name in ("web-1", "web-2"):
        metadata: Json = {"name": name, "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}]}
        metadata["labels"] = {labels.POOL_REVISION: wanted_revision(viewed, template("64Mi"), {}).name}
        (await api.create(MACHINES, {"metadata": metadata, "spec": template("64Mi")["spec"]}, namespace)).ok  # noqa: B018
    kept = {"name": "disk-3", "labels": {labels.MACHINE_NAME: "web-3"}, "ownerReferences": [owner]}
    (await api.create(DATA_VOLUMES, {"metadata": kept, "spec": DISK}, namespace)).ok  # noqa: B018


@pytest.mark.slow
async def test_an_owner_may_do_all_that_the_commands_for_pools_do(owner: Owner, api: Api, namespace: str) -> None:
    before = (await owner.pool())["metadata"]["uid"]
    for words in (("status", "web"), ("plan", "web"), ("plan", "web", "--replicas", "1"), ("rollout", "history", "web")):
        assert "web-1" in await owner(*words)
    missing = await asyncio.gather(*(owner(word, "web-9", code=8) for word in ("detach", "attach", "remove")))
    assert all("no VirtualMachine 'web-9'" in said and "`herder pool status web`" in said for said in missing), missing
    await owner("detach", "web-1")
    assert not (await owner.machine("web-1")).get("ownerReferences")
    await owner("attach", "web-1")
    assert [one["uid"] for one in (await owner.machine("web-1"))["ownerReferences"]] == [before]
    await owner("protect", "web-2")
    assert (await owner.machine("web-2"))["annotations"] == {labels.SCALE_IN: "never"}
    await owner("protect", "web-2", "--undo")
    assert "has 1 of 2 machines, and would make another instead" in await owner("remove", "web-2", code=8)
    (await api.patch(POOLS, "web", {"spec": {"replicas": 1}}, namespace)).ok  # noqa: B018
    await owner("remove", "web-2")
    marked = await owner.machine("web-2")
    assert marked["annotations"] == {labels.SCALE_IN: "first", labels.REMOVE_REQUEST: marked["uid"]}
    assert (await owner.pool())["spec"]["replicas"] == 0
    await owner("rollout", "replace", "web-2")
    assert (await owner.machine("web-2"))["annotations"][labels.UPDATE_REQUEST].startswith("web-")
    await owner("rollout", "pause", "web")
    assert (await owner.pool())["spec"]["updateStrategy"] == {"proactive": {"paused": True}}
    await owner("rollout", "resume", "web")
    await owner("rollout", "restart", "web")
    inner = (await owner.pool())["spec"]["template"]["spec"]["template"]
    assert labels.RESTARTED_AT in inner["metadata"]["annotations"]
    await owner("rollout", "undo", "web", "--to-revision", "1")
    assert (await owner.pool())["spec"]["template"] == template("64Mi")
    assert "web-3" in await owner("preserved", "web")
    await owner("preserved", "web", "--delete", "web-3")
    reply = await api.get(DATA_VOLUMES, "disk-3", namespace)
    assert reply.code == 404 or "deletionTimestamp" in reply.ok["metadata"]


async def test_a_template_is_not_put_back_over_what_somebody_changed_meanwhile(owner: Owner, api: Api, namespace: str) -> None:
    written = await owner.pool()
    stale = OUR_POOLS.decode(json.dumps(written).encode())
    (await api.patch(POOLS, "web", {"metadata": {"labels": {"a": "b"}}}, namespace)).ok  # noqa: B018
    earlier = wanted_revision(stale, template("64Mi"), {})
    async with connected(owner.kubeconfig) as client:
        with pytest.raises(Conflict):
            await client.patch(OUR_POOLS, Key(namespace, "web"), back_to(stale, written, earlier), content_type=JSON_PATCH)
        with pytest.raises(Conflict):
            metadata = {"uid": stale.uid, "resourceVersion": stale.metadata.resource_version}
            await client.patch(OUR_POOLS, Key(namespace, "web"), {"metadata": metadata, "spec": {"replicas": 0}})
    assert (await owner.pool())["spec"] == written["spec"]
