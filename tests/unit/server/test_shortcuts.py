"""What is left out to be quick is never missed: an engine that takes its shortcuts answers as one that takes none."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from herder.server.request import ENGINE, Response, User
from tests.examples import examples
from tests.unit.server.inside import Inside, engine_inside

Json = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


class Both:
    """Two engines to which the same things happen. One of them takes the long way, always."""

    def __init__(self, runner: asyncio.Runner, quick: Inside, plain: Inside) -> None:
        self._runner = runner
        self.quick = quick
        self._plain = plain
        self.numbers = count(1)

    def pass_time(self, seconds: float) -> None:
        """Or go back."""
        for engine in (self.quick, self._plain):
            engine.world.seconds += seconds

    def send(self, method: str, path: str, body: bytes, content_type: str = "application/json") -> Response:
        """What both answered."""
        quick, plain = (self._ask(engine, method, path, body, content_type) for engine in (self.quick, self._plain))
        assert quick == plain
        return quick

    def _ask(self, engine: Inside, method: str, path: str, body: bytes, content_type: str) -> Response:
        request = engine.request(method, path, body, content_type=content_type, user_agent="tests")
        answer = self._runner.run(engine.router.handle(request))
        assert isinstance(answer, Response)
        return answer


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Generator[Both]:
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        folders: list[Path] = [tmp_path_factory.mktemp(name) for name in ("quick", "plain")]
        quick, plain = [runner.run(stack.enter_async_context(engine_inside(folder))) for folder in folders]
        for group, plural, shortcut in (("", "pods", "status_alone"), ("coordination.k8s.io", "leases", "renewed")):
            strategies = [engine.running.engine.served(group, "v1", plural).strategy for engine in (quick, plain)]
            assert strategies[0] is not strategies[1]
            setattr(strategies[1], shortcut, False)
        yield Both(runner, quick, plain)
        runner.run(stack.aclose())


def container(name: str = "main", **more: Any) -> Json:
    return {"name": name, "image": "registry.example.com/app:1", **more}


CONTAINERS = st.sampled_from(
    [
        [container()],
        [container(resources={"requests": {"cpu": "0.1", "memory": "1.5Gi"}, "limits": {"cpu": 1, "memory": "2Gi"}})],
        [container(ports=[{"name": "http", "containerPort": 80}]), container("two", ports=[{"name": "http", "containerPort": 81}])],
        [container(env=[{"name": "A", "value": "<&>"}], livenessProbe={"httpGet": {"port": 80}})],
        [container(image=" untidy")],
        [container("Not A Name")],
        [container(nobody="knows this")],
        [],
    ]
)
SPECS = st.fixed_dictionaries(
    {"containers": CONTAINERS},
    optional={
        "nodeName": st.sampled_from(["node-1", ""]),
        "volumes": st.sampled_from(
            [
                [{"name": "data", "emptyDir": {}}],
                [{"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}}],
            ]
        ),
        "priorityClassName": st.sampled_from(["system-node-critical", "missing"]),
        "priority": st.sampled_from([0, 5]),
        "restartPolicy": st.sampled_from(["Never", "Sometimes", None]),
        "tolerations": st.just([{"operator": "Exists"}]),
        "terminationGracePeriodSeconds": st.sampled_from([0, -1]),
    },
)
METADATA = st.fixed_dictionaries(
    {},
    optional={
        "labels": st.sampled_from([{}, {"app": "x"}, {"app": None}, {"not a key": "x"}, {"app": 1}, None]),
        "annotations": st.just({"a": "\u00e9\u2028<"}),
        "resourceVersion": st.just("7"),
        "namespace": st.sampled_from(["default", "elsewhere"]),
        "finalizers": st.sampled_from([["example.com/x"], ["x"]]),
        "unknown": st.just(1),
        "managedFields": st.just([]),
    },
)
TOP = st.fixed_dictionaries({}, optional={"status": st.sampled_from([{"phase": "Running"}, None, "x"]), "extra": st.just({"a": 1})})
QUERIES = st.sampled_from(
    ["", "?fieldValidation=Strict", "?fieldValidation=Ignore", "?dryRun=All", "?fieldManager=me", "?dryRun=no"]
)
NAMES = st.sampled_from(["pod-{}", "pod.{}", "Pod {}", ""])
WRITING = st.sampled_from([(",", ":"), (", ", ": "), (",", " : ")])


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(spec=SPECS, top=TOP, each=st.lists(st.tuples(METADATA, NAMES, QUERIES), min_size=1, max_size=3), writing=WRITING)
def test_pods_that_are_made_alike_are_what_each_would_be_alone(
    both: Both, spec: Json, top: Json, each: list[tuple[Json, str, str]], writing: tuple[str, str]
) -> None:
    text = _text(spec, writing)
    for _ in range(2):  # until it is known, should it be one that is learned
        both.send("POST", PODS, _pod(f"first-{next(both.numbers)}", {}, {}, text))
    for metadata, name, query in each:
        both.send("POST", PODS + query, _pod(name.format(next(both.numbers)), metadata, top, text))


def _text(value: Json, writing: tuple[str, str]) -> bytes:
    """With blanks here and there, as people and programs write it."""
    comma, colon = (mark.encode() for mark in writing)
    return msgspec.json.encode(value).replace(b",", comma).replace(b'":', b'"' + colon)


def _pod(name: str, metadata: Json, top: Json, spec: bytes) -> bytes:
    named = {"name": name} if name else {"generateName": "made-"}
    whole = {"apiVersion": "v1", "kind": "Pod", "metadata": {**named, **metadata}, "spec": msgspec.Raw(spec), **top}
    return msgspec.json.encode(whole)


def test_a_spec_that_comes_again_is_taken_for_what_it_was(both: Both) -> None:
    spec = msgspec.json.encode({"containers": [container(args=["again"])]})
    pods = [both.send("POST", PODS, _pod(f"again-{number}", {}, {}, spec)) for number in range(4)]
    assert {pod.status for pod in pods} == {201}
    request = both.quick.request("POST", PODS, _pod("again-5", {}, {}, spec), content_type="application/json")
    served = both.quick.running.engine.served("", "v1", "pods")
    assert both.quick.running.engine.templates.read(request, served) is not None


@pytest.mark.parametrize("query", ["", "?fieldValidation=Strict"])
def test_what_a_known_spec_says_twice_is_still_noticed(both: Both, query: str) -> None:
    twice = b'{"containers":[{"name":"a","name":"main","image":"i"}]}'
    for _ in range(3):
        both.send("POST", PODS + "?fieldValidation=Ignore", _pod(f"twice-{next(both.numbers)}", {}, {}, twice))
    answer = both.send("POST", PODS + query, _pod(f"twice-{next(both.numbers)}", {}, {}, twice))
    assert answer.status == 400 if query else answer.warnings


STATUS = st.fixed_dictionaries(
    {},
    optional={
        "phase": st.sampled_from(["Running", "Failed", None, 5]),
        "message": st.sampled_from(["a", "b", ""]),
        "conditions": st.lists(
            st.fixed_dictionaries(
                {"type": st.sampled_from(["Ready", "Initialized"]), "status": st.sampled_from(["True", "False"])},
                optional={"lastTransitionTime": st.sampled_from(["2026-01-01T00:00:00Z", "yesterday", None])},
            ),
            max_size=3,
        ),
        "containerStatuses": st.sampled_from(
            [[], [{"name": "main", "ready": True, "restartCount": 0, "image": "", "imageID": ""}]]
        ),
        "unknown": st.just({"a": 1}),
    },
)
PATCHES = st.fixed_dictionaries(
    {},
    optional={
        "status": st.one_of(STATUS, st.sampled_from([None, "x", []])),
        "metadata": st.one_of(METADATA, st.sampled_from([{"name": "other"}, {"uid": "other"}, {"ownerReferences": []}, None])),
        "spec": st.sampled_from([{"nodeName": "other"}, {}, None]),
        "kind": st.sampled_from(["Pod", "Node"]),
        "$retainKeys": st.just(["status"]),
    },
)


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(PATCHES, st.sampled_from([MERGE, STRATEGIC]), QUERIES, st.booleans()), min_size=1, max_size=4))
def test_a_patch_of_the_status_does_what_it_would_do_to_the_whole_object(both: Both, steps: list[Any]) -> None:
    name = f"patched-{next(both.numbers)}"
    spec = msgspec.json.encode({"containers": [container(resources={"limits": {"cpu": "0.50"}})]})
    both.send("POST", PODS, _pod(name, {"labels": {"app": "x"}, "finalizers": ["example.com/x"]}, {}, spec))
    for patch, kind, query, is_status in steps:
        path = f"{PODS}/{name}" + ("/status" if is_status else "")
        both.send("PATCH", path + query, msgspec.json.encode(patch), kind)
    both.send("GET", f"{PODS}/{name}", b"")


def test_a_pod_that_is_going_ends_with_the_same_patch(both: Both) -> None:
    name = f"going-{next(both.numbers)}"
    spec = msgspec.json.encode({"containers": [container()]})
    both.send("POST", PODS, _pod(name, {"finalizers": ["example.com/x"]}, {}, spec))
    both.send("DELETE", f"{PODS}/{name}", b"")
    both.send("PATCH", f"{PODS}/{name}/status", b'{"status":{"phase":"Failed"}}', MERGE)
    both.send("PATCH", f"{PODS}/{name}", b'{"metadata":{"finalizers":null}}', MERGE)
    assert both.send("GET", f"{PODS}/{name}", b"").status == 404


LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
TIMES = st.sampled_from(
    [
        *(f"2026-01-01T00:00:0{second}.000001Z" for second in range(6)),
        *("2026-01-01T00:00:00Z", "2026-02-30T00:00:00.000000Z", "2026-01-01T00:00:60.000000Z", "2026-01-01T02:00:00.000000+01:00"),
        *("0000-01-01T00:00:00.000000Z", "0001-01-01T00:00:00.000000Z", "never", "", None, 5),
    ]
)
RENEWALS = st.fixed_dictionaries(
    {"renewTime": TIMES},
    optional={
        "holderIdentity": st.sampled_from(["me", "me", "somebody", "2026-01-01T00:00:01.000001Z", "7", None]),
        "leaseDurationSeconds": st.sampled_from([40, 40, 0, "40"]),
        "leaseTransitions": st.sampled_from([1, -1, True]),
        "acquireTime": st.sampled_from(["2026-01-01T00:00:01.000001Z", None]),
        "unknown": st.just(1),
    },
)
STEPS = st.tuples(
    RENEWALS,
    st.sampled_from(["none", "none", "version", "uid", "both", "old version", "other uid"]),
    st.sampled_from([MERGE, MERGE, STRATEGIC]),
    st.sampled_from(["?fieldManager=me", "?fieldManager=me", "", "?fieldManager=me&dryRun=All", "?fieldValidation=Strict"]),
    st.sampled_from([0, 0, 1, 10, -5]),
    WRITING,
)


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, min_size=3, max_size=8), again=st.integers(1, 3))
def test_a_renewal_like_the_last_one_does_what_it_would_do_by_itself(both: Both, steps: list[Any], again: int) -> None:
    name = f"lease-{next(both.numbers)}"
    lease = {"metadata": {"name": name, "annotations": {"a": "\0time\0"}}, "spec": {"leaseDurationSeconds": 40}}
    both.send("POST", LEASES, msgspec.json.encode(lease))
    for spec, metadata, kind, query, seconds, writing in steps:
        for number in range(again):
            both.pass_time(seconds)
            later = {"renewTime": f"2026-01-02T00:00:00.00000{number}Z"} if number else {}
            patch = {"metadata": _named(both, name, metadata), "spec": {**spec, **later}}
            both.send("PATCH", f"{LEASES}/{name}{query}", _text(patch, writing), kind)
    both.send("GET", f"{LEASES}/{name}", b"")


def _named(both: Both, name: str, which: str) -> Json:
    """What of the Lease's own metadata the patch names."""
    stored = msgspec.json.decode(both.send("GET", f"{LEASES}/{name}", b"").body)["metadata"]
    version = "1" if which == "old version" else stored["resourceVersion"]
    uid = "other" if which == "other uid" else stored["uid"]
    named = {"version": ["resourceVersion"], "old version": ["resourceVersion"], "uid": ["uid"], "other uid": ["uid"]}
    fields = ["resourceVersion", "uid"] if which == "both" else named.get(which, [])
    return {field: value for field, value in (("resourceVersion", version), ("uid", uid)) if field in fields}


def renewal(second: int, **metadata: str) -> bytes:
    spec = {"holderIdentity": "me", "leaseDurationSeconds": 40, "renewTime": f"2026-01-01T00:00:{second:02d}.000000Z"}
    return msgspec.json.encode({**({"metadata": metadata} if metadata else {}), "spec": spec})


def known_lease(both: Both) -> str:
    """One that was renewed twice, so that the next renewal is known."""
    name = f"known-{next(both.numbers)}"
    both.send("POST", LEASES, msgspec.json.encode({"metadata": {"name": name}, "spec": {"holderIdentity": "me"}}))
    for second in range(2):
        assert both.send("PATCH", f"{LEASES}/{name}", renewal(second), MERGE).status == 200
    return name


def is_known(both: Both, name: str, body: bytes, user: User = ENGINE) -> bool:
    request = both.quick.request("PATCH", f"{LEASES}/{name}", body, user, content_type=MERGE, user_agent="tests")
    current = both.quick.store.latest("leases.coordination.k8s.io", f"default/{name}")
    return both.quick.running.engine.renewals.find(request, current, "2026-12-01T00:00:00Z") is not None


def test_a_renewal_that_comes_again_is_taken_for_what_it_was(both: Both) -> None:
    name = known_lease(both)
    assert is_known(both, name, renewal(2))
    for second in range(2, 5):
        answer = both.send("PATCH", f"{LEASES}/{name}", renewal(second), MERGE)
        assert msgspec.json.decode(answer.body)["spec"]["renewTime"].startswith(f"2026-01-01T00:00:0{second}")


def test_a_renewal_of_a_named_state_is_refused_when_another_came_before_it(both: Both) -> None:
    name = known_lease(both)
    seen = msgspec.json.decode(both.send("GET", f"{LEASES}/{name}", b"").body)["metadata"]["resourceVersion"]
    first = both.send("PATCH", f"{LEASES}/{name}", renewal(2, resourceVersion=seen), MERGE)
    version = msgspec.json.decode(first.body)["metadata"]["resourceVersion"]
    assert is_known(both, name, renewal(3, resourceVersion=version))
    assert both.send("PATCH", f"{LEASES}/{name}", renewal(3, resourceVersion=version), MERGE).status == 200
    assert both.send("PATCH", f"{LEASES}/{name}", renewal(4, resourceVersion=version), MERGE).status == 409


@pytest.mark.parametrize(
    ("method", "body"),
    [
        ("PATCH", b'{"metadata":{"labels":{"a":"b"}}}'),
        ("PATCH", b'{"spec":{"holderIdentity":"other"}}'),
        ("PATCH", b'{"metadata":{"managedFields":[]}}'),
        ("DELETE", b""),
    ],
)
def test_after_anything_else_a_renewal_is_looked_at_anew(both: Both, method: str, body: bytes) -> None:
    name = known_lease(both)
    both.send(method, f"{LEASES}/{name}", body, MERGE if body else "application/json")
    assert not is_known(both, name, renewal(2))
    for second in range(2, 4):
        both.send("PATCH", f"{LEASES}/{name}", renewal(second), MERGE)


def test_what_one_user_may_renew_says_nothing_about_another(both: Both) -> None:
    name = known_lease(both)
    assert is_known(both, name, renewal(2))
    assert not is_known(both, name, renewal(2), User("system:node:other", ("system:nodes",)))


def test_a_clock_that_goes_back_leaves_the_order_of_managers_right(both: Both) -> None:
    name = known_lease(both)
    both.pass_time(5)
    both.send("PATCH", f"{LEASES}/{name}?fieldManager=other", b'{"metadata":{"labels":{"a":"b"}}}', MERGE)
    both.pass_time(5)
    for second in range(2, 4):
        both.send("PATCH", f"{LEASES}/{name}", renewal(second), MERGE)
    both.pass_time(-8)
    answer = both.send("PATCH", f"{LEASES}/{name}", renewal(4), MERGE)
    managers = [entry["manager"] for entry in msgspec.json.decode(answer.body)["metadata"]["managedFields"]]
    assert managers == ["tests", "other"]
    both.pass_time(8)
