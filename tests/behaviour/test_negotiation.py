"""What an answer is shown as: by what the client accepts, and by what there is."""

import pytest
import yaml

from tests.behaviour.manifests import config_map, pod, workload
from tests.behaviour.test_reviews import MAY_I, MAY_THEY, MY_RULES, WHO_AM_I, WHOSE
from tests.behaviour.test_tables import AGE, KUBECTL, TABLE, cells
from tests.engines.api import Api, Json
from tests.engines.resources import CONFIG_MAPS, DEPLOYMENTS, PODS, Resource

METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


async def test_a_list_is_not_the_metadata_of_one_object_and_the_other_way_round(api: Api, namespace: str) -> None:
    await api.create(CONFIG_MAPS, config_map("a"), namespace)
    listed = await api.list(CONFIG_MAPS, namespace, accept=METADATA)
    listed.refused(406, "NotAcceptable")
    assert listed.message.startswith("you requested PartialObjectMetadata, but the requested object is a list")
    one = await api.get(CONFIG_MAPS, "a", namespace, accept=METADATA_LIST)
    one.refused(406, "NotAcceptable")
    assert one.message.startswith("you requested PartialObjectMetadataList, but the requested object is not a list")


QUESTIONS: list[tuple[Resource, Json]] = [
    (MAY_I, {"spec": {"nonResourceAttributes": {"verb": "get", "path": "/"}}}),
    (MAY_THEY, {"spec": {"user": "a", "nonResourceAttributes": {"verb": "get", "path": "/"}}}),
    (MY_RULES, {"spec": {"namespace": "default"}}),
    (WHO_AM_I, {}),
    (WHOSE, {"spec": {"token": "x"}}),
]


@pytest.mark.parametrize(("question", "body"), QUESTIONS, ids=lambda one: one.kind if isinstance(one, Resource) else "")
async def test_a_question_has_metadata_and_no_table(api: Api, question: Resource, body: Json) -> None:
    (await api.create(question, body, accept=TABLE)).refused(406, "NotAcceptable")
    assert (await api.create(question, body, accept=KUBECTL)).ok["kind"] == question.kind
    assert (await api.create(question, body, accept=METADATA)).ok["kind"] == "PartialObjectMetadata"
    (await api.create(question, body, accept=f"{METADATA_LIST},application/json")).refused(406, "NotAcceptable")


async def test_what_is_only_done_has_no_table(api: Api, namespace: str) -> None:
    await api.create(PODS, pod("a", schedulerName="nobody"), namespace)
    order = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"name": "none"}}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}
    token: Json = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    core = f"/api/v1/namespaces/{namespace}"
    for method, path, body in (
        ("POST", f"{core}/pods/a/binding", order),
        ("POST", f"{core}/bindings", order),
        ("POST", f"{core}/pods/a/eviction", eviction),
        ("POST", f"{core}/serviceaccounts/default/token", token),
        ("PUT", f"{core}/finalize", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
        ("GET", f"{core}/pods/a/log", None),
    ):
        assert (await api.request(method, path, body, accept=TABLE)).code == 406, path
    pods = await api.get(PODS, "a", namespace)
    assert "nodeName" not in pods.ok["spec"]
    done = await api.request("POST", f"{core}/bindings", order, accept=METADATA)
    assert done.ok["kind"] == "Status"


async def test_a_scale_is_shown_as_it_is_asked_for(api: Api, namespace: str) -> None:
    await api.create(DEPLOYMENTS, workload("a", 2, paused=True), namespace)
    table = (await api.get(DEPLOYMENTS, "a", namespace, "scale", accept=TABLE)).ok
    row = cells(table)
    assert AGE.fullmatch(row.pop("Age"))
    assert row == {"Name": "a", "Desired": 2, "Available": 0}
    metadata = (await api.get(DEPLOYMENTS, "a", namespace, "scale", accept=METADATA)).ok
    assert (metadata["kind"], metadata["metadata"]["name"]) == ("PartialObjectMetadata", "a")
    changed = await api.patch(DEPLOYMENTS, "a", {"spec": {"replicas": 0}}, namespace, "scale", accept=TABLE)
    assert cells(changed.ok)["Desired"] == 0


async def test_a_refusal_is_in_yaml_for_who_reads_that(api: Api, namespace: str) -> None:
    reply = await api.get(CONFIG_MAPS, "absent", namespace, accept="application/yaml")
    assert (reply.code, reply.headers["Content-Type"]) == (404, "application/yaml")
    assert b"\nreason: NotFound\n" in reply.raw


V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


@pytest.mark.parametrize(
    ("accept", "given"),
    [
        ("*/*", "application/json"),
        ("", "application/json"),
        ("text/html, application/json;q=0.5", "application/json"),
        (V2_PROTOBUF, V2_PROTOBUF),
        ("application/com.github.proto-openapi.spec.v2@v1.0+protobuf", V2_PROTOBUF),
        ("application/yaml", None),
        ("application/vnd.kubernetes.protobuf", None),
    ],
)
async def test_the_older_schemas_come_in_json_or_protobuf(api: Api, accept: str, given: str | None) -> None:
    reply = await api.request("GET", "/openapi/v2", accept=accept)
    if given is None:
        assert reply.code == 406
        return
    assert (reply.code, reply.headers["Content-Type"]) == (200, given)
    if given == "application/json":
        assert reply.body["swagger"] == "2.0"
        assert reply.body["definitions"]["io.k8s.api.core.v1.Pod"]["properties"]["spec"]["$ref"] == (
            "#/definitions/io.k8s.api.core.v1.PodSpec"
        )
        assert "post" in reply.body["paths"]["/api/v1/namespaces/{namespace}/pods"]


@pytest.mark.parametrize("path", ["/api", "/apis", "/api/v1", "/apis/apps", "/apis/apps/v1"])
async def test_discovery_is_shown_in_yaml_and_never_as_a_table(api: Api, path: str) -> None:
    (await api.request("GET", path, accept=TABLE)).refused(406, "NotAcceptable")
    shown = await api.request("GET", path, accept="application/yaml")
    assert (shown.code, shown.headers["Content-Type"]) == (200, "application/yaml")
    assert yaml.safe_load(shown.raw)["kind"] == (await api.request("GET", path)).ok["kind"]


@pytest.mark.parametrize("path", ["/version", "/openapi/v3/apis/apps/v1"])
async def test_what_is_only_there_in_json_is_not_acceptable_in_yaml(api: Api, path: str) -> None:
    assert (await api.request("GET", path, accept="application/yaml")).code == 406
    assert (await api.request("GET", path, accept="text/html,*/*;q=0.8")).code == 200
