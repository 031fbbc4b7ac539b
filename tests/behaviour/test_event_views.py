"""An event is one object, whichever of the two groups it was written through."""

import pytest

from tests.engines.api import Api, Json
from tests.engines.resources import EVENTS, NEW_EVENTS, Resource

TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
BOTH = pytest.mark.parametrize("resource", [EVENTS, NEW_EVENTS], ids=lambda resource: resource.api_version)


def old_event(namespace: str, name: str = "a", **more: object) -> Json:
    about = {"kind": "Pod", "namespace": namespace, "name": "p"}
    return {"metadata": {"name": name}, "involvedObject": about, "reason": "Started", "message": "It has.", **more}


def new_event(namespace: str, name: str = "b", **more: object) -> Json:
    return {
        "metadata": {"name": name},
        "regarding": {"kind": "Pod", "namespace": namespace, "name": "q"},
        "reason": "Started",
        "action": "Start",
        "note": "It has.",
        "type": "Normal",
        "reportingController": "example.com/starter",
        "reportingInstance": "starter-1",
        "eventTime": "2024-01-01T00:00:00.000001Z",
        **more,
    }


def content(event: Json) -> Json:
    return {name: value for name, value in event.items() if name != "metadata"}


async def test_an_event_of_v1_is_seen_in_the_newer_group(api: Api, namespace: str) -> None:
    times = {"firstTimestamp": "2024-01-01T00:00:00Z", "lastTimestamp": "2024-01-01T00:01:00Z"}
    event = old_event(namespace, count=3, source={"component": "starter", "host": "n"}, type="Normal", **times)
    made = (await api.create(EVENTS, event, namespace)).ok
    seen = (await api.get(NEW_EVENTS, "a", namespace)).ok
    assert content(seen) == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "regarding": event["involvedObject"],
        "reason": "Started",
        "note": "It has.",
        "type": "Normal",
        "eventTime": None,
        "deprecatedSource": {"component": "starter", "host": "n"},
        "deprecatedFirstTimestamp": "2024-01-01T00:00:00Z",
        "deprecatedLastTimestamp": "2024-01-01T00:01:00Z",
        "deprecatedCount": 3,
    }
    assert seen["metadata"] == made["metadata"]


async def test_an_event_of_the_newer_group_is_seen_in_v1(api: Api, namespace: str) -> None:
    event = new_event(namespace, series={"count": 2, "lastObservedTime": "2024-01-01T00:00:01.000000Z"})
    made = (await api.create(NEW_EVENTS, event, namespace)).ok
    seen = (await api.get(EVENTS, "b", namespace)).ok
    assert content(seen) == {
        "apiVersion": "v1",
        "kind": "Event",
        "involvedObject": event["regarding"],
        "reason": "Started",
        "message": "It has.",
        "action": "Start",
        "type": "Normal",
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "eventTime": "2024-01-01T00:00:00.000001Z",
        "series": {"count": 2, "lastObservedTime": "2024-01-01T00:00:01.000000Z"},
        "reportingComponent": "example.com/starter",
        "reportingInstance": "starter-1",
    }
    assert seen["metadata"] == made["metadata"]
    assert made["deprecatedSource"] == {}
    assert made["deprecatedFirstTimestamp"] is made["deprecatedLastTimestamp"] is None


async def test_what_nobody_said_is_shown_empty_and_belongs_to_nobody(api: Api, namespace: str) -> None:
    made = (await api.create(EVENTS, old_event(namespace, source={}, reportingComponent="", eventTime=None), namespace)).ok
    empty = {"source": {}, "firstTimestamp": None, "lastTimestamp": None, "eventTime": None}
    assert made.items() >= {**empty, "reportingComponent": "", "reportingInstance": ""}.items()
    (entry,) = made["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:involvedObject": {}, "f:message": {}, "f:reason": {}}
    again = (await api.update(EVENTS, made, namespace)).ok
    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


@BOTH
async def test_a_list_shows_the_events_of_both(api: Api, namespace: str, resource: Resource) -> None:
    await api.create(EVENTS, old_event(namespace), namespace)
    await api.create(NEW_EVENTS, new_event(namespace), namespace)
    listed = (await api.list(resource, namespace)).ok
    assert (listed["kind"], listed["apiVersion"]) == ("EventList", resource.api_version)
    about = "involvedObject" if resource is EVENTS else "regarding"
    assert [item[about]["name"] for item in listed["items"]] == ["p", "q"]
    assert not any("kind" in item or "apiVersion" in item for item in listed["items"])


@BOTH
async def test_a_table_is_the_same_in_both(api: Api, namespace: str, resource: Resource) -> None:
    await api.create(EVENTS, old_event(namespace), namespace)
    await api.create(NEW_EVENTS, new_event(namespace), namespace)
    table = (await api.list(resource, namespace, accept=TABLE, includeObject="Object")).ok
    columns = [column["name"] for column in table["columnDefinitions"]]
    shown = [dict(zip(columns, row["cells"], strict=True)) for row in table["rows"]]
    assert [(row["Object"], row["Source"], row["Message"]) for row in shown] == [
        ("pod/p", "", "It has."),
        ("pod/q", "example.com/starter, starter-1", "It has."),
    ]
    assert {row["object"]["apiVersion"] for row in table["rows"]} == {resource.api_version}


@BOTH
async def test_a_watch_shows_the_events_of_both(api: Api, namespace: str, resource: Resource) -> None:
    revision = (await api.list(resource, namespace)).ok["metadata"]["resourceVersion"]
    async with api.watch(resource, namespace, resourceVersion=revision) as watch:
        await api.create(EVENTS, old_event(namespace), namespace)
        await api.create(NEW_EVENTS, new_event(namespace), namespace)
        await api.delete(NEW_EVENTS, "a", namespace)
        seen = await watch.until("DELETED")
    assert [(event.type, event.object["metadata"]["name"]) for event in seen] == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")]
    assert {event.object["apiVersion"] for event in seen} == {resource.api_version}
    text = "message" if resource is EVENTS else "note"
    assert {event.object[text] for event in seen} == {"It has."}


async def test_a_watch_selects_by_the_names_of_its_group(api: Api, namespace: str) -> None:
    revision = (await api.list(EVENTS, namespace)).ok["metadata"]["resourceVersion"]
    where = {"resourceVersion": revision}
    async with (
        api.watch(EVENTS, namespace, fieldSelector="involvedObject.name=q", **where) as old,
        api.watch(NEW_EVENTS, namespace, fieldSelector="regarding.name=p", **where) as new,
    ):
        await api.create(NEW_EVENTS, new_event(namespace), namespace)
        await api.create(EVENTS, old_event(namespace), namespace)
        assert (await old.next()).object["metadata"]["name"] == "b"
        assert (await new.next()).object["metadata"]["name"] == "a"


@pytest.mark.parametrize(
    ("resource", "selector", "names"),
    [
        (EVENTS, "involvedObject.name=p", ["a"]),
        (NEW_EVENTS, "regarding.name=q", ["b"]),
        (EVENTS, "reportingComponent=example.com/starter", ["b"]),
        (NEW_EVENTS, "reportingController=example.com/starter", ["b"]),
        (EVENTS, "source=example.com/starter", ["b"]),
        (NEW_EVENTS, "type!=Normal", ["a"]),
        (NEW_EVENTS, "reason=Started,regarding.kind=Pod", ["a", "b"]),
    ],
)
async def test_each_group_selects_by_its_own_names(
    api: Api, namespace: str, resource: Resource, selector: str, names: list[str]
) -> None:
    await api.create(EVENTS, old_event(namespace), namespace)
    await api.create(NEW_EVENTS, new_event(namespace), namespace)
    assert (await api.list(resource, namespace, fieldSelector=selector)).names == names


@pytest.mark.parametrize(
    ("resource", "selector"), [(EVENTS, "regarding.name=p"), (NEW_EVENTS, "involvedObject.name=p"), (NEW_EVENTS, "source=x")]
)
async def test_the_names_of_the_other_group_are_no_selectors(api: Api, namespace: str, resource: Resource, selector: str) -> None:
    (await api.list(resource, namespace, fieldSelector=selector)).refused(400, "BadRequest")


async def test_a_patch_of_one_group_changes_what_the_other_shows(api: Api, namespace: str) -> None:
    await api.create(NEW_EVENTS, new_event(namespace), namespace)
    changed = await api.patch(EVENTS, "b", {"message": "Again.", "count": 3}, namespace)
    assert changed.ok["message"] == "Again."
    seen = (await api.get(NEW_EVENTS, "b", namespace)).ok
    assert (seen["note"], seen["deprecatedCount"]) == ("Again.", 3)
    series = [{"op": "add", "path": "/series", "value": {"count": 2, "lastObservedTime": "2024-01-01T00:00:01.000000Z"}}]
    patched = (await api.patch(NEW_EVENTS, "b", series, namespace, kind="json")).ok
    assert (patched["apiVersion"], patched["note"], patched["series"]["count"]) == ("events.k8s.io/v1", "Again.", 2)


async def test_an_update_of_one_group_changes_what_the_other_shows(api: Api, namespace: str) -> None:
    await api.create(EVENTS, old_event(namespace), namespace)
    seen = (await api.get(NEW_EVENTS, "a", namespace)).ok
    seen["metadata"]["labels"] = {"x": "y"}
    assert (await api.update(NEW_EVENTS, seen, namespace)).ok["note"] == "It has."
    changed = (await api.get(EVENTS, "a", namespace)).ok
    assert (changed["metadata"]["labels"], changed["message"]) == ({"x": "y"}, "It has.")


async def test_the_fields_of_a_manager_are_forgotten_when_the_other_group_writes(api: Api, namespace: str) -> None:
    await api.create(NEW_EVENTS, new_event(namespace), namespace, fieldManager="first")
    changed = await api.patch(EVENTS, "b", {"count": 3}, namespace, fieldManager="second")
    told = [(entry["manager"], entry["apiVersion"], entry["fieldsV1"]) for entry in changed.ok["metadata"]["managedFields"]]
    assert told == [("second", "v1", {"f:count": {}})]


async def test_a_name_is_taken_in_both(api: Api, namespace: str) -> None:
    await api.create(EVENTS, old_event(namespace), namespace)
    reply = await api.create(NEW_EVENTS, new_event(namespace, "a"), namespace)
    assert reply.refused(409, "AlreadyExists") == {"name": "a", "group": "events.k8s.io", "kind": "events"}


async def test_what_was_deleted_through_one_is_gone_in_both(api: Api, namespace: str) -> None:
    await api.create(EVENTS, old_event(namespace), namespace)
    await api.create(NEW_EVENTS, new_event(namespace), namespace)
    deleted = (await api.delete(NEW_EVENTS, "a", namespace)).ok
    assert (deleted["details"]["group"], deleted["details"]["kind"]) == ("events.k8s.io", "events")
    (await api.get(EVENTS, "a", namespace)).refused(404, "NotFound")
    (await api.get(NEW_EVENTS, "a", namespace)).refused(404, "NotFound")
    await api.delete_collection(EVENTS, namespace)
    assert (await api.list(NEW_EVENTS, namespace)).items == []


@pytest.mark.parametrize(
    ("change", "field"),
    [({"note": "Other."}, "message"), ({"regarding": {"name": "z"}}, "involvedObject"), ({"deprecatedCount": 9}, "count")],
)
async def test_the_newer_group_lets_nobody_rewrite_history(api: Api, namespace: str, change: Json, field: str) -> None:
    await api.create(NEW_EVENTS, new_event(namespace), namespace)
    reply = await api.patch(NEW_EVENTS, "b", change, namespace)
    details = reply.refused(422, "Invalid")
    assert (details["kind"], details.get("group")) == ("Event", None)
    assert ("FieldValueInvalid", field) in reply.causes


@pytest.mark.parametrize(
    ("missing", "field"), [("eventTime", "eventTime"), ("action", "action"), ("reportingInstance", "reportingInstance")]
)
async def test_the_newer_group_wants_more_than_v1(api: Api, namespace: str, missing: str, field: str) -> None:
    event = new_event(namespace)
    del event[missing]
    reply = await api.create(NEW_EVENTS, event, namespace)
    reply.refused(422, "Invalid")
    assert ("FieldValueRequired", field) in reply.causes
    assert reply.message.startswith('Event "b" is invalid: ')
