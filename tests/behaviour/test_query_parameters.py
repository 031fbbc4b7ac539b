"""Parameters that make no sense are refused, before anything is done; those that do are read as Kubernetes reads them."""

import asyncio

import pytest

from tests.behaviour.manifests import config_map, pod
from tests.engines.api import Api
from tests.engines.resources import CONFIG_MAPS, DEPLOYMENTS, PODS, Resource

LABELLED = "labelSelector=l%3Dx"


@pytest.fixture
async def three(api: Api, namespace: str) -> str:
    for name in ("a", "b", "c"):
        await api.create(CONFIG_MAPS, config_map(name, labels={"l": "x"}), namespace)
    return CONFIG_MAPS.path(namespace)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("invalid", 'time: invalid duration "invalid"'),
        ("5", 'time: missing unit in duration "5"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
    ],
)
async def test_a_timeout_is_a_length_of_time(api: Api, namespace: str, text: str, why: str) -> None:
    for method, path, body in (
        ("GET", CONFIG_MAPS.path(namespace), None),
        ("GET", CONFIG_MAPS.path(namespace, "absent"), None),
        ("POST", CONFIG_MAPS.path(namespace), config_map("a")),
        ("DELETE", CONFIG_MAPS.path(namespace), None),
        ("GET", "/version", None),
        ("GET", "/apis/none.example.com/v1/things", None),
    ):
        reply = await api.request(method, path, body, timeout=text)
        reply.refused(400, "BadRequest")
        assert reply.message == f"invalid timeout specified in the request URL - {why}"


@pytest.mark.parametrize("text", ["5s", "1h30m", "0", "-5s", ".5s", ""])
async def test_a_timeout_of_any_length_will_do(api: Api, namespace: str, text: str) -> None:
    assert (await api.list(CONFIG_MAPS, namespace, timeout=text)).code == 200


@pytest.mark.parametrize("text", ["x", "1.5", "", "0x10", "99999999999999999999"])
@pytest.mark.parametrize("name", ["limit", "timeoutSeconds"])
async def test_a_number_is_a_number(api: Api, three: str, name: str, text: str) -> None:
    for method, more in (("GET", ""), ("GET", "&watch=1"), ("DELETE", "")):
        (await api.request(method, f"{three}?{LABELLED}&{name}={text}{more}")).refused(400, "BadRequest")
    assert len((await api.request("GET", three)).names) >= 3


async def test_of_what_is_said_twice_the_first_counts(api: Api, three: str) -> None:
    assert (await api.request("GET", f"{three}?{LABELLED}&limit=1&limit=x")).names == ["a"]
    (await api.request("GET", f"{three}?{LABELLED}&limit=x&limit=1")).refused(400, "BadRequest")


async def test_a_limit_below_zero_is_none(api: Api, three: str) -> None:
    assert (await api.request("GET", f"{three}?{LABELLED}&limit=-1")).names == ["a", "b", "c"]


@pytest.mark.slow
async def test_whatever_is_no_clear_no_is_a_yes(api: Api, three: str) -> None:
    """A watch has a length of its own, and no timeout."""
    path = f"{three}?{LABELLED}&timeoutSeconds=1&timeout=invalid&watch="
    for watched in await asyncio.gather(*(api.request("GET", path + text) for text in ("", "x", "f", "1", "TRUE"))):
        assert watched.raw.startswith(b'{"type":"ADDED"')
    for text in ("0", "false", "FALSE"):
        assert (await api.request("GET", f"{three}?{LABELLED}&watch={text}")).ok["kind"] == "ConfigMapList"


@pytest.mark.parametrize("text", ["", "x"])
async def test_a_dry_run_that_is_not_understood_is_none_that_happens(api: Api, three: str, text: str) -> None:
    (await api.request("POST", f"{three}?dryRun={text}", config_map("d"))).refused(422, "Invalid")
    (await api.request("DELETE", f"{three}/a?dryRun={text}")).refused(422, "Invalid")
    (await api.request("DELETE", f"{three}?{LABELLED}&dryRun={text}")).refused(422, "Invalid")
    assert (await api.request("GET", f"{three}?{LABELLED}")).names == ["a", "b", "c"]


async def test_a_collection_is_deleted_as_far_as_a_list_would_go(api: Api, three: str) -> None:
    deleted = await api.request("DELETE", f"{three}?{LABELLED}&limit=2")
    assert deleted.names == ["a", "b"]
    assert deleted.ok["metadata"]["continue"]
    assert (await api.request("GET", f"{three}?{LABELLED}")).names == ["c"]
    for query, code in (("continue=x", 400), ("resourceVersion=x", 400), ("sendInitialEvents=true", 422)):
        assert (await api.request("DELETE", f"{three}?{LABELLED}&{query}")).code == code
    assert (await api.request("GET", f"{three}?{LABELLED}")).names == ["c"]


@pytest.mark.parametrize("resource", [CONFIG_MAPS, DEPLOYMENTS], ids=lambda one: one.kind)
async def test_nothing_is_deleted_in_all_namespaces_at_once(api: Api, resource: Resource) -> None:
    (await api.request("DELETE", f"{resource.path()}?{LABELLED}")).refused(405, "MethodNotAllowed")


@pytest.mark.parametrize(
    ("query", "code"),
    [("tailLines=x", 400), ("tailLines=-1", 422), ("limitBytes=0", 422), ("sinceSeconds=0", 422)],
)
async def test_of_a_log_so_much_is_asked_for(api: Api, namespace: str, query: str, code: int) -> None:
    await api.create(PODS, pod("a", schedulerName="nobody"), namespace)
    assert (await api.get(PODS, "a", namespace, "log")).code == 204  # nobody runs it
    reply = await api.request("GET", f"{PODS.path(namespace, 'a', 'log')}?{query}")
    assert reply.code == code
    if code == 422:
        assert reply.refused(422, "Invalid")["kind"] == "PodLogOptions"
        assert reply.causes == [("FieldValueInvalid", query.split("=")[0])]


async def test_head_is_not_for_objects(api: Api, three: str) -> None:
    assert (await api.request("HEAD", three)).code == 405
    assert (await api.request("HEAD", f"{three}/a")).code == 405
