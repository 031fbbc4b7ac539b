"""Bodies in protobuf, which kubectl and Go clients send for built-in kinds, say the same as JSON."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.behaviour.manifests import config_map, container, pod, workload
from tests.behaviour.test_every_kind import BODIES
from tests.engines.api import Api, Json, Reply
from tests.engines.protobuf import MEDIA_TYPE, chunk, encode, envelope, number
from tests.engines.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    EVENTS,
    LEASES,
    NAMESPACES,
    PODS,
    Resource,
)

FULL_POD = pod(
    "x",
    {"labels": {"a": "b"}, "annotations": {"c": ""}},
    terminationGracePeriodSeconds=0,
    securityContext={"supplementalGroups": [1, 2], "runAsNonRoot": True},
    tolerations=[{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}],
    volumes=[{"name": "v", "configMap": {"name": "c", "optional": True}}, {"name": "e", "emptyDir": {"sizeLimit": "1Gi"}}],
    containers=[
        container(
            resources={"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "1"}},
            env=[{"name": "E", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}],
            ports=[{"containerPort": 80, "name": "http"}],
            livenessProbe={"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 5},
            readinessProbe={"tcpSocket": {"port": 80}},
            volumeMounts=[{"name": "v", "mountPath": "/v", "readOnly": True}],
        )
    ],
)
EXAMPLES: list[tuple[Resource, Json]] = [
    *BODIES.items(),
    (PODS, FULL_POD),
    (NAMESPACES, {"metadata": {"labels": {"a": "b"}}}),
    (DEPLOYMENTS, workload("x", 0, strategy={"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}})),
    (LEASES, {"spec": {"holderIdentity": "me", "renewTime": "2024-02-29T12:34:56.000123Z", "leaseTransitions": 0}}),
    (CONFIG_MAPS, {"data": {"": ""}}),
]


async def send(api: Api, method: str, path: str, raw: bytes, **params: Any) -> Reply:
    return await api.request(method, path, raw, content_type=MEDIA_TYPE, **params)


def typed(resource: Resource, body: Json, name: str) -> Json:
    metadata = {**body.get("metadata", {}), "name": name}
    return {"apiVersion": resource.api_version, "kind": resource.kind, **body, "metadata": metadata}


def told(reply: Reply) -> tuple[int, Any]:
    """All of an answer but what differs between any two objects. A Job writes its identity into its selector and labels, too."""
    uid = reply.body.get("metadata", {}).get("uid")
    body = msgspec.json.decode(reply.raw.replace(uid.encode(), b"uid")) if uid else reply.body
    if reply.code >= 400:
        return reply.code, (body["reason"], [(cause["reason"], cause["field"]) for cause in body["details"]["causes"]])
    metadata = body["metadata"]
    if body["kind"] == "Node":
        del body["status"]  # JSON may leave out what Go always sends: one engine fills it in, the other does not
    for field in ("uid", "resourceVersion", "creationTimestamp"):
        metadata.pop(field, None)
    for entry in metadata.get("managedFields", ()):
        del entry["time"]
    return reply.code, body


@pytest.mark.parametrize(("resource", "body"), EXAMPLES, ids=lambda value: value.kind if isinstance(value, Resource) else "")
async def test_an_object_is_stored_as_if_it_had_come_as_json(
    api: Api, namespace: str, unique: Callable[..., str], resource: Resource, body: Json
) -> None:
    where = namespace if resource.namespaced else ""
    if resource is EVENTS:
        body = {**body, "involvedObject": {**body["involvedObject"], "namespace": namespace}}
    document = typed(resource, body, unique())
    path = resource.path(where)
    expected = told(await api.request("POST", path, document, dryRun="All"))
    assert told(await send(api, "POST", path, encode(document), dryRun="All")) == expected
    created = await send(api, "POST", path, encode(document))
    assert created.code == expected[0]
    if created.code == 201:
        stored = await api.get(resource, document["metadata"]["name"], where)
        assert stored.ok["metadata"]["uid"] == created.ok["metadata"]["uid"]
        assert (await api.delete(resource, document["metadata"]["name"], where)).code == 200


async def test_an_update_may_come_as_protobuf(api: Api, namespace: str) -> None:
    made = (await api.create(CONFIG_MAPS, config_map("a", {"k": "v"}), namespace)).ok
    made["data"] = {"k": "w"}
    changed = await send(api, "PUT", CONFIG_MAPS.path(namespace, "a"), encode(made))
    assert changed.ok["data"] == {"k": "w"}
    (await send(api, "PUT", CONFIG_MAPS.path(namespace, "a"), encode(made))).refused(409, "Conflict")


async def test_a_scale_may_come_as_protobuf(api: Api, namespace: str) -> None:
    await api.create(DEPLOYMENTS, workload("a"), namespace)
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a", "namespace": namespace}}
    path = DEPLOYMENTS.path(namespace, "a", "scale")
    assert (await send(api, "PUT", path, encode({**scale, "spec": {"replicas": 2}}))).ok["spec"] == {"replicas": 2}
    assert (await send(api, "PUT", path, encode(scale))).ok["spec"] == {}


@pytest.mark.parametrize("version", ["v1", "policy/v1", "apps/v1"])
async def test_options_of_a_deletion_may_come_as_protobuf(api: Api, namespace: str, version: str) -> None:
    made = (await api.create(CONFIG_MAPS, config_map("a"), namespace)).ok
    path = CONFIG_MAPS.path(namespace, "a")

    async def delete(uid: str, **options: Any) -> Reply:
        document = {"apiVersion": version, "kind": "DeleteOptions", "preconditions": {"uid": uid}, **options}
        return await send(api, "DELETE", path, encode(document))

    (await delete("another")).refused(409, "Conflict")
    assert (await delete(made["metadata"]["uid"], dryRun=["All"])).code == 200
    assert (await api.get(CONFIG_MAPS, "a", namespace)).code == 200
    assert (await delete(made["metadata"]["uid"], gracePeriodSeconds=0)).code == 200
    assert (await api.get(CONFIG_MAPS, "a", namespace)).code == 404


async def test_many_are_deleted_with_options_in_protobuf(api: Api, namespace: str) -> None:
    await api.create(CONFIG_MAPS, config_map("mine", labels={"x": "y"}), namespace)
    options = encode({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"})
    assert (await send(api, "DELETE", CONFIG_MAPS.path(namespace), options, labelSelector="x=y")).code == 200
    assert "mine" not in (await api.list(CONFIG_MAPS, namespace)).names


async def test_fields_that_nobody_knows_are_passed_over(api: Api, namespace: str) -> None:
    raw = (
        chunk(1, chunk(1, b"a")) + number(900, 7) + chunk(901, b"later") + chunk(2, chunk(1, b"k") + chunk(2, b"v") + number(9, 1))
    )
    reply = await send(api, "POST", CONFIG_MAPS.path(namespace), envelope("v1", "ConfigMap", raw), fieldValidation="Strict")
    assert (reply.ok["data"], reply.warnings) == ({"k": "v"}, [])


async def test_a_body_without_a_kind_is_of_the_kind_that_the_path_names(api: Api, namespace: str) -> None:
    reply = await send(api, "POST", CONFIG_MAPS.path(namespace), b"k8s\x00" + chunk(2, chunk(1, chunk(1, b"a"))))
    assert reply.ok["metadata"]["name"] == "a"


NAMED = chunk(1, chunk(1, b"a"))
DAMAGED = {
    "no magic": b"hello",
    "nothing behind the magic": b"k8s\x00",
    "cut short": envelope("v1", "ConfigMap", NAMED)[:-1],
    "a number for an object": envelope("v1", "ConfigMap", number(1, 5)),
    "bytes for a number": envelope("v1", "ConfigMap", NAMED + chunk(4, b"x")),
    "a length beyond the end": envelope("v1", "ConfigMap", b"\x0a\xff\xff\xff\xff\x07"),
    "a number without end": envelope("v1", "ConfigMap", b"\xff" * 20),
    "the field 0": envelope("v1", "ConfigMap", NAMED + b"\x02\x00"),
    "a group that ends before it begins": envelope("v1", "ConfigMap", NAMED + b"\xfc\x07"),
    "a wire type that does not exist": envelope("v1", "ConfigMap", NAMED + b"\xff\x07"),
    "another kind": encode({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}),
    "another version": envelope("v7", "ConfigMap", NAMED),
    "a kind that is none": envelope("v1", "Thing", NAMED),
}


@pytest.mark.parametrize("raw", DAMAGED.values(), ids=DAMAGED)
async def test_what_is_no_message_of_the_kind_is_a_bad_request(api: Api, namespace: str, raw: bytes) -> None:
    (await send(api, "POST", CONFIG_MAPS.path(namespace), raw)).refused(400, "BadRequest")


@pytest.mark.parametrize("value", [b"x", b"1.5.5", b"1 Gi"])
async def test_a_quantity_that_is_none_is_a_bad_request(api: Api, namespace: str, value: bytes) -> None:
    limits = chunk(8, chunk(1, chunk(1, b"cpu") + chunk(2, chunk(1, value))))
    raw = NAMED + chunk(2, chunk(2, chunk(1, b"c") + chunk(2, b"i") + limits))
    (await send(api, "POST", PODS.path(namespace), envelope("v1", "Pod", raw))).refused(400, "BadRequest")


@pytest.mark.only_on("embedded", "a real one hangs up")
async def test_kinds_of_definitions_have_no_protobuf(api: Api, namespace: str, widgets: Resource) -> None:
    raw = envelope(widgets.api_version, widgets.kind, NAMED)
    reply = await send(api, "POST", widgets.path(namespace), raw)
    reply.refused(415, "UnsupportedMediaType")
    assert "application/json, application/yaml" in reply.message
    assert MEDIA_TYPE not in reply.message


async def test_their_deletion_may_be_asked_for_in_protobuf(api: Api, namespace: str, widgets: Resource) -> None:
    await api.create(widgets, {"metadata": {"name": "a"}}, namespace)
    options = encode({"apiVersion": widgets.api_version, "kind": "DeleteOptions", "preconditions": {"uid": "another"}})
    (await send(api, "DELETE", widgets.path(namespace, "a"), options)).refused(409, "Conflict")


@pytest.mark.only_on("embedded", "a real one answers in protobuf")
async def test_whoever_would_like_protobuf_and_takes_json_gets_json(api: Api, namespace: str) -> None:
    raw = encode({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    reply = await send(api, "POST", CONFIG_MAPS.path(namespace), raw, accept=f"{MEDIA_TYPE},application/json")
    assert (reply.code, reply.headers["Content-Type"]) == (201, "application/json")
    (await api.get(CONFIG_MAPS, "a", namespace, accept=MEDIA_TYPE)).refused(406, "NotAcceptable")
