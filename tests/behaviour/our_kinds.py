"""Our own kinds for tests through the API: installed once, and addressed as any other resource."""

import functools
from pathlib import Path
from typing import Any
from weakref import WeakSet

import yaml

from herder.api.registry import KINDS, SETTINGS, KindInfo
from tests.behaviour.manifests import pod
from tests.engines.api import Api, Json
from tests.engines.resources import CONFIG_MAPS, CRDS, PODS, Resource
from tests.engines.waiting import eventually

# A taint's key that is none: the schema lets it pass.
_WRONG = {"metadata": {"name": "judged"}, "spec": {"configuration": {"migrations": {"nodeDrainTaintKey": "a b"}}}}
FOLDER = Path(__file__).parents[2] / "deploy" / "crds"


# Whose definitions were made before: to read them takes a second, and many tests ask.
_installed: WeakSet[Api] = WeakSet()


@functools.cache
def _definitions() -> list[Any]:
    return [yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.yaml"))]


def resource_of(info: KindInfo) -> Resource:
    return Resource(info.group, info.version, info.plural, info.kind, namespaced=info.namespaced)


async def install_crds(api: Api) -> None:
    """Creates what is not there yet, and waits until all of it is served, and judged by our rules."""
    await install_definitions(api)
    await eventually(lambda: _judged(api))


async def make_owned_pod(api: Api, name: str, namespace: str) -> Json:
    """A pod of a controller that never looks after it: such a one can be the pod of a PodMigrationJob."""
    owner = (await api.create(CONFIG_MAPS, {"metadata": {"name": f"owner-of-{name}"}}, namespace)).ok["metadata"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner["name"], "uid": owner["uid"], "controller": True}
    return (await api.create(PODS, pod(name, {"ownerReferences": [reference]}), namespace)).ok


async def install_definitions(api: Api) -> None:
    if api not in _installed:
        for definition in _definitions():
            reply = await api.create(CRDS, definition, fieldValidation="Strict")
            assert reply.code in (201, 409), reply.raw.decode()
            assert not reply.warnings
        _installed.add(api)

    async def served() -> bool:
        return all([(await api.list(resource_of(info), limit=1)).code == 200 for info in KINDS])

    await eventually(served)


async def _judged(api: Api) -> bool:
    """Whether the rules beyond the schemas are asked: a real server notices a moment after they were registered."""
    reply = await api.create(resource_of(SETTINGS), _WRONG, "default", dryRun="All")
    return reply.code == 422
