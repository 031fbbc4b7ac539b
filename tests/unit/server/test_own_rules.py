"""An object that a newer rule refuses, on the embedded engine."""

from pathlib import Path
from typing import Any

import pytest

from herder.api import validation
from herder.api.problems import Problem, invalid
from herder.api.registry import MACHINE
from tests.unit.server.inside import engine_inside

Json = dict[str, Any]
PATH = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines"
MERGE = "application/merge-patch+json"


def _refuses(machine: Json, old: Json | None = None) -> list[Problem]:
    return [invalid("spec", 1, "a newer rule")] if "early" in machine["metadata"].get("labels", {}) else []


@pytest.mark.slow
async def test_it_can_be_labelled_reported_on_and_ended_but_not_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(validation.VALIDATORS, ("kubevirt.io", "VirtualMachine"), _refuses)
    metadata: Json = {"name": "a", "finalizers": ["example.com/hold"]}
    spec: Json = {"running": False, "template": {"spec": {"domain": {}}}}
    body = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": metadata, "spec": spec}
    async with engine_inside(tmp_path, kinds=(MACHINE,)) as inside:

        async def patch(change: Json, subresource: str = "") -> int:
            code, _ = await inside.ask("PATCH", f"{PATH}/a{subresource}", change, content_type=MERGE)
            return code

        assert (await inside.ask("POST", PATH, body))[0] == 201
        assert await patch({"metadata": {"labels": {"early": "yes"}}}) == 200
        assert await patch({"metadata": {"labels": {"x": "y"}}}) == 200
        assert await patch({"status": {"ready": False}}, "/status") == 200
        assert await patch({"spec": {"running": True}}) == 422
        assert (await inside.ask("DELETE", f"{PATH}/a"))[0] == 200
        assert await patch({"spec": {"running": True}}) == 422
        assert await patch({"metadata": {"finalizers": None}}) == 200
        assert (await inside.ask("GET", f"{PATH}/a"))[0] == 404
