"""DataVolumes as a person makes them, and looks at them."""

from typing import Any

from herder.api import labels
from tests.engines.resources import CLAIMS, PODS, VOLUMES
from tests.machines.herd import DATA_VOLUMES, Herd, Json

SIZED: Json = {"resources": {"requests": {"storage": "64Mi"}}}
BLANK: Json = {"source": {"blank": {}}, "storage": SIZED}


def fetched(url: str = "http://images.example.com/disk.img", size: str = "64Mi", **more: Any) -> Json:
    return {"source": {"http": {"url": url, **more}}, "storage": {"resources": {"requests": {"storage": size}}}}


def copied(name: str, namespace: str = "", **storage: Any) -> Json:
    place = {"namespace": namespace} if namespace else {}
    return {"source": {"pvc": {"name": name, **place}}, "storage": storage}


def told(simulated: dict[str, str]) -> Json:
    """Annotations, by their names with underscores: import_fails."""
    return {labels.SIMULATED + key.replace("_", "-"): value for key, value in simulated.items()}


async def make(herd: Herd, spec: Json, name: str = "disk", **simulated: str) -> Json:
    body = {"metadata": {"name": name, "annotations": told(simulated)}, "spec": spec}
    return (await herd.api.create(DATA_VOLUMES, body, herd.namespace)).ok


async def becomes(herd: Herd, phase: str, name: str = "disk", **status: Any) -> Json:
    async def look() -> Json:
        found = (await herd.api.get(DATA_VOLUMES, name, herd.namespace)).ok
        shown = found.get("status", {})
        seen = {field: shown.get(field) for field in status}
        assert (shown.get("phase"), seen) == (phase, status), shown
        return found

    return await herd.eventually(look)


async def volume_of(herd: Herd, name: str = "disk") -> Json:
    claim = (await herd.api.get(CLAIMS, name, herd.namespace)).ok
    return (await herd.api.get(VOLUMES, claim["spec"]["volumeName"])).ok


async def volume_is_gone(herd: Herd, name: str) -> None:
    async def look() -> bool:
        reply = await herd.api.get(VOLUMES, name)
        assert reply.code == 404, reply.body
        return True

    await herd.eventually(look)


async def no_importers(herd: Herd) -> None:
    async def look() -> bool:
        listed = (await herd.api.list(PODS, herd.namespace, labelSelector=labels.IMPORTER)).names
        assert listed == []
        return True

    await herd.eventually(look)
