"""Who wrote what, as the API keeps it in metadata.managedFields."""

from tests.behaviour.manifests import absent_node, config_map, container, pod
from tests.engines.api import Api, Json
from tests.engines.resources import CONFIG_MAPS, PODS


def entries(found: Json) -> dict[tuple[str, str], Json]:
    """By manager and subresource."""
    return {(one["manager"], one.get("subresource", "")): one for one in found["metadata"].get("managedFields", [])}


def fields(found: Json, manager: str, subresource: str = "") -> Json:
    return entries(found)[manager, subresource]["fieldsV1"]


async def test_a_create_is_recorded(api: Api, namespace: str) -> None:
    body = config_map("a", {"k": "v"}, labels={"x": "y"}, annotations={"n": ""}, finalizers=["example.com/hold"])
    made = (await api.create(CONFIG_MAPS, body, namespace, fieldManager="me", dryRun="All")).ok
    entry = entries(made)["me", ""]
    assert (entry["operation"], entry["apiVersion"], entry["fieldsType"]) == ("Update", "v1", "FieldsV1")
    assert entry["time"] == made["metadata"]["creationTimestamp"]
    assert entry["fieldsV1"] == {
        "f:data": {".": {}, "f:k": {}},
        "f:metadata": {
            "f:annotations": {".": {}, "f:n": {}},
            "f:finalizers": {".": {}, 'v:"example.com/hold"': {}},
            "f:labels": {".": {}, "f:x": {}},
        },
    }


async def test_an_object_without_fields_has_no_entry(api: Api, namespace: str) -> None:
    assert "managedFields" not in (await api.create(CONFIG_MAPS, config_map("a"), namespace)).ok["metadata"]


async def test_the_manager_is_the_program_unless_the_request_says_another(api: Api, namespace: str) -> None:
    agent = {"User-Agent": "herd-dog/1.2 (linux) more/3"}
    first = (await api.create(CONFIG_MAPS, config_map("a", {"k": "v"}), namespace, headers=agent)).ok
    assert set(entries(first)) == {("herd-dog", "")}
    second = (await api.create(CONFIG_MAPS, config_map("b", {"k": "v"}), namespace, headers=agent, fieldManager="me")).ok
    assert set(entries(second)) == {("me", "")}


async def test_an_update_takes_over_what_it_changes(api: Api, namespace: str) -> None:
    await api.create(CONFIG_MAPS, config_map("a", {"k": "1", "l": "1"}), namespace, fieldManager="first")
    body = config_map("a", {"k": "2", "l": "1", "m": "1"})
    after = (await api.update(CONFIG_MAPS, body, namespace, fieldManager="second")).ok
    assert fields(after, "first") == {"f:data": {".": {}, "f:l": {}}}
    assert fields(after, "second") == {"f:data": {"f:k": {}, "f:m": {}}}


async def test_what_is_removed_belongs_to_nobody(api: Api, namespace: str) -> None:
    await api.create(CONFIG_MAPS, config_map("a", {"k": "1", "l": "1"}), namespace, fieldManager="first")
    after = (await api.patch(CONFIG_MAPS, "a", {"data": {"k": None}}, namespace, fieldManager="second")).ok
    assert set(entries(after)) == {("first", "")}
    assert fields(after, "first") == {"f:data": {".": {}, "f:l": {}}}


async def test_one_manager_has_one_entry(api: Api, namespace: str) -> None:
    await api.create(CONFIG_MAPS, config_map("a", {"k": "1"}), namespace, fieldManager="me")
    after = (await api.patch(CONFIG_MAPS, "a", {"data": {"l": "1"}}, namespace, fieldManager="me")).ok
    assert len(after["metadata"]["managedFields"]) == 1
    assert fields(after, "me") == {"f:data": {".": {}, "f:k": {}, "f:l": {}}}


async def test_items_of_lists_are_named_by_their_keys(api: Api, namespace: str) -> None:
    one = container(
        env=[{"name": "E", "value": "x"}],
        ports=[{"containerPort": 80}],
        resources={"requests": {"cpu": "1"}},
        volumeMounts=[{"name": "v", "mountPath": "/v"}],
    )
    body = pod("a", containers=[one], volumes=[{"name": "v", "emptyDir": {}}], nodeName=absent_node(namespace))
    made = (await api.create(PODS, body, namespace, fieldManager="me")).ok
    leaf: Json = {}
    assert fields(made, "me") == {
        "f:spec": {
            "f:containers": {
                'k:{"name":"main"}': {
                    ".": leaf,
                    "f:env": {".": leaf, 'k:{"name":"E"}': {".": leaf, "f:name": leaf, "f:value": leaf}},
                    "f:image": leaf,
                    "f:imagePullPolicy": leaf,
                    "f:name": leaf,
                    "f:ports": {
                        ".": leaf,
                        'k:{"containerPort":80,"protocol":"TCP"}': {".": leaf, "f:containerPort": leaf, "f:protocol": leaf},
                    },
                    "f:resources": {".": leaf, "f:requests": {".": leaf, "f:cpu": leaf}},
                    "f:terminationMessagePath": leaf,
                    "f:terminationMessagePolicy": leaf,
                    "f:volumeMounts": {".": leaf, 'k:{"mountPath":"/v"}': {".": leaf, "f:mountPath": leaf, "f:name": leaf}},
                }
            },
            "f:dnsPolicy": leaf,
            "f:enableServiceLinks": leaf,
            "f:nodeName": leaf,
            "f:restartPolicy": leaf,
            "f:schedulerName": leaf,
            "f:securityContext": leaf,
            "f:terminationGracePeriodSeconds": leaf,
            "f:volumes": {".": leaf, 'k:{"name":"v"}': {".": leaf, "f:emptyDir": leaf, "f:name": leaf}},
        }
    }


async def test_a_write_of_the_status_is_recorded_apart(api: Api, namespace: str) -> None:
    await api.create(PODS, pod("a", nodeName=absent_node(namespace)), namespace, fieldManager="me")
    # Both times are given because the Go structs of a real server record them even where they are null.
    times = {"lastProbeTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True", **times}]}
    after = (await api.patch(PODS, "a", {"status": status}, namespace, "status", fieldManager="me")).ok
    assert set(entries(after)) == {("me", ""), ("me", "status")}
    condition = {".": {}, "f:lastProbeTime": {}, "f:lastTransitionTime": {}, "f:status": {}, "f:type": {}}
    expected = {"f:status": {"f:conditions": {".": {}, 'k:{"type":"Ready"}': condition}, "f:phase": {}}}
    assert fields(after, "me", "status") == expected


async def test_a_client_can_have_the_record_forgotten(api: Api, namespace: str) -> None:
    await api.create(CONFIG_MAPS, config_map("a", {"k": "1"}), namespace, fieldManager="me")
    after = await api.patch(CONFIG_MAPS, "a", {"metadata": {"managedFields": [{}]}}, namespace, fieldManager="other")
    assert "managedFields" not in after.ok["metadata"]


async def test_a_client_cannot_make_entries_up(api: Api, namespace: str) -> None:
    invented = {"manager": "x", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}}
    made = (await api.create(CONFIG_MAPS, config_map("a", {"k": "v"}, managedFields=[invented]), namespace, fieldManager="me")).ok
    assert set(entries(made)) == {("me", "")}


async def test_the_name_of_a_manager_is_short_and_printable(api: Api, namespace: str) -> None:
    for name, reason in (("x" * 129, "FieldValueTooLong"), ("a\n", "FieldValueInvalid")):
        reply = await api.create(CONFIG_MAPS, config_map("a"), namespace, fieldManager=name)
        assert reply.refused(422, "Invalid")["kind"] == "CreateOptions"
        assert reply.causes == [(reason, "fieldManager")]


async def test_a_client_can_rewrite_the_record_and_nothing_else(api: Api, namespace: str) -> None:
    before = (await api.create(CONFIG_MAPS, config_map("a", {"k": "v"}), namespace, fieldManager="maker")).ok
    mine = {**before["metadata"]["managedFields"][0], "manager": "keeper", "operation": "Apply"}
    patch = [{"op": "replace", "path": "/metadata/managedFields", "value": [mine]}]
    after = (await api.patch(CONFIG_MAPS, "a", patch, namespace, kind="json")).ok
    assert after["metadata"]["managedFields"] == [mine]
    assert after["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]
