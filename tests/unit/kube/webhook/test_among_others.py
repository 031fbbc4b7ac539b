"""Rules about more than one object, where the API server that they ask is away."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from herder.api import registry
from herder.controllers.admission import AmongOthers
from herder.kube.client import Client
from herder.kube.connect import connect
from herder.kube.webhook.reviews import GroupKind, GroupResource, Question
from tests.engines.processes import free_ports


def _kubeconfig(folder: Path) -> Path:
    (port,) = free_ports(1)
    named = {
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    }
    path = folder / "kubeconfig"
    path.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "Config", "current-context": "x", **named}))
    return path


def _question(info: registry.KindInfo, spec: dict[str, Any]) -> Question:
    document = {"apiVersion": info.api_version, "kind": info.kind, "metadata": {"name": "a"}, "spec": spec}
    kind = GroupKind(info.group, info.version, info.kind)
    resource = GroupResource(info.group, info.version, info.plural)
    return Question("u", kind, resource, "CREATE", name="a", namespace="default", object=document)


@pytest.mark.parametrize(
    "question",
    [
        _question(registry.MIGRATION, {"vmiName": "web"}),
        _question(registry.POLICY, {"selectors": {"namespaceSelector": {"a": "b"}}}),
    ],
    ids=lambda question: question.kind.kind,
)
async def test_nothing_is_held_against_an_object_that_nobody_can_look_around_for(tmp_path: Path, question: Question) -> None:
    """The controllers look again; who cannot ask must not refuse what may be right."""
    async with Client(connect(_kubeconfig(tmp_path), None, "test"), "test") as client:
        assert await AmongOthers(client)(question) == []
