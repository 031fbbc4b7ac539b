"""Our rules beyond the schemas: asked by the embedded engine itself, by the webhook on a real cluster, in the same words."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from herder.api import registry
from herder.api.problems import Problem
from herder.api.refusal import details_of, sentence_of
from herder.api.validation import problems_of
from tests.behaviour.our_kinds import install_crds, resource_of
from tests.conftest import EngineMissing
from tests.e2e.kubectl import Kubectl
from tests.engines.api import Api, Reply
from tests.engines.engine import Unavailable
from tests.engines.kubectl import find_kubectl
from tests.engines.resources import NAMESPACES
from tests.engines.waiting import eventually

Json = dict[str, Any]
Unique = Callable[..., str]

MACHINES = resource_of(registry.MACHINE)
INSTANCES = resource_of(registry.INSTANCE)
MIGRATIONS = resource_of(registry.MIGRATION)
POOLS = resource_of(registry.POOL)
SETTINGS = resource_of(registry.SETTINGS)
POLICIES = resource_of(registry.POLICY)
JOBS = resource_of(registry.JOB)
RESERVATIONS = resource_of(registry.RESERVATION)
DATA_VOLUMES = resource_of(registry.DATA_VOLUME)

POD: Json = {"namespace": "default", "name": "web-0"}
# What a real server puts before the sentence of a webhook. kubectl prints the causes, which have no such thing.
DENIED = re.compile(r'^admission webhook "validate\.herder\.dev" denied the request: ')


def _instance(**domain: Any) -> Json:
    return {"domain": domain}


def _machine(**domain: Any) -> Json:
    return {"running": False, "template": {"spec": _instance(**domain)}}


TOO_MUCH: Json = {"memory": {"guest": "2Gi"}, "resources": {"limits": {"memory": "1Gi"}}}
LABELS: Json = {"metadata": {"labels": {"a b": "c"}}, "spec": _machine()}
# kind, spec, and the field that is at fault
BROKEN = [
    (MACHINES, _machine(**TOO_MUCH), "spec.template.spec.domain.memory.guest"),
    (INSTANCES, _instance(**TOO_MUCH), "spec.domain.memory.guest"),
    (MIGRATIONS, {"vmiName": "a", "addedNodeSelectorTerm": [{}, {}]}, "spec.addedNodeSelectorTerm"),
    (POOLS, {"replicas": 1, "template": LABELS}, "spec.template.metadata.labels"),
    (POOLS, {"replicas": 1, "maxUnavailable": "200%", "template": {"spec": _machine()}}, "spec.maxUnavailable"),
    (SETTINGS, {"configuration": {"migrations": {"nodeDrainTaintKey": "a b"}}}, "spec.configuration.migrations.nodeDrainTaintKey"),
    (POLICIES, {"selectors": {"namespaceSelector": {"a": 1.5}}}, "spec.selectors.namespaceSelector[a]"),
    (JOBS, {"podRef": {"namespace": "A", "name": "b"}}, "spec.podRef.namespace"),
    (RESERVATIONS, {"template": {}, "owners": [{"labelSelector": {"matchLabels": {"a b": "c"}}}]}, "spec.owners[0].labelSelector"),
    (DATA_VOLUMES, {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "0"}}}}, "spec.storage"),
    *((MACHINES, _machine(memory={"guest": size}), "spec.template.spec.domain.memory.guest") for size in ("1", "64m", "9999999Ei")),
    (MACHINES, _machine(resources={"requests": {"example.com/gpu": "1"}}), "spec.template.spec.domain.resources.limits"),
    (INSTANCES, {"domain": {}, "tolerations": [{"key": "a b", "operator": "Exists"}]}, "spec.tolerations[0].key"),
    (INSTANCES, {"domain": {}, "readinessProbe": {"tcpSocket": {"port": "https"}}}, "spec.readinessProbe.tcpSocket.port"),
    (POLICIES, {"selectors": {"namespaceSelector": {"a": "b"}}, "maxDowntimeMs": 0}, "spec.maxDowntimeMs"),
    (POLICIES, {"selectors": {"namespaceSelector": {"a": "b"}}, "bandwidthPerMigration": "1e400"}, "spec.bandwidthPerMigration"),
]


@pytest.fixture(scope="module", autouse=True)
async def crds(api: Api) -> None:
    await install_crds(api)


def _says(reply: Reply, document: Json, problems: list[Problem]) -> None:
    """The refusal, word for word."""
    kind, group = document["kind"], document["apiVersion"].partition("/")[0]
    name = document["metadata"]["name"]
    assert reply.refused(422, "Invalid") == details_of(group, kind, name, problems)
    assert DENIED.sub("", reply.message) == sentence_of(group, kind, name, problems)


def _document(resource: Any, name: str, spec: Json) -> Json:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}, "spec": spec}


def _in(namespace: str, document: Json) -> Json:
    return {**document, "metadata": {**document["metadata"], "namespace": namespace}}


@pytest.mark.parametrize(("resource", "spec", "field"), BROKEN, ids=[f"{one[0].kind}-{one[2]}" for one in BROKEN])
async def test_an_object_that_breaks_a_rule_is_refused_by_the_same_words(
    api: Api, namespace: str, unique: Unique, resource: Any, spec: Json, field: str
) -> None:
    document = _document(resource, unique(), spec)
    problems = problems_of(_in(namespace, document) if resource.namespaced else document)
    assert any(problem.field.startswith(field) for problem in problems), problems
    place = namespace if resource.namespaced else ""
    _says(await api.create(resource, document, place, fieldValidation="Strict"), document, problems)
    applied = await api.patch(resource, document["metadata"]["name"], document, place, kind="apply", fieldManager="kubectl")
    _says(applied, document, problems)
    assert (await api.get(resource, document["metadata"]["name"], place)).code == 404


async def test_kubectl_prints_the_same_on_every_engine(api: Api, namespace: str, tmp_path: Path) -> None:
    try:
        kubectl = Kubectl(find_kubectl(), api.engine.kubeconfig, tmp_path, namespace)
    except Unavailable as reason:
        raise EngineMissing(str(reason)) from None
    said = kubectl.refused("create", "-f", "-", stdin=_document(MACHINES, "a", _machine(**TOO_MUCH)))
    why = 'Invalid value: "2Gi": must be at most the memory limit, 1Gi'
    assert said == f'The VirtualMachine "a" is invalid: spec.template.spec.domain.memory.guest: {why}'


async def test_several_broken_rules_are_told_at_once(api: Api, namespace: str) -> None:
    disk: Json = {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}}
    spec = _machine(**TOO_MUCH) | {"dataVolumeTemplates": [{"metadata": {"name": "unused"}, "spec": disk}]}
    document = _document(MACHINES, "a", spec)
    problems = problems_of(document)
    assert len(problems) == 2
    _says(await api.create(MACHINES, document, namespace), document, problems)


async def test_a_change_is_judged_like_a_new_object(api: Api, namespace: str) -> None:
    document = _document(MACHINES, "a", _machine())
    (await api.create(MACHINES, document, namespace)).ok  # noqa: B018
    changed = _document(MACHINES, "a", _machine(**TOO_MUCH))
    reply = await api.patch(MACHINES, "a", {"spec": changed["spec"]}, namespace)
    _says(reply, changed, problems_of(changed))
    assert (await api.get(MACHINES, "a", namespace)).ok["spec"] == document["spec"]


async def test_a_name_that_is_too_long_is_refused_only_for_a_new_pool(api: Api, namespace: str) -> None:
    document = _document(POOLS, "a" * 57, {"replicas": 1, "template": {"spec": _machine()}})
    _says(await api.create(POOLS, document, namespace), document, problems_of(document))


async def test_a_dry_run_is_judged_too(api: Api, namespace: str) -> None:
    document = _document(INSTANCES, "a", _instance(**TOO_MUCH))
    _says(await api.create(INSTANCES, document, namespace, dryRun="All"), document, problems_of(document))
    assert (await api.create(INSTANCES, _document(INSTANCES, "a", _instance()), namespace, dryRun="All")).ok["spec"]["networks"]
    assert (await api.get(INSTANCES, "a", namespace)).code == 404


async def test_what_is_probably_not_meant_is_warned_of(api: Api, namespace: str) -> None:
    spec: Json = {"replicas": 1, "template": {"spec": _machine()}}
    plain = await api.create(POOLS, _document(POOLS, "a", spec), namespace)
    assert (plain.code, plain.warnings) == (201, [])
    policy = {"selectionPolicy": {"orderedPolicies": [{"labelSelector": {}}]}}
    warned = await api.create(POOLS, _document(POOLS, "b", {**spec, "updateStrategy": {"proactive": policy}}), namespace)
    said = "spec.updateStrategy.proactive.selectionPolicy.orderedPolicies[0].labelSelector: is empty and fits every machine"
    assert warned.code == 201
    assert [said in one for one in warned.warnings] == [True]
    assert (await api.patch(POOLS, "b", {"status": {"replicas": 1}}, namespace, "status")).warnings == []


async def test_pools_that_name_their_volumes_alike_are_warned_of(api: Api, namespace: str) -> None:
    """When the name is new, and not with every later change; and a pool is not in its own way."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}

    def pool(name: str, *volumes: str) -> Json:
        made = [{"metadata": {"name": one}, "spec": {"source": {"blank": {}}, "pvc": claim}} for one in volumes]
        used = [{"name": f"v{one}", "dataVolume": {"name": one}} for one in volumes]
        disks = [{"name": f"v{one}", "disk": {}} for one in volumes]
        instance = {"domain": {"devices": {"disks": disks}}, "volumes": used}
        machine = {"running": False, "template": {"spec": instance}, "dataVolumeTemplates": made}
        return _document(POOLS, name, {"replicas": 0, "template": {"spec": machine}})

    def said(index: int, volume: str) -> list[str]:
        place = f"spec.template.spec.dataVolumeTemplates[{index}].metadata.name"
        why = f"VirtualMachinePool a has a dataVolumeTemplate {volume}, too, and {volume}-1 can belong to one machine only"
        return [f'299 - "{place}: {why}: give it another name"']

    async def warned() -> bool:
        """The webhook's cache may be a moment behind."""
        return (await api.create(POOLS, pool("b", "mine", "disk"), namespace, dryRun="All")).warnings == said(1, "disk")

    assert (await api.create(POOLS, pool("a", "disk", "data"), namespace)).warnings == []
    await eventually(warned)
    (await api.create(POOLS, pool("b", "disk"), namespace)).ok  # noqa: B018
    assert (await api.patch(POOLS, "b", {"spec": {"paused": True}}, namespace)).warnings == []
    changed = await api.patch(POOLS, "b", {"spec": pool("b", "disk", "data")["spec"]}, namespace)
    assert changed.warnings == said(1, "data")
    (await api.delete(POOLS, "a", namespace)).ok  # noqa: B018

    async def alone() -> bool:
        return (await api.create(POOLS, pool("c", "data"), namespace, dryRun="All")).warnings != said(0, "data")

    await eventually(alone)


@pytest.mark.parametrize(("name", "elsewhere"), [("kubevirt", True), ("a", True), ("a", False)])
async def test_settings_of_the_cluster_that_nobody_would_read_are_refused(
    api: Api, namespace: str, name: str, elsewhere: bool
) -> None:
    await api.create(NAMESPACES, {"metadata": {"name": "kubevirt"}})
    place = namespace if elsewhere else "kubevirt"
    document = _document(SETTINGS, name, {})
    reply = await api.create(SETTINGS, document, place)
    _says(reply, document, problems_of(_in(place, document)))
    said = "the settings of the cluster are the KubeVirt object kubevirt in namespace kubevirt, and no other is used"
    field, value = ("namespace", place) if elsewhere else ("name", name)
    assert f'metadata.{field}: Invalid value: "{value}": {said}' in reply.message
    right = await api.create(SETTINGS, _document(SETTINGS, "kubevirt", {}), "kubevirt", dryRun="All")
    assert right.code == 409 if api.engine.name == "embedded" else right.code in (201, 409), (
        "there from the start, or could be made"
    )


async def test_an_instance_is_made_complete(api: Api, namespace: str) -> None:
    volumes: list[Json] = [{"name": "root", "emptyDisk": {"capacity": "1Gi"}}]
    made = (await api.create(INSTANCES, _document(INSTANCES, "a", {"domain": {}, "volumes": volumes}), namespace)).ok["spec"]
    assert made == {
        "terminationGracePeriodSeconds": 30,
        "domain": {
            "cpu": {"sockets": 1, "cores": 1, "threads": 1, "model": "host-model"},
            "memory": {"guest": "512Mi"},
            "devices": {
                "disks": [{"name": "root", "disk": {"bus": "virtio"}}],
                "interfaces": [{"name": "default", "masquerade": {}, "model": "virtio"}],
            },
        },
        "networks": [{"name": "default", "pod": {}}],
        "volumes": volumes,
    }
    again = (await api.patch(INSTANCES, "a", {"metadata": {"labels": {"x": "y"}}}, namespace)).ok
    assert (again["spec"], again["metadata"]["generation"]) == (made, 1)


async def test_what_is_taken_out_of_an_instance_comes_back_as_the_default(api: Api, namespace: str) -> None:
    (await api.create(INSTANCES, _document(INSTANCES, "a", _instance(cpu={"cores": 4})), namespace)).ok  # noqa: B018
    cleared = await api.patch(INSTANCES, "a", {"spec": {"domain": {"cpu": None}}}, namespace)
    assert cleared.ok["spec"]["domain"]["cpu"]["cores"] == 1


@pytest.mark.parametrize(("domain", "field"), [(7, "spec.domain"), ({"cpu": "two"}, "spec.domain.cpu")])
async def test_a_value_of_the_wrong_type_is_refused_and_not_defaulted_away(
    api: Api, namespace: str, domain: Any, field: str
) -> None:
    reply = await api.create(INSTANCES, _document(INSTANCES, "a", {"domain": domain}), namespace)
    causes = reply.refused(422, "Invalid")["causes"]
    assert causes[0]["field"] == field


async def test_an_instance_whose_machine_is_not_said_is_told_so_and_nothing_else(api: Api, namespace: str) -> None:
    """And not of the networks that nobody had time to look at."""
    networks = [{"name": "a", "pod": {}}]
    for spec in ({"domain": None, "networks": networks}, {"networks": networks}):
        reply = await api.create(INSTANCES, _document(INSTANCES, "a", spec), namespace)
        assert {cause["field"] for cause in reply.refused(422, "Invalid")["causes"]} - {"<nil>"} == {"spec.domain"}


async def test_a_number_that_is_too_large_is_named(api: Api, namespace: str) -> None:
    reply = await api.create(
        INSTANCES, _document(INSTANCES, "a", {"domain": {}, "terminationGracePeriodSeconds": 2**63}), namespace
    )
    named = [one for one in reply.refused(422, "Invalid")["causes"] if one["field"] == "spec.terminationGracePeriodSeconds"]
    assert any("Invalid value: 9" in one["message"] for one in named), named


async def test_an_object_that_ends_is_let_go_although_a_rule_came_after_it(api: Api, namespace: str) -> None:
    """Finalizers are taken off by updates."""
    body = {"metadata": {"name": "a", "finalizers": ["example.com/hold"]}, "spec": _machine()}
    (await api.create(MACHINES, body, namespace)).ok  # noqa: B018
    await api.delete(MACHINES, "a", namespace)
    refused = await api.patch(MACHINES, "a", {"spec": _machine(**TOO_MUCH)}, namespace)
    refused.refused(422, "Invalid")
    (await api.patch(MACHINES, "a", {"metadata": {"finalizers": None}}, namespace)).ok  # noqa: B018
    assert (await api.get(MACHINES, "a", namespace)).code == 404
