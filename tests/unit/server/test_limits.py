"""A server that has too much to do says so, and stays able to say how it is."""

from __future__ import annotations

from pathlib import Path

from herder.server.request import ANONYMOUS
from tests.unit.server.inside import config_map, engine_inside

MAPS = "/api/v1/namespaces/default/configmaps"


async def test_too_many_requests_at_once_are_told_to_come_back(tmp_path: Path) -> None:
    async with engine_inside(tmp_path) as inside:
        inside.router.most_in_flight = 0
        code, body = await inside.ask("POST", MAPS, config_map("a"))
        assert (code, body["reason"], body["details"]) == (429, "TooManyRequests", {"retryAfterSeconds": 1})
        assert (await inside.ask("GET", "/version"))[0] == 200
        inside.router.most_in_flight = 1
        assert (await inside.ask("POST", MAPS, config_map("a")))[0] == 201


async def test_without_credentials_only_health_and_version_are_told(tmp_path: Path) -> None:
    async with engine_inside(tmp_path) as inside:
        assert (await inside.ask("GET", "/version", user=ANONYMOUS))[0] == 200
        for path in ("/api", "/apis", "/metrics", "/openapi/v3", "/", "/apis/kubevirt.io/v1/virtualmachines", MAPS, f"{MAPS}/a"):
            code, body = await inside.ask("GET", path, user=ANONYMOUS)
            assert (code, body["reason"]) == (403, "Forbidden"), path
        code, body = await inside.ask("POST", MAPS, config_map("a"), user=ANONYMOUS)
        assert code == 403
        assert 'User "system:anonymous" cannot create resource "configmaps"' in body["message"]
