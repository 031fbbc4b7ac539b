"""What resourceVersion means to a get and to a list."""

import asyncio
from typing import Any

import pytest

from tests.behaviour.manifests import config_map
from tests.engines.api import Api
from tests.engines.resources import SECRETS


async def write_twice(api: Api, namespace: str) -> tuple[str, str]:
    """The versions after the first and after the second object."""
    await api.create(SECRETS, config_map("a"), namespace)
    before = (await api.list(SECRETS, namespace)).ok["metadata"]["resourceVersion"]
    after = (await api.create(SECRETS, config_map("b"), namespace)).ok["metadata"]["resourceVersion"]
    return before, after


async def test_a_list_has_the_version_of_the_whole(api: Api, namespace: str) -> None:
    _, after = await write_twice(api, namespace)
    version = (await api.list(SECRETS, namespace)).ok["metadata"]["resourceVersion"]
    assert int(version) >= int(after)


async def test_without_a_version_a_read_sees_the_write_before_it(api: Api, namespace: str) -> None:
    for number in range(5):
        await api.create(SECRETS, config_map(f"s{number}"), namespace)
        assert len((await api.list(SECRETS, namespace)).items) == number + 1
        assert (await api.get(SECRETS, f"s{number}", namespace)).code == 200


async def test_an_exact_version_is_the_past(api: Api, namespace: str) -> None:
    before, after = await write_twice(api, namespace)
    past = await api.list(SECRETS, namespace, resourceVersion=before, resourceVersionMatch="Exact")
    assert past.names == ["a"]
    assert past.body["metadata"]["resourceVersion"] == before
    now = await api.list(SECRETS, namespace, resourceVersion=after, resourceVersionMatch="Exact")
    assert now.names == ["a", "b"]


async def test_not_older_than_is_at_least_that_new(api: Api, namespace: str) -> None:
    _, after = await write_twice(api, namespace)
    for match in ({"resourceVersionMatch": "NotOlderThan"}, {}):
        answer = await api.list(SECRETS, namespace, resourceVersion=after, **match)
        assert answer.names == ["a", "b"]
        assert int(answer.body["metadata"]["resourceVersion"]) >= int(after)
    assert (await api.get(SECRETS, "b", namespace, resourceVersion=after)).ok["metadata"]["resourceVersion"] == after


async def test_version_zero_is_anything_the_server_has(api: Api, namespace: str) -> None:
    await write_twice(api, namespace)
    answer = await api.list(SECRETS, namespace, resourceVersion="0", resourceVersionMatch="NotOlderThan")
    assert set(answer.names) <= {"a", "b"}
    assert (await api.get(SECRETS, "a", namespace, resourceVersion="0")).code in (200, 404)


@pytest.mark.slow
async def test_a_version_from_the_future_is_a_timeout_with_a_cause(api: Api, namespace: str) -> None:
    _, after = await write_twice(api, namespace)
    future = str(int(after) + 1_000_000)
    replies = await asyncio.gather(  # at once, for each waits some seconds to see whether the future comes
        api.get(SECRETS, "a", namespace, resourceVersion=future),
        api.list(SECRETS, namespace, resourceVersion=future),
        api.list(SECRETS, namespace, resourceVersion=future, resourceVersionMatch="Exact"),
        api.list(SECRETS, namespace, resourceVersion=future, resourceVersionMatch="NotOlderThan", limit=1),
    )
    for reply in replies:
        details = reply.refused(504, "Timeout")
        assert details["causes"] == [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
        assert details["retryAfterSeconds"] == 1
        assert reply.headers["Retry-After"] == "1"
        assert reply.message.startswith(f"Timeout: Too large resource version: {future}, current: ")


@pytest.mark.parametrize("version", ["x", "-1", "1.5"])
async def test_a_version_that_is_no_number_is_refused(api: Api, namespace: str, version: str) -> None:
    (await api.list(SECRETS, namespace, resourceVersion=version)).refused(400, "BadRequest")


FORBIDDEN, UNSUPPORTED = "FieldValueForbidden", "FieldValueNotSupported"


@pytest.mark.parametrize(
    ("params", "causes"),
    [
        ({"resourceVersionMatch": "NotOlderThan"}, [(FORBIDDEN, "resourceVersionMatch")]),
        ({"resourceVersionMatch": "Exact"}, [(FORBIDDEN, "resourceVersionMatch")]),
        ({"resourceVersion": "0", "resourceVersionMatch": "Exact"}, [(FORBIDDEN, "resourceVersionMatch")]),
        ({"resourceVersion": "1", "resourceVersionMatch": "Roughly"}, [(UNSUPPORTED, "resourceVersionMatch")]),
        (
            {"sendInitialEvents": "true", "resourceVersion": "1", "resourceVersionMatch": "NotOlderThan"},
            [(FORBIDDEN, "sendInitialEvents")],
        ),
        ({"watch": "true", "sendInitialEvents": "true"}, [(FORBIDDEN, "resourceVersionMatch")]),
        (
            {"watch": "true", "resourceVersion": "1", "resourceVersionMatch": "Exact"},
            [(FORBIDDEN, "resourceVersionMatch"), (UNSUPPORTED, "resourceVersionMatch")],
        ),
    ],
    ids=["match alone", "exact alone", "exact zero", "unknown match", "list with initial events", "no match", "watch exact"],
)
async def test_options_that_do_not_go_together_are_invalid(
    api: Api, namespace: str, params: dict[str, Any], causes: list[tuple[str, str]]
) -> None:
    reply = await api.list(SECRETS, namespace, **params)
    details = reply.refused(422, "Invalid")
    assert (details["group"], details["kind"]) == ("meta.k8s.io", "ListOptions")
    assert reply.causes == causes
