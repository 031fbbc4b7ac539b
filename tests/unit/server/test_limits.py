"""A server that has too much to do says so, and stays able to say how it is."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import msgspec
import pytest

from herder.api.registry import MACHINE
from herder.kube.transport import Call
from herder.kube.unix import SocketTransport
from herder.server.http import HttpServer
from herder.server.request import ANONYMOUS
from tests.unit.server.inside import config_map, engine_inside

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.mark.slow
async def test_too_many_requests_at_once_are_told_to_come_back(tmp_path: Path) -> None:
    async with engine_inside(tmp_path) as inside:
        inside.router.most_in_flight = 0
        code, body = await inside.ask("POST", MAPS, config_map("a"))
        assert (code, body["reason"], body["details"]) == (429, "TooManyRequests", {"retryAfterSeconds": 1})
        assert (await inside.ask("GET", "/version"))[0] == 200
        inside.router.most_in_flight = 1
        assert (await inside.ask("POST", MAPS, config_map("a")))[0] == 201


@pytest.mark.slow
async def test_our_own_processes_are_heard_whatever_people_do(tmp_path: Path) -> None:
    async with engine_inside(tmp_path) as inside:
        inside.router.most_in_flight = 0
        server = HttpServer(inside.router)
        await server.start(None, None, tmp_path / "sock")
        transport = SocketTransport(tmp_path / "sock", "test")
        try:
            body = msgspec.json.encode(config_map("a"))
            # Read by hand, and by the other server.
            assert (await transport.send(Call("POST", MAPS, body=body))).status == 201
            assert (await transport.send(Call("GET", MAPS))).status == 200
            async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(tmp_path / "sock"))) as session:
                async with session.get(f"http://x{MAPS}") as ours:
                    assert ours.status == 200
                # Who shows a token there is somebody else.
                async with session.get(f"http://x{MAPS}", headers={"Authorization": "Basic x"}) as theirs:
                    assert theirs.status == 429
        finally:
            await transport.close()
            await server.stop()


@pytest.mark.slow
async def test_who_waits_for_a_node_takes_no_place_of_those_who_do_not(tmp_path: Path) -> None:
    async with engine_inside(tmp_path) as inside:
        inside.router.most_in_flight = 0
        for path in ("/api/v1/namespaces/default/pods/a/log", "/api/v1/namespaces/default/pods/a/attach"):
            assert (await inside.ask("GET", path))[0] == 404
        # A name is not enough.
        for path in ("/api/v1/namespaces/default/pods/log", "/api/v1/namespaces/default/configmaps/a/log"):
            assert (await inside.ask("GET", path))[0] == 429


@pytest.mark.slow
async def test_without_credentials_only_health_and_version_are_told(tmp_path: Path) -> None:
    async with engine_inside(tmp_path, kinds=(MACHINE,)) as inside:
        assert (await inside.ask("GET", "/version", user=ANONYMOUS))[0] == 200
        for path in ("/api", "/apis", "/metrics", "/openapi/v3", "/", "/apis/kubevirt.io/v1/virtualmachines", MAPS, f"{MAPS}/a"):
            code, body = await inside.ask("GET", path, user=ANONYMOUS)
            assert (code, body["reason"]) == (403, "Forbidden"), path
        code, body = await inside.ask("POST", MAPS, config_map("a"), user=ANONYMOUS)
        assert code == 403
        assert 'User "system:anonymous" cannot create resource "configmaps"' in body["message"]
