"""A long list in pages is one list, whatever is written in between."""

from typing import Any

import pytest

from tests.behaviour.manifests import config_map
from tests.engines.api import Api, Json
from tests.engines.resources import SECRETS


async def fill(api: Api, namespace: str, count: int = 5) -> list[str]:
    names = [f"s{number}" for number in range(count)]
    for name in names:
        await api.create(SECRETS, config_map(name, labels={"parity": "even" if int(name[1:]) % 2 == 0 else "odd"}), namespace)
    return names


async def page(api: Api, namespace: str, token: str = "", **params: Any) -> Json:
    return (await api.list(SECRETS, namespace, **{"limit": 2, **params}, **({"continue": token} if token else {}))).ok


def names_of(answer: Json) -> list[str]:
    return [item["metadata"]["name"] for item in answer["items"]]


async def test_pages_follow_each_other_to_the_end(api: Api, namespace: str) -> None:
    names = await fill(api, namespace)
    first = await page(api, namespace)
    second = await page(api, namespace, first["metadata"]["continue"])
    third = await page(api, namespace, second["metadata"]["continue"])
    assert names_of(first) + names_of(second) + names_of(third) == names
    assert [one["metadata"].get("remainingItemCount") for one in (first, second, third)] == [3, 1, None]
    assert "continue" not in third["metadata"]


async def test_all_pages_show_the_moment_of_the_first(api: Api, namespace: str) -> None:
    names = await fill(api, namespace)
    first = await page(api, namespace)
    await api.delete(SECRETS, "s2", namespace)
    await api.patch(SECRETS, "s3", {"metadata": {"labels": {"new": "yes"}}}, namespace)
    await api.create(SECRETS, config_map("s20"), namespace)
    second = await page(api, namespace, first["metadata"]["continue"], limit=10)
    assert names_of(first) + names_of(second) == names
    assert "new" not in second["items"][1]["metadata"]["labels"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_a_page_that_holds_everything_has_no_next(api: Api, namespace: str) -> None:
    await fill(api, namespace, 2)
    answer = await page(api, namespace)
    assert "continue" not in answer["metadata"]
    assert "remainingItemCount" not in answer["metadata"]


async def test_with_a_selector_the_rest_is_not_counted(api: Api, namespace: str) -> None:
    await fill(api, namespace)
    first = await page(api, namespace, labelSelector="parity=even")
    assert names_of(first) == ["s0", "s2"]
    assert "remainingItemCount" not in first["metadata"]
    second = await page(api, namespace, first["metadata"]["continue"], labelSelector="parity=even")
    assert names_of(second) == ["s4"]


async def test_the_size_may_change_from_page_to_page(api: Api, namespace: str) -> None:
    names = await fill(api, namespace)
    first = await page(api, namespace, limit=1)
    assert first["metadata"]["remainingItemCount"] == 4
    rest = await page(api, namespace, first["metadata"]["continue"], limit=0)
    assert names_of(first) + names_of(rest) == names


async def test_the_next_page_of_an_exact_version_is_of_that_version(api: Api, namespace: str) -> None:
    await fill(api, namespace)
    version = (await page(api, namespace))["metadata"]["resourceVersion"]
    await api.delete(SECRETS, "s4", namespace)
    first = await page(api, namespace, resourceVersion=version, resourceVersionMatch="Exact", limit=4)
    second = await page(api, namespace, first["metadata"]["continue"])
    assert names_of(second) == ["s4"]


async def test_a_token_that_is_none_is_a_bad_request(api: Api, namespace: str) -> None:
    reply = await api.list(SECRETS, namespace, limit=2, **{"continue": "garbage"})
    reply.refused(400, "BadRequest")
    assert "continue" in reply.message


async def test_a_token_and_a_version_exclude_each_other(api: Api, namespace: str) -> None:
    await fill(api, namespace)
    first = (await page(api, namespace))["metadata"]
    reply = await api.list(SECRETS, namespace, **{"continue": first["continue"]}, resourceVersion=first["resourceVersion"])
    reply.refused(400, "BadRequest")
    assert reply.message == "specifying resource version is not allowed when using continue"


@pytest.mark.parametrize("limit", ["many", "1.5"])
async def test_a_limit_that_is_no_number_is_a_bad_request(api: Api, namespace: str, limit: str) -> None:
    (await api.list(SECRETS, namespace, limit=limit)).refused(400, "BadRequest")


async def test_items_of_a_list_come_in_the_order_of_their_names(api: Api, namespace: str) -> None:
    for name in ("b", "a-b", "a", "a.b", "c"):
        await api.create(SECRETS, config_map(name), namespace)
    answer = (await api.list(SECRETS, namespace)).ok
    assert names_of(answer) == ["a", "a-b", "a.b", "b", "c"]
    assert (answer["kind"], answer["apiVersion"]) == ("SecretList", "v1")
    assert all("kind" not in item and "apiVersion" not in item for item in answer["items"])
