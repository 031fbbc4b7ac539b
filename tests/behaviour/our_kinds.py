"""Our own kinds for tests through the API: installed once, and addressed as any other resource."""

from pathlib import Path

import yaml

from herder.api.registry import KINDS, KindInfo
from tests.engines.api import Api
from tests.engines.resources import CRDS, Resource
from tests.engines.waiting import eventually

FOLDER = Path(__file__).parents[2] / "deploy" / "crds"


def resource_of(info: KindInfo) -> Resource:
    return Resource(info.group, info.version, info.plural, info.kind, namespaced=info.namespaced)


async def install_crds(api: Api) -> None:
    """Creates what is not there yet, and waits until all of it is served."""
    for path in sorted(FOLDER.glob("*.yaml")):
        reply = await api.create(CRDS, yaml.safe_load(path.read_text(encoding="utf-8")), fieldValidation="Strict")
        assert reply.code in (201, 409), reply.raw.decode()
        assert not reply.warnings

    async def served() -> bool:
        return all([(await api.list(resource_of(info), limit=1)).code == 200 for info in KINDS])

    await eventually(served)
