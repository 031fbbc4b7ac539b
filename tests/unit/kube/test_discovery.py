"""What an API server serves, asked for kind by kind: whoever names a kind may have made it up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec
import pytest

from herder.kube.client import Client
from herder.kube.discovery import AGAIN, BELIEVED, MISSED, Discovery
from herder.kube.errors import ServerFailed
from herder.kube.transport import Call, Reply
from tests.unit.kube.virtual import in_virtual_time


def group(name: str, *versions: str) -> dict[str, Any]:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def resources(*entries: tuple[str, str]) -> dict[str, Any]:
    return {"resources": [{"name": name, "kind": kind, "namespaced": True} for name, kind in entries]}


CLONES = resources(("clonesets", "CloneSet"), ("clonesets/scale", "Scale"), ("clonesets/status", "CloneSet"), ("others", "Other"))


class Server:
    """A transport that answers with these documents, each after a second, and with 404 to all else. None: it is away."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {
            "/apis": {"groups": [group("apps.kruise.io", "v1beta1", "v1alpha1"), group("metrics.k8s.io", "v1")]},
            "/apis/apps.kruise.io/v1alpha1": CLONES,
            "/apis/apps.kruise.io/v1beta1": CLONES,
            "/apis/metrics.k8s.io/v1": None,
            "/api/v1": resources(("replicationcontrollers", "ReplicationController"), ("replicationcontrollers/scale", "Scale")),
        }
        self.asked: list[str] = []

    async def send(self, call: Call) -> Reply:
        self.asked.append(call.path)
        await asyncio.sleep(1)
        if call.path in self.answers and self.answers[call.path] is None:
            return Reply(503, b'{"reason": "ServiceUnavailable", "message": "away"}')
        known = call.path in self.answers
        return Reply(200 if known else 404, msgspec.json.encode(self.answers.get(call.path, {})))

    def stream(self, call: Call) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        raise NotImplementedError

    async def close(self) -> None:
        return


async def path_of(discovery: Discovery, group: str, version: str, kind: str) -> str:
    served = await discovery.find(group, version, kind)
    return served.resource.path("shop", "x", "scale") if served is not None and served.scalable else str(served and "no scale")


def test_a_kind_is_found_in_its_version_or_in_the_one_that_the_server_prefers() -> None:
    async def scenario() -> None:
        discovery = Discovery(Client(Server(), "test"))
        base = "/apis/apps.kruise.io"
        assert (
            await path_of(discovery, "apps.kruise.io", "v1alpha1", "CloneSet")
            == f"{base}/v1alpha1/namespaces/shop/clonesets/x/scale"
        )
        assert (
            await path_of(discovery, "apps.kruise.io", "../v1", "CloneSet") == f"{base}/v1beta1/namespaces/shop/clonesets/x/scale"
        )
        assert await path_of(discovery, "apps.kruise.io", "v1beta1", "Other") == "no scale"
        assert await path_of(discovery, "apps.kruise.io", "v1beta1", "Scale") == "None"
        core = "/api/v1/namespaces/shop/replicationcontrollers/x/scale"
        assert await path_of(discovery, "", "v1", "ReplicationController") == core

    in_virtual_time(scenario())


def test_however_many_ask_the_server_is_asked_once() -> None:
    async def scenario() -> None:
        server = Server()
        discovery = Discovery(Client(server, "test"))
        await asyncio.gather(*(discovery.find("apps.kruise.io", "v1alpha1", "CloneSet") for _ in range(10)))
        assert server.asked == ["/apis", "/apis/apps.kruise.io/v1alpha1"]
        await asyncio.sleep(BELIEVED)
        await discovery.find("apps.kruise.io", "v1alpha1", "CloneSet")
        assert len(server.asked) == 4
        # Made-up ones, of any number: one look in a while.
        for number in range(100):
            assert await discovery.find(f"g{number}/../..", "v1", "Thing") is None
        assert len(server.asked) == 4
        await asyncio.sleep(MISSED)
        server.answers["/apis"]["groups"].append(group("new.io", "v1"))
        server.answers["/apis/new.io/v1"] = resources(("things", "Thing"))
        assert await discovery.find("new.io", "v1", "Thing") is not None

    in_virtual_time(scenario())


def test_a_group_whose_server_is_away_is_not_known_and_holds_up_nobody_else() -> None:
    async def scenario() -> None:
        server = Server()
        discovery = Discovery(Client(server, "test"))
        for _ in range(3):
            with pytest.raises(ServerFailed, match="away"):
                await discovery.find("metrics.k8s.io", "v1", "Thing")
        assert server.asked == ["/apis", "/apis/metrics.k8s.io/v1"]
        assert await discovery.find("apps.kruise.io", "v1alpha1", "CloneSet") is not None
        await asyncio.sleep(AGAIN)
        server.answers["/apis/metrics.k8s.io/v1"] = resources(("things", "Thing"))
        assert await discovery.find("metrics.k8s.io", "v1", "Thing") is not None

    in_virtual_time(scenario())
