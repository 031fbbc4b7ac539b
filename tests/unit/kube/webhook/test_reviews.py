"""What the webhook answers, whatever it is asked."""

import asyncio
import base64
from collections.abc import AsyncIterator, Sequence
from typing import Any

import aiohttp
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest

from herder.api.problems import Problem, invalid
from herder.api.registry import KINDS
from herder.kube.webhook import deciding
from herder.kube.webhook.deciding import mutate
from herder.kube.webhook.metrics import Metrics
from herder.kube.webhook.patches import difference
from herder.kube.webhook.reviews import Answer, BadReview, Question, read_review, write_answer
from herder.kube.webhook.rules import Rule
from herder.kube.webhook.server import BODY_LIMIT, ReviewServer
from herder.pki.authority import Authority
from herder.server.patching import apply_json_patch

Json = dict[str, Any]
# Not -0.0, which equals 0.0 in Python and in JSON.
FLOATS = st.floats(allow_nan=False, allow_infinity=False).map(lambda number: number + 0.0)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | FLOATS | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
FIELDS = st.sampled_from(
    ["spec", "metadata", "name", "domain", "cpu", "memory", "guest", "devices", "disks", "interfaces", "networks", "volumes"]
)
NONSENSE = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(FIELDS | st.text(), inner, max_size=4), max_leaves=20
)


def _question(document: Any, old: Any = None, operation: str = "CREATE", **more: Any) -> Json:
    info = KINDS[0]
    group, _, version = str(document.get("apiVersion", "")).partition("/") if isinstance(document, dict) else (info.group, "", "")
    request = {
        "uid": "u-1",
        "kind": {"group": group, "version": version, "kind": "VirtualMachine"},
        "resource": {"group": info.group, "version": info.version, "resource": info.plural},
        "operation": operation,
        "name": "a",
        "namespace": "default",
        "object": document,
        "oldObject": old,
        "userInfo": {"username": "somebody"},
        "options": None,
        **more,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def validate(question: Question, rules: Sequence[Rule] = ()) -> Answer:
    return asyncio.run(deciding.validate(question, rules))


def _read(review: Json) -> Question:
    return read_review(msgspec.json.encode(review))


def _machine(**domain: Any) -> Json:
    spec: Json = {"running": False, "template": {"spec": {"domain": domain}}}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "a"}, "spec": spec}


def _instance(**spec: Any) -> Json:
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": "a"}, "spec": spec}


BAD_MACHINE = _machine(memory={"guest": "2Gi"}, resources={"limits": {"memory": "1Gi"}})


def test_a_broken_rule_is_a_status_with_the_cause_and_the_uid_of_the_question() -> None:
    answer: Json = msgspec.json.decode(write_answer("u-1", validate(_read(_question(BAD_MACHINE)))))
    response = answer["response"]
    assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert (response["uid"], response["allowed"]) == ("u-1", False)
    status = response["status"]
    assert (status["code"], status["reason"], status["details"]["kind"]) == (422, "Invalid", "VirtualMachine")
    why = 'spec.template.spec.domain.memory.guest: Invalid value: "2Gi": must be at most the memory limit, 1Gi'
    assert status["message"] == f'VirtualMachine.kubevirt.io "a" is invalid: {why}'
    assert [cause["field"] for cause in status["details"]["causes"]] == ["spec.template.spec.domain.memory.guest"]


@pytest.mark.parametrize("more", [{"subResource": "status"}, {"subResource": "scale"}])
def test_what_is_reported_of_an_object_is_never_held_up(more: Json) -> None:
    question = _read(_question(BAD_MACHINE, BAD_MACHINE, "UPDATE", **more))
    assert validate(question).refusal is None
    assert not mutate(question).patch


def test_deleting_is_allowed_whatever_the_object_is() -> None:
    question = _read(_question(None, BAD_MACHINE, "DELETE"))
    assert validate(question).refusal is None
    assert not mutate(question).patch


def test_an_object_that_a_newer_rule_refuses_can_be_changed_but_not_made_wrong_in_another_way() -> None:
    labelled = {**BAD_MACHINE, "metadata": {"name": "a", "labels": {"x": "y"}}}
    assert validate(_read(_question(labelled, BAD_MACHINE, "UPDATE"))).refusal is None
    started = {**BAD_MACHINE, "spec": {**BAD_MACHINE["spec"], "running": True}}
    assert validate(_read(_question(started, BAD_MACHINE, "UPDATE"))).refusal is None
    worse = _machine(memory={"guest": "4Gi"}, resources={"limits": {"memory": "1Gi"}})
    assert validate(_read(_question(worse, BAD_MACHINE, "UPDATE"))).refusal is not None


def test_an_annotation_that_a_rule_reads_is_judged_unless_the_object_ends() -> None:
    job: Json = {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1",
        "kind": "PodMigrationJob",
        "metadata": {"name": "a"},
        "spec": {},
    }
    noted: Json = {**job, "metadata": {"name": "a", "annotations": {"herder.dev/migration-priority": "high"}}}
    assert validate(_read(_question(noted, job, "UPDATE"))).refusal is not None
    ending = {**noted, "metadata": {**noted["metadata"], "deletionTimestamp": "2030-01-01T00:00:00Z"}}
    assert validate(_read(_question(ending, job, "UPDATE"))).refusal is None


def test_a_rule_that_looks_around_is_asked_last_and_also_of_a_deletion() -> None:
    asked: list[str] = []

    async def never(question: Question) -> list[Problem]:
        asked.append(question.operation)
        return [invalid("spec", 1, "there is another one")]

    async def not_reached(question: Question) -> list[Problem]:
        raise AssertionError(question.uid)

    assert "there is another one" in str(validate(_read(_question(_machine())), [never, not_reached]).refusal)
    assert validate(_read(_question(None, _machine(), "DELETE")), [never]).refusal is not None
    assert "there is another one" not in str(validate(_read(_question(BAD_MACHINE)), [not_reached]).refusal)
    assert asked == ["CREATE", "DELETE"]


def test_defaults_come_as_a_patch_in_base64_and_only_where_something_is_missing() -> None:
    document = _instance(domain={})
    response: Json = msgspec.json.decode(write_answer("u", mutate(_read(_question(document)))))["response"]
    assert (response["allowed"], response["patchType"]) == (True, "JSONPatch")
    completed = apply_json_patch(document, msgspec.json.decode(base64.b64decode(response["patch"])))
    assert completed["spec"]["domain"]["memory"] == {"guest": "512Mi"}
    again: Json = msgspec.json.decode(write_answer("u", mutate(_read(_question(completed)))))["response"]
    assert "patch" not in again
    assert "patchType" not in again


@pytest.mark.slow
@given(NONSENSE, NONSENSE)
def test_a_patch_makes_the_one_document_of_the_other(old: Any, new: Any) -> None:
    made = apply_json_patch(msgspec.json.decode(msgspec.json.encode(old)), difference(old, new))
    assert msgspec.json.encode(made, order="deterministic") == msgspec.json.encode(new, order="deterministic")


@pytest.mark.slow
@given(st.sampled_from(KINDS), NONSENSE, NONSENSE, st.sampled_from(["CREATE", "UPDATE"]))
def test_nonsense_in_an_object_never_fails(info: Any, spec: Any, metadata: Any, operation: str) -> None:
    document = {"apiVersion": info.api_version, "kind": info.kind, "metadata": metadata, "spec": spec}
    question = _read(_question(document, document, operation))
    for answer in (validate(question), mutate(question)):
        assert msgspec.json.decode(write_answer("u", answer))["response"]["uid"] == "u"


@given(st.binary() | PLAIN.map(msgspec.json.encode))
def test_what_is_no_review_is_said_to_be_none(body: bytes) -> None:
    with pytest.raises(BadReview, match="AdmissionReview"):
        read_review(body)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"apiVersion": "admission.k8s.io/v1beta1"}, "AdmissionReview of admission.k8s.io/v1beta1; only"),
        ({"kind": "Pod"}, "Pod of admission.k8s.io/v1; only"),
        ({"request": {**_question({})["request"], "uid": ""}}, "request.uid is empty"),
        ({"request": {**_question({})["request"], "operation": "GUESS"}}, "'GUESS'"),
        ({"request": {**_question({})["request"], "object": [1]}}, r"\$.request.object"),
        ({"request": None}, r"\$.request"),
    ],
)
def test_a_review_that_cannot_be_answered_is_told_why(change: Json, said: str) -> None:
    with pytest.raises(BadReview, match=said):
        read_review(msgspec.json.encode({**_question({}), **change}))


def test_a_body_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(BadReview):
        read_review(b'{"request":' * 100_000)


# --- over HTTP -------------------------------------------------------------------------------------------------------------------


class Served:
    def __init__(self, session: aiohttp.ClientSession, url: str, registry: CollectorRegistry) -> None:
        self._session = session
        self._url = url
        self.registry = registry

    async def post(self, path: str, body: bytes, **headers: str) -> tuple[int, str]:
        async with self._session.post(self._url + path, data=body, headers=headers, ssl=False) as answer:
            return answer.status, await answer.text()

    def counted(self) -> list[str]:
        lines = generate_latest(self.registry).decode().splitlines()
        return [line for line in lines if line.startswith("herder_webhook_requests_total") and not line.endswith(" 0.0")]


async def _broken(question: Question) -> list[Problem]:
    if question.name == "broken":
        raise RuntimeError(question.uid)
    return []


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    registry = CollectorRegistry()
    server = ReviewServer([_broken], Metrics(registry))
    server.show(Authority.make().server(("127.0.0.1",)))
    port = await server.start("127.0.0.1", 0)
    async with aiohttp.ClientSession() as session:
        yield Served(session, f"https://127.0.0.1:{port}", registry)
    await server.stop()


async def test_answers_are_counted_by_what_they_say(served: Served) -> None:
    assert served.counted() == []
    for path, document in (("/validate", _machine()), ("/validate", BAD_MACHINE), ("/mutate", _instance(domain={}))):
        code, _ = await served.post(path, msgspec.json.encode(_question(document)))
        assert code == 200
    about = 'operation="CREATE",resource="virtualmachines.kubevirt.io",result='
    assert served.counted() == [
        f'herder_webhook_requests_total{{{about}"{result}"}} 1.0' for result in ("allowed", "changed", "refused")
    ]


async def test_every_outcome_is_there_from_zero(served: Served) -> None:
    text = generate_latest(served.registry).decode()
    for info in KINDS:
        for result in ("allowed", "changed", "refused", "failed"):
            assert f'{{operation="UPDATE",resource="{info.crd_name}",result="{result}"}} 0.0' in text


async def test_a_body_that_is_no_review_is_400_with_a_sentence(served: Served) -> None:
    code, said = await served.post("/validate", b"{")
    assert (code, said[:25]) == (400, "the body is no AdmissionR")
    assert served.counted() == ['herder_webhook_requests_total{operation="unknown",resource="unknown",result="unreadable"} 1.0']


async def test_a_body_that_is_too_large_is_413(served: Served) -> None:
    code, said = await served.post("/validate", b" " * (BODY_LIMIT + 1))
    assert (code, said) == (413, f"the body is larger than {BODY_LIMIT} bytes")


async def test_a_compressed_body_is_415(served: Served) -> None:
    code, said = await served.post("/validate", b"x", **{"Content-Encoding": "gzip"})
    assert (code, said) == (415, "compressed bodies are not read; send it as it is")


async def test_a_bug_is_500_with_a_sentence_and_the_next_review_is_answered(served: Served) -> None:
    code, said = await served.post("/validate", msgspec.json.encode(_question(_machine(), name="broken")))
    assert (code, said) == (500, "the webhook met a bug of its own; the log of herder controllers says more")
    code, _ = await served.post("/validate", msgspec.json.encode(_question(_machine())))
    assert code == 200
