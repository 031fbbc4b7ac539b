"""Server-side apply to custom resources: lists that are maps or sets, maps of one piece, fields without a schema."""

from tests.behaviour.applying import apply, conflicts, gadgets, owned
from tests.engines.api import Api, Json
from tests.engines.resources import Resource

__all__ = ["gadgets"]
LEAF: Json = {}


async def test_every_form_is_owned_as_its_schema_divides_it(api: Api, namespace: str, gadgets: Resource) -> None:
    spec = {
        "size": 1,
        "map": {"x": "1"},
        "whole": {"x": "1"},
        "inner": {"a": 1},
        "parts": [{"name": "p", "weight": 1}, {"name": "q", "kind": "Z"}],
        "tags": ["t"],
        "list": ["a"],
        "free": {"a": {"b": [1]}, "c": 1},
        "any": [{"x": 1}],
    }
    made = (await apply(api, gadgets, "a", {"spec": spec}, namespace)).ok
    assert made["spec"]["colour"] == "red"
    assert owned(made, "me")["f:spec"] == {
        "f:size": LEAF,
        "f:map": {"f:x": LEAF},
        "f:whole": LEAF,
        "f:inner": {"f:a": LEAF},
        "f:parts": {
            'k:{"kind":"K","name":"p"}': {".": LEAF, "f:name": LEAF, "f:weight": LEAF},
            'k:{"kind":"Z","name":"q"}': {".": LEAF, "f:kind": LEAF, "f:name": LEAF},
        },
        "f:tags": {'v:"t"': LEAF},
        "f:list": LEAF,
        "f:free": {"f:a": {".": LEAF, "f:b": LEAF}, "f:c": LEAF},
        "f:any": LEAF,
    }
    again = (await apply(api, gadgets, "a", {"spec": spec}, namespace)).ok
    assert again["metadata"] == made["metadata"]


async def test_two_share_an_object_item_by_item(api: Api, namespace: str, gadgets: Resource) -> None:
    mine = {"map": {"x": "1"}, "inner": {"a": 1}, "parts": [{"name": "p", "weight": 1}, {"name": "q"}], "tags": ["t", "u"]}
    yours = {"map": {"y": "2"}, "inner": {"b": 2}, "parts": [{"name": "r"}, {"name": "p", "note": "n"}], "tags": ["v", "t"]}
    await apply(api, gadgets, "a", {"spec": mine}, namespace)
    both = (await apply(api, gadgets, "a", {"spec": yours}, namespace, manager="other")).ok
    assert both["spec"] == {
        "colour": "red",
        "map": {"x": "1", "y": "2"},
        "inner": {"a": 1, "b": 2},
        "parts": [
            {"name": "r", "kind": "K"},
            {"name": "p", "kind": "K", "weight": 1, "note": "n"},
            {"name": "q", "kind": "K"},
        ],
        "tags": ["v", "t", "u"],
    }
    left = (await apply(api, gadgets, "a", {"spec": {"parts": [{"name": "p"}], "tags": ["u"]}}, namespace)).ok
    assert left["spec"] == {
        "colour": "red",
        "map": {"y": "2"},
        "inner": {"b": 2},
        "parts": [{"name": "r", "kind": "K"}, {"name": "p", "kind": "K", "note": "n"}],
        "tags": ["v", "t", "u"],
    }
    await apply(api, gadgets, "a", {}, namespace)
    assert "spec" not in (await apply(api, gadgets, "a", {}, namespace, manager="other")).ok


async def test_a_map_of_one_piece_and_a_plain_list_are_held_whole(api: Api, namespace: str, gadgets: Resource) -> None:
    await apply(api, gadgets, "a", {"spec": {"whole": {"x": "1"}, "list": ["a"]}}, namespace)
    other = {"spec": {"whole": {"y": "2"}, "list": ["b"]}}
    reply = await apply(api, gadgets, "a", other, namespace, manager="other")
    assert conflicts(reply) == [('conflict with "me"', ".spec.list"), ('conflict with "me"', ".spec.whole")]
    forced = (await apply(api, gadgets, "a", other, namespace, manager="other", force=True)).ok
    assert (forced["spec"]["whole"], forced["spec"]["list"]) == ({"y": "2"}, ["b"])


async def test_what_has_no_schema_is_divided_as_it_comes(api: Api, namespace: str, gadgets: Resource) -> None:
    await apply(api, gadgets, "a", {"spec": {"free": {"a": {"b": 1}}, "any": [1]}}, namespace)
    both = await apply(api, gadgets, "a", {"spec": {"free": {"a": {"c": 2}}}}, namespace, manager="other")
    assert both.ok["spec"]["free"] == {"a": {"b": 1, "c": 2}}
    reply = await apply(api, gadgets, "a", {"spec": {"any": {"q": 1}}}, namespace, manager="other")
    assert conflicts(reply) == [('conflict with "me"', ".spec.any")]


async def test_the_status_is_applied_through_its_endpoint_alone(api: Api, namespace: str, gadgets: Resource) -> None:
    made = (await apply(api, gadgets, "a", {"spec": {"size": 1}, "status": {"phase": "x"}}, namespace)).ok
    assert "status" not in made
    assert owned(made, "me") == {"f:spec": {"f:size": {}}}
    config = {"metadata": {"labels": {"a": "b"}}, "spec": {"size": 9}, "status": {"phase": "x", "replicas": 1}}
    after = (await apply(api, gadgets, "a", config, namespace, "status", manager="worker")).ok
    assert (after["spec"]["size"], after["status"]) == (1, {"phase": "x", "replicas": 1})
    assert "labels" not in after["metadata"]
    assert owned(after, "worker", "Apply", "status") == {"f:status": {"f:phase": {}, "f:replicas": {}}}
    less = (await apply(api, gadgets, "a", {"status": {"phase": "x"}}, namespace, "status", manager="worker")).ok
    assert less["status"] == {"phase": "x"}
    reply = await apply(api, gadgets, "a", {"status": {"phase": "y"}}, namespace, "status", manager="other")
    assert conflicts(reply) == [('conflict with "worker" with subresource "status"', ".status.phase")]
    assert "status" not in (await apply(api, gadgets, "a", {}, namespace, "status", manager="worker")).ok


async def test_the_status_of_what_is_not_there_is_not_found(api: Api, namespace: str, gadgets: Resource) -> None:
    reply = await apply(api, gadgets, "absent", {"status": {"phase": "x"}}, namespace, "status")
    assert reply.refused(404, "NotFound")["name"] == "absent"


async def test_a_value_that_breaks_the_schema_is_refused_after_merging(api: Api, namespace: str, gadgets: Resource) -> None:
    reply = await apply(api, gadgets, "a", {"spec": {"parts": [{"weight": 1}]}}, namespace)
    assert reply.refused(422, "Invalid")["kind"] == "Gadget"
    assert reply.causes == [("FieldValueRequired", "spec.parts[0].name")]
