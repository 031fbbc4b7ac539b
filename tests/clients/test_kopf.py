"""kopf, the framework for operators in Python, runs one against the engine as it would against any cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.engines.api import Api, Json
from tests.engines.resources import CRDS, EVENTS, NEW_EVENTS, Resource
from tests.engines.waiting import eventually

OPERATOR = Path(__file__).with_name("shepherd.py")
HOLD = "shepherd.example.com/hold"
Run = Callable[[], Any]


@pytest.fixture
async def sheep(api: Api, definition: Json) -> Resource:
    await api.create(CRDS, definition)

    async def established() -> bool:
        conditions = (await api.get(CRDS, definition["metadata"]["name"])).ok["status"].get("conditions") or []
        return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)

    await eventually(established)
    return Resource(definition["spec"]["group"], "v1", "sheep", "Sheep")


@pytest.fixture
def operator(kubeconfig: Path, namespace: str, sheep: Resource, tmp_path: Path) -> Run:
    """Runs it once; `with` decides for how long."""
    command = [sys.executable, "-m", "kopf", "run", "--standalone", f"--namespace={namespace}", "--verbose", str(OPERATOR)]
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "SHEEP_GROUP": sheep.group}

    @contextmanager
    def run() -> Generator[None]:
        log = tmp_path / "operator.log"
        with log.open("ab") as written:
            process = subprocess.Popen(command, env=environment, stdout=written, stderr=subprocess.STDOUT)
        try:
            yield
        except BaseException:
            sys.stderr.write(log.read_text()[-8000:])
            raise
        finally:
            process.terminate()
            process.wait(20)

    return run


async def test_an_operator_follows_an_object_through_its_life(api: Api, namespace: str, sheep: Resource, operator: Run) -> None:
    async def status() -> Json:
        return (await api.get(sheep, "dolly", namespace)).ok.get("status", {})

    async def told(reason: str) -> bool:
        events = (await api.list(EVENTS, namespace, fieldSelector=f"involvedObject.name=dolly,reason={reason}")).items
        return bool(events)

    with operator():
        await api.create(sheep, {"metadata": {"name": "dolly"}, "spec": {"wool": 1}}, namespace)

        async def born() -> bool:
            seen = await status()
            return seen.get("wool") == 1 and seen.get("born") == {"name": "dolly"}

        await eventually(born)
        assert (await api.get(sheep, "dolly", namespace)).ok["metadata"]["finalizers"] == [HOLD]
        await eventually(lambda: told("Born"))
        await api.patch(sheep, "dolly", {"spec": {"wool": 2}}, namespace)

        async def grown() -> bool:
            return (await status()).get("grown") == "1 to 2"

        await eventually(grown)

    # While it is away things happen; when it is back it takes up where it was.
    await api.patch(sheep, "dolly", {"spec": {"wool": 5}}, namespace)
    with operator():

        async def caught_up() -> bool:
            seen = await status()
            return seen.get("grown") == "2 to 5" and seen.get("resumed") is True

        await eventually(caught_up)
        assert (await api.delete(sheep, "dolly", namespace)).code == 200

        async def gone() -> bool:
            return (await api.get(sheep, "dolly", namespace)).code == 404

        await eventually(gone)
        await eventually(lambda: told("Shorn"))
    (shorn,) = (await api.list(NEW_EVENTS, namespace, fieldSelector="reason=Shorn")).items
    assert (shorn["note"], shorn["type"]) == (f"{namespace}/dolly is shorn.", "Warning")
