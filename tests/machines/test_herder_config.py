"""The settings of the controllers in the ConfigMap herder-config, as a person changes them while everything runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from tests.engines.api import Api
from tests.engines.resources import CONFIG_MAPS, EVENTS
from tests.engines.waiting import eventually
from tests.machines.herd import PATIENCE

NAMESPACE, NAME = "herder-system", "herder-config"
Told = list[tuple[str, str, str]]


@pytest.fixture
async def config(api: Api) -> AsyncGenerator[str]:
    """The uid of the one that all controllers read. Pools of other tests hardly notice: it says more than is built in."""
    document = {"metadata": {"name": NAME}, "data": {"pools.yaml": "burst: 300"}}
    yield (await api.create(CONFIG_MAPS, document, NAMESPACE)).ok["metadata"]["uid"]
    await api.delete(CONFIG_MAPS, NAME, NAMESPACE)


async def until_told(api: Api, uid: str, sentence: str) -> Told:
    """All that was told, once this was."""

    async def look() -> Told:
        listed = [one for one in (await api.list(EVENTS, NAMESPACE)).items if one["involvedObject"].get("uid") == uid]
        assert all("series" not in one for one in listed), listed
        found = sorted((one["eventTime"], one["type"], one["reason"], one["message"]) for one in listed)
        assert any(message.startswith(sentence) for *_, message in found), found
        return [(kind, reason, message) for _, kind, reason, message in found]

    return await eventually(look, PATIENCE)


async def test_a_bad_setting_is_told_once_on_the_config_map_and_a_good_one_is_in_use_at_once(api: Api, config: str) -> None:
    await until_told(api, config, "pools.yaml: in use: burst: 300")
    (await api.patch(CONFIG_MAPS, NAME, {"data": {"pools.yaml": "brust: 400"}}, NAMESPACE)).ok  # noqa: B018
    await until_told(api, config, 'pools.yaml: unknown key "brust"')
    (await api.patch(CONFIG_MAPS, NAME, {"metadata": {"labels": {"changed": "yes"}}}, NAMESPACE)).ok  # noqa: B018
    (await api.patch(CONFIG_MAPS, NAME, {"data": {"pool.yaml": ""}}, NAMESPACE)).ok  # noqa: B018
    await until_told(api, config, "unknown file")
    (await api.patch(CONFIG_MAPS, NAME, {"data": {"pools.yaml": "burst: 400", "pool.yaml": None}}, NAMESPACE)).ok  # noqa: B018
    refused = "ConfigurationRefused"
    assert await until_told(api, config, "pools.yaml: in use: burst: 400") == [
        ("Normal", "ConfigurationInUse", "pools.yaml: in use: burst: 300"),
        ("Warning", refused, 'pools.yaml: unknown key "brust": did you mean burst?; still in use: burst: 300'),
        ("Warning", refused, 'unknown file "pool.yaml", did you mean pools.yaml?; known are pools.yaml, jobs.yaml'),
        ("Normal", "ConfigurationInUse", "pools.yaml: in use: burst: 400"),
    ]
