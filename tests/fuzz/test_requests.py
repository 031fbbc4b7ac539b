"""Nonsense, many times over: every answer is one of Kubernetes' own, none is a bug of ours, and the next request is answered."""

from __future__ import annotations

import asyncio
import string
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from herder.server.request import ENGINE
from tests.unit.server.inside import Inside, config_map, engine_inside

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
MACHINES = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines"
# kube-apiserver, too, answers 500 without a reason to a resourceVersion on create.
DOCUMENTED = ("resourceVersion should not be set on objects to be created",)

fuzz = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**64) | st.floats() | st.text(max_size=20)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4), max_leaves=12
)
words = st.sampled_from(
    ["a", "x", "metadata", "spec", "", "%2F", "..", "%00", "é", "status", "scale", "default", "v1", "pods", "~", "*"]
)


class Target:
    """One engine for all examples; its loop goes on between them."""

    def __init__(self, inside: Inside, loop: asyncio.AbstractEventLoop) -> None:
        self._inside = inside
        self._loop = loop

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        code, answer = self._loop.run_until_complete(self._ask(method, path, body, headers))
        message = answer.get("message", "") if isinstance(answer, dict) else ""
        assert code < 500 or message in DOCUMENTED or code == 504, (code, method, path, body, answer)
        return code, answer

    async def _ask(self, method: str, path: str, body: Any, headers: dict[str, str]) -> tuple[int, Any]:
        async with asyncio.timeout(20):
            return await self._inside.ask(method, path, body, ENGINE, **headers)


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    loop = asyncio.new_event_loop()
    with tempfile.TemporaryDirectory() as folder:
        opened = engine_inside(Path(folder))
        inside = loop.run_until_complete(opened.__aenter__())
        one = Target(inside, loop)
        assert one.ask("POST", MAPS, config_map("a", k="v"))[0] == 201
        yield one
        assert one.ask("GET", f"{MAPS}/a")[0] == 200, "still there, and still answering"
        loop.run_until_complete(opened.__aexit__(None, None, None))
    loop.close()


@fuzz
@given(
    body=st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace")),
    kind=st.sampled_from(["application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "text/plain", ""]),
)
def test_bodies_that_are_nothing(target: Target, body: bytes, kind: str) -> None:
    assert target.ask("POST", MAPS, body, content_type=kind)[0] in (400, 415, 422)


@fuzz
@given(
    field=st.sampled_from(["metadata", "spec", "data", "kind", "status", "x"]),
    value=values,
    path=st.sampled_from([MAPS, PODS, MACHINES]),
)
def test_objects_with_anything_anywhere(target: Target, field: str, value: Any, path: str) -> None:
    kind = {MAPS: "ConfigMap", PODS: "Pod", MACHINES: "VirtualMachine"}[path]
    version = "kubevirt.io/v1" if path == MACHINES else "v1"
    body = {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, field: value}
    target.ask("POST", f"{path}?dryRun=All", _json(body), content_type="application/json")


@fuzz
@given(depth=st.integers(1, 3000), opening=st.sampled_from(["[", '{"a":']), path=st.sampled_from([MAPS, MACHINES]))
def test_bodies_of_any_depth(target: Target, depth: int, opening: str, path: str) -> None:
    body = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":' + opening * depth
    target.ask("POST", path, body.encode(), content_type="application/json")
    closing = "]" if opening == "[" else "}"
    target.ask("PATCH", f"{MAPS}/a", ('{"data":' + opening * depth + "1" + closing * depth + "}").encode(), content_type=MERGE)


MERGE = "application/merge-patch+json"
PATCHES = (MERGE, "application/json-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml")


@fuzz
@given(patch=values, kind=st.sampled_from(PATCHES), place=st.sampled_from([f"{MAPS}/a", f"{MAPS}/none", f"{PODS}/none/status"]))
def test_patches_of_any_kind(target: Target, patch: Any, kind: str, place: str) -> None:
    target.ask("PATCH", f"{place}?dryRun=All&fieldManager=me", _json(patch), content_type=kind)


pointers = st.lists(words, max_size=4).map(lambda parts: "".join(f"/{part}" for part in parts))
operations = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "x"]) | scalars, "path": pointers | scalars},
    optional={"from": pointers | scalars, "value": values},
)


@fuzz
@given(patch=st.lists(operations, max_size=5))
def test_json_patches_of_any_operations(target: Target, patch: list[Any]) -> None:
    target.ask("PATCH", f"{MAPS}/a?dryRun=All", _json(patch), content_type="application/json-patch+json")


@fuzz
@given(
    name=st.sampled_from(
        [
            "labelSelector",
            "fieldSelector",
            "continue",
            "limit",
            "resourceVersion",
            "resourceVersionMatch",
            "timeoutSeconds",
            "dryRun",
        ]
    ),
    value=st.text(string.printable, max_size=30) | st.text(max_size=10),
)
def test_questions_of_any_kind(target: Target, name: str, value: str) -> None:
    target.ask("GET", f"{MAPS}?{name}={quote(value)}")


@fuzz
@given(method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "X"]), parts=st.lists(words, max_size=8))
def test_addresses_of_any_kind(target: Target, method: str, parts: list[str]) -> None:
    for root in ("/api/v1", "/apis", ""):
        path = root + "".join(f"/{part}" for part in parts)
        if method == "DELETE" and path.rstrip("/").endswith(("configmaps", "namespaces")):
            continue
        target.ask(method, f"{path or '/'}?dryRun=All")


@fuzz
@given(header=st.sampled_from(["accept", "if_none_match", "impersonate_user", "user_agent"]), value=st.text(max_size=40))
def test_headers_of_any_kind(target: Target, header: str, value: str) -> None:
    target.ask("GET", MAPS, None, **{header: value})


def _json(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (msgspec.MsgspecError, OverflowError, ValueError, UnicodeEncodeError):
        return b"{}"
