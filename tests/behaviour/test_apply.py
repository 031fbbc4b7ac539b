"""Server-side apply to objects: what is created, kept, shared and taken away."""

from collections.abc import Callable

from tests.behaviour.applying import apply, entry, owned
from tests.behaviour.manifests import absent_node, config_map, container, pod, workload
from tests.engines.api import Api
from tests.engines.resources import CONFIG_MAPS, NODES, PODS, REPLICA_SETS, SECRETS

LEAF: dict[str, object] = {}


async def test_what_is_not_there_is_created(api: Api, namespace: str) -> None:
    reply = await apply(api, CONFIG_MAPS, "a", {"metadata": {"labels": {"x": "y"}}, "data": {"k": "v"}}, namespace)
    assert reply.code == 201
    made = reply.ok
    mine = entry(made, "me")
    assert made["data"] == {"k": "v"}
    assert (mine["apiVersion"], mine["fieldsType"]) == ("v1", "FieldsV1")
    assert mine["time"] == made["metadata"]["creationTimestamp"]
    assert mine["fieldsV1"] == {"f:data": {"f:k": {}}, "f:metadata": {"f:labels": {"f:x": {}}}}


async def test_an_object_without_fields_has_no_manager(api: Api, namespace: str) -> None:
    assert "managedFields" not in (await apply(api, CONFIG_MAPS, "a", {}, namespace)).ok["metadata"]


async def test_to_apply_again_changes_nothing(api: Api, namespace: str) -> None:
    first = (await apply(api, CONFIG_MAPS, "a", {"data": {"k": "v"}}, namespace)).ok
    again = await apply(api, CONFIG_MAPS, "a", {"data": {"k": "v"}}, namespace)
    assert (again.code, again.ok) == (200, first)


async def test_a_field_that_is_applied_no_longer_goes(api: Api, namespace: str) -> None:
    await apply(api, CONFIG_MAPS, "a", {"metadata": {"labels": {"x": "y"}}, "data": {"k": "v", "l": "v"}}, namespace)
    after = (await apply(api, CONFIG_MAPS, "a", {"data": {"k": "w"}}, namespace)).ok
    assert after["data"] == {"k": "w"}
    assert "labels" not in after["metadata"]
    assert owned(after, "me") == {"f:data": {"f:k": {}}}


async def test_a_field_that_somebody_else_holds_stays(api: Api, namespace: str) -> None:
    await apply(api, CONFIG_MAPS, "a", {"data": {"k": "v", "l": "v"}}, namespace)
    shared = (await apply(api, CONFIG_MAPS, "a", {"data": {"k": "v"}}, namespace, manager="other")).ok
    assert owned(shared, "other") == {"f:data": {"f:k": {}}}
    left = (await apply(api, CONFIG_MAPS, "a", {}, namespace)).ok
    assert left["data"] == {"k": "v"}
    assert owned(left, "me") == {}
    gone = (await apply(api, CONFIG_MAPS, "a", {}, namespace, manager="other")).ok
    assert "data" not in gone
    assert "managedFields" not in gone["metadata"]


async def test_to_share_a_value_is_a_change_of_the_record_alone(api: Api, namespace: str) -> None:
    first = (await apply(api, CONFIG_MAPS, "a", {"data": {"k": "v", "l": "v"}}, namespace)).ok
    second = (await apply(api, CONFIG_MAPS, "a", {"data": {"k": "v"}}, namespace, manager="other")).ok
    assert second["metadata"]["resourceVersion"] != first["metadata"]["resourceVersion"]
    assert entry(second, "me") == entry(first, "me")
    assert owned(second, "other") == {"f:data": {"f:k": {}}}
    third = (await apply(api, CONFIG_MAPS, "a", {"data": {"k": "v"}}, namespace, manager="other")).ok
    assert third == second


async def test_what_an_update_wrote_stays_when_an_applier_lets_go(api: Api, namespace: str) -> None:
    await api.create(CONFIG_MAPS, config_map("a", {"k": "v"}), namespace, fieldManager="maker")
    await apply(api, CONFIG_MAPS, "a", {"data": {"k": "v"}}, namespace)
    after = (await apply(api, CONFIG_MAPS, "a", {}, namespace)).ok
    assert after["data"] == {"k": "v"}
    assert owned(after, "maker", "Update") == {"f:data": {".": {}, "f:k": {}}}


async def test_defaults_belong_to_nobody_and_come_back(api: Api, namespace: str) -> None:
    made = (await apply(api, REPLICA_SETS, "a", workload("a", 0), namespace)).ok
    template = {
        "f:metadata": {"f:labels": {"f:app": {}}},
        "f:spec": {"f:containers": {'k:{"name":"main"}': {".": {}, "f:image": {}, "f:name": {}}}},
    }
    assert owned(made, "me") == {"f:spec": {"f:replicas": {}, "f:selector": {}, "f:template": template}}
    after = (await apply(api, REPLICA_SETS, "a", workload("a", None), namespace, dryRun="All")).ok
    assert after["spec"]["replicas"] == 1


async def test_items_of_a_list_are_merged_by_their_keys_with_defaults_among_them(api: Api, namespace: str) -> None:
    one = container(ports=[{"containerPort": 80}], env=[{"name": "A", "value": "1"}])
    body = pod("a", containers=[one], nodeName=absent_node(namespace))
    made = (await apply(api, PODS, "a", body, namespace)).ok
    items = owned(made, "me")["f:spec"]["f:containers"]['k:{"name":"main"}']
    assert items["f:ports"] == {'k:{"containerPort":80,"protocol":"TCP"}': {".": LEAF, "f:containerPort": LEAF}}
    changed = {"spec": {"containers": [{"name": "main", "image": "registry.example.com/app:2"}]}}
    after = (await apply(api, PODS, "a", changed, namespace, manager="other", force=True)).ok
    found = after["spec"]["containers"][0]
    assert (found["image"], found["env"]) == ("registry.example.com/app:2", [{"name": "A", "value": "1"}])
    assert "f:image" not in owned(after, "me")["f:spec"]["f:containers"]['k:{"name":"main"}']


async def test_numbers_and_texts_of_an_amount_are_the_same(api: Api, namespace: str) -> None:
    def asking(amount: object) -> dict[str, object]:
        return pod("a", containers=[container(resources={"requests": {"cpu": amount}})], nodeName=absent_node(namespace))

    first = (await apply(api, PODS, "a", asking(1), namespace)).ok
    assert first["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}
    assert (await apply(api, PODS, "a", asking("1"), namespace)).ok["metadata"] == first["metadata"]


async def test_finalizers_and_owners_are_shared_item_by_item(api: Api, namespace: str) -> None:
    def one(letter: str) -> dict[str, object]:
        return {"metadata": {"finalizers": [f"example.com/{letter}"]}}

    await apply(api, CONFIG_MAPS, "a", one("a"), namespace)
    both = (await apply(api, CONFIG_MAPS, "a", one("b"), namespace, manager="other")).ok
    assert both["metadata"]["finalizers"] == ["example.com/a", "example.com/b"]
    left = (await apply(api, CONFIG_MAPS, "a", {}, namespace)).ok
    assert left["metadata"]["finalizers"] == ["example.com/b"]


async def test_text_of_a_secret_is_applied(api: Api, namespace: str) -> None:
    await apply(api, SECRETS, "a", {"stringData": {"k": "b"}}, namespace)
    after = (await apply(api, SECRETS, "a", {"stringData": {"k": "c"}}, namespace)).ok
    assert after["data"] == {"k": "Yw=="}
    assert owned(after, "me") == {"f:stringData": {"f:k": {}}}


async def test_what_is_cluster_wide_is_applied(api: Api, unique: Callable[..., str]) -> None:
    name = unique("n")
    made = await apply(api, NODES, name, {"spec": {"unschedulable": True}})
    assert (made.code, owned(made.ok, "me")) == (201, {"f:spec": {"f:unschedulable": {}}})
    await api.delete(NODES, name)


async def test_yaml_is_understood(api: Api, namespace: str) -> None:
    text = (
        b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: |\n    two\n    lines\n  time: 2026-01-01T00:00:00Z\n"
    )
    made = (await apply(api, CONFIG_MAPS, "a", text, namespace)).ok
    assert made["data"] == {"k": "two\nlines\n", "time": "2026-01-01T00:00:00Z"}


async def test_a_dry_run_leaves_no_trace(api: Api, namespace: str) -> None:
    assert (await apply(api, CONFIG_MAPS, "a", {"data": {"k": "v"}}, namespace, dryRun="All")).code == 201
    assert (await api.get(CONFIG_MAPS, "a", namespace)).code == 404
    first = (await apply(api, CONFIG_MAPS, "a", {"data": {"k": "v"}}, namespace)).ok
    dry = (await apply(api, CONFIG_MAPS, "a", {"data": {"k": "w"}}, namespace, dryRun="All")).ok
    assert dry["data"] == {"k": "w"}
    assert (await api.get(CONFIG_MAPS, "a", namespace)).ok == first


async def test_a_version_that_nothing_has_makes_an_object_and_changes_none(api: Api, namespace: str) -> None:
    """What a controller does that must not take over what somebody else makes at the same moment."""
    version = (await api.create(CONFIG_MAPS, config_map("other", {}), namespace)).ok["metadata"]["resourceVersion"]
    body = {"metadata": {"resourceVersion": version}, "data": {"k": "v"}}
    made = (await apply(api, CONFIG_MAPS, "a", body, namespace)).ok["metadata"]
    assert made["resourceVersion"] != version
    again = await apply(api, CONFIG_MAPS, "a", body, namespace)
    again.refused(409, "Conflict")


async def test_a_resource_version_is_a_precondition(api: Api, namespace: str) -> None:
    made = (await apply(api, CONFIG_MAPS, "a", {"data": {"k": "v"}}, namespace)).ok
    version = made["metadata"]["resourceVersion"]
    right = await apply(api, CONFIG_MAPS, "a", {"metadata": {"resourceVersion": version}, "data": {"k": "w"}}, namespace)
    assert right.code == 200
    wrong = await apply(api, CONFIG_MAPS, "a", {"metadata": {"resourceVersion": version}, "data": {"k": "x"}}, namespace)
    assert wrong.refused(409, "Conflict") == {"name": "a", "kind": "configmaps"}


async def test_the_name_may_be_left_to_the_path_once_it_is_there(api: Api, namespace: str) -> None:
    bare = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"}}
    reply = await api.patch(CONFIG_MAPS, "a", bare, namespace, kind="apply", fieldManager="me")
    assert "name must be provided" in reply.message
    reply.refused(400, "BadRequest")
    await apply(api, CONFIG_MAPS, "a", {}, namespace)
    assert (await api.patch(CONFIG_MAPS, "a", bare, namespace, kind="apply", fieldManager="me")).code == 200


async def test_kubectl_takes_over_what_it_applied_without_the_server(api: Api, namespace: str) -> None:
    text = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"1","b":"1"}}'
    note = "kubectl.kubernetes.io/last-applied-configuration"
    body = config_map("a", {"a": "1", "b": "1", "c": "1"}, annotations={note: text})
    await api.create(CONFIG_MAPS, body, namespace, fieldManager="kubectl-client-side-apply")
    refused = await apply(api, CONFIG_MAPS, "a", {"data": {"a": "2"}}, namespace, manager="someone")
    assert refused.code == 409
    taken = (await apply(api, CONFIG_MAPS, "a", {"data": {"a": "2"}}, namespace, manager="kubectl")).ok
    assert taken["data"] == {"a": "2", "b": "1", "c": "1"}
    assert '"data":{"a":"2"}' in taken["metadata"]["annotations"][note]
    assert owned(taken, "kubectl") == {"f:data": {"f:a": {}}}
    mine = await apply(api, CONFIG_MAPS, "a", {"data": {"a": "2", "c": "2"}}, namespace, manager="kubectl")
    assert mine.causes == [("FieldManagerConflict", ".data.c")]
