"""The kinds of our own, as an API server takes them: their CRDs and every example manifest."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from herder.api.registry import KINDS, SETTINGS, KindInfo, info_of
from herder.api.schemas import schema_of_kind
from tests.behaviour.our_kinds import install_crds, make_owned_pod, resource_of
from tests.engines.api import Api
from tests.engines.resources import AUTOSCALERS, CRDS, NAMESPACES, NODES, STATEFUL_SETS, Resource
from tests.samples import sample

Json = dict[str, Any]
Unique = Callable[..., str]
FOLDER = Path(__file__).parents[2] / "examples"
INSTANCE = next(info for info in KINDS if info.kind == "VirtualMachineInstance")
BUILT_IN = (AUTOSCALERS, NODES, STATEFUL_SETS)
LEAST_INSTANCE: Json = {"spec": {"domain": {}}}


def _examples() -> list[Any]:
    documents = ((path, document) for path in sorted(FOLDER.glob("*.yaml")) for document in yaml.safe_load_all(path.read_text()))
    return [pytest.param(document, id=f"{path.stem}:{document['metadata']['name']}") for path, document in documents]


@pytest.fixture(scope="module", autouse=True)
async def crds(api: Api) -> None:
    await install_crds(api)


def _resource(document: Json) -> Resource:
    info = info_of(document)
    return resource_of(info) if info else next(one for one in BUILT_IN if one.kind == document["kind"])


def _missing(sent: Any, stored: Any, path: str = "") -> list[str]:
    """Where something that was sent is not what was stored."""
    if isinstance(sent, dict) and isinstance(stored, dict):
        return [place for key in sent for place in _missing(sent[key], stored.get(key), f"{path}.{key}")]
    if isinstance(sent, list) and isinstance(stored, list) and len(sent) == len(stored):
        pairs = zip(sent, stored, strict=True)
        return [place for index, (one, other) in enumerate(pairs) for place in _missing(one, other, f"{path}[{index}]")]
    return [] if sent == stored else [path]


async def _made_ready(api: Api, document: Json, namespace: str, unique: Unique) -> tuple[Json, str]:
    """The example under a name of its own where it lives outside namespaces, with what it refers to in place."""
    document = {**document, "metadata": dict(document["metadata"])}
    spec = document.get("spec", {})
    if "vmiName" in spec:
        await api.create(resource_of(INSTANCE), {"metadata": {"name": spec["vmiName"]}, **LEAST_INSTANCE}, namespace)
    if "podRef" in spec:
        document["spec"] = {**spec, "podRef": {**spec["podRef"], "namespace": namespace}}
        await make_owned_pod(api, spec["podRef"]["name"], namespace)
    if "selectors" in spec:
        # No two policies may have the same, and other tests use these examples, too.
        labels = {**spec["selectors"].get("namespaceSelector", {}), unique("only"): "here"}
        document["spec"] = {**spec, "selectors": {**spec["selectors"], "namespaceSelector": labels}}
    if _is_settings(document):
        await api.create(NAMESPACES, {"metadata": {"name": "kubevirt"}})
        return document, "kubevirt"
    if _resource(document).namespaced:
        return document, namespace
    document["metadata"]["name"] = unique(document["metadata"]["name"])
    return document, ""


def _is_settings(document: Json) -> bool:
    """There is one for the whole cluster, on the embedded engine from the start: it is changed, and neither made nor deleted."""
    return info_of(document) is SETTINGS


@pytest.mark.parametrize("document", [one for one in _examples() if not _is_settings(one.values[0])])
async def test_an_example_is_created_and_kept_whole(api: Api, namespace: str, unique: Unique, document: Json) -> None:
    document, place = await _made_ready(api, document, namespace, unique)
    resource = _resource(document)
    reply = await api.create(resource, document, place, fieldValidation="Strict")
    assert _missing(document, reply.ok) == []
    await api.delete(resource, document["metadata"]["name"], place)


def _applied(stored: Json) -> list[Json]:
    """What an apply has written, and when. On a real cluster controllers write beside it: the resourceVersion says little."""
    return [entry for entry in stored["metadata"]["managedFields"] if entry["manager"] == "kubectl"]


@pytest.mark.parametrize("document", _examples())
async def test_an_example_is_applied_by_the_server_and_kept_whole(api: Api, namespace: str, unique: Unique, document: Json) -> None:
    document, place = await _made_ready(api, document, namespace, unique)
    resource = _resource(document)
    name = document["metadata"]["name"]
    params = {"fieldManager": "kubectl", "fieldValidation": "Strict"}
    if _is_settings(document):
        # Others would be told of settings that somebody chose.
        tried = await api.patch(resource, name, document, place, kind="apply", **params, dryRun="All")
        assert _missing(document, tried.ok) == []
        return
    first = await api.patch(resource, name, document, place, kind="apply", **params)
    assert _missing(document, first.ok) == []
    again = await api.patch(resource, name, document, place, kind="apply", **params)
    assert _applied(again.ok) == _applied(first.ok)
    await api.delete(resource, name, place)


@pytest.mark.parametrize("info", KINDS, ids=lambda info: info.kind)
async def test_a_crd_is_established_and_structural(api: Api, info: KindInfo) -> None:
    crd = (await api.get(CRDS, info.crd_name)).ok
    conditions = {one["type"]: one["status"] for one in crd["status"]["conditions"]}
    assert conditions["Established"] == "True"
    assert conditions["NamesAccepted"] == "True"
    assert conditions.get("NonStructuralSchema", "False") == "False"
    assert crd["status"]["acceptedNames"].get("shortNames", []) == list(info.short_names)


@pytest.mark.parametrize("info", KINDS, ids=lambda info: info.kind)
async def test_kubectl_gets_the_columns_of_the_kind(api: Api, namespace: str, info: KindInfo) -> None:
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    place = namespace if info.namespaced else ""
    table = (await api.list(resource_of(info), place, accept=accept)).ok
    shown = [(column["name"], column["priority"]) for column in table["columnDefinitions"]]
    assert shown == [("Name", 0), *((column.name, column.priority) for column in info.columns)]


@pytest.mark.parametrize("info", KINDS, ids=lambda info: info.kind)
async def test_a_status_with_every_field_is_kept_whole(api: Api, namespace: str, unique: Unique, info: KindInfo) -> None:
    document = next(one.values[0] for one in _examples() if one.values[0]["kind"] == info.kind)
    document, place = await _made_ready(api, document, namespace, unique)
    name, resource = document["metadata"]["name"], resource_of(info)
    made = await api.create(resource, {**document, "spec": {}} if _is_settings(document) else document, place)
    assert made.code == 201 or _is_settings(document), made.raw
    status = sample(schema_of_kind(info.view)["properties"]["status"])
    if _is_settings(document):
        # Two spellings of one setting: only one may be there.
        del status["configuration"]["migrations"]["preferredHostModelMigratabilityLevel"]
    reply = await api.patch(resource, name, {"status": status}, place, "status", fieldValidation="Strict")
    assert _missing(status, reply.ok["status"]) == []
    if not _is_settings(document):
        await api.delete(resource, name, place)
