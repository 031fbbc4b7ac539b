"""Whatever is sent to what is no plain object (orders, questions, parts of objects), and in protobuf: an answer, and soon."""

from hypothesis import given
from hypothesis import strategies as st

from tests.engines.protobuf import MEDIA_TYPE, chunk, encode, envelope
from tests.fuzz.conftest import Victim
from tests.fuzz.strategies import RAW, Json, encoded, spoiled
from tests.fuzz.test_bodies import RIGHT

NAMESPACE = "/api/v1/namespaces/default"
DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments"
ABOUT = {"namespace": "default", "verb": "get", "group": "", "resource": "pods", "subresource": "x", "name": "a"}
EXTRA = {"user": "u", "groups": ["g"], "uid": "1", "extra": {"k": ["v"]}}


def order(version: str, kind: str, **more: object) -> Json:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, **more}


def question(kind: str, **spec: object) -> Json:
    return {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}


REVIEWS = "/apis/authorization.k8s.io/v1"
ORDERS: dict[str, Json] = {
    f"{NAMESPACE}/pods/a/binding": order("v1", "Binding", target={"kind": "Node", "name": "n"}),
    f"{NAMESPACE}/bindings": order("v1", "Binding", target={"kind": "Node", "name": "n"}),
    f"{NAMESPACE}/pods/a/eviction": order(
        "policy/v1", "Eviction", deleteOptions={"gracePeriodSeconds": 5, "preconditions": {"uid": "1"}, "dryRun": ["All"]}
    ),
    f"{NAMESPACE}/serviceaccounts/default/token": order(
        "authentication.k8s.io/v1",
        "TokenRequest",
        spec={"audiences": ["a"], "expirationSeconds": 3600, "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "a"}},
    ),
    f"{REVIEWS}/selfsubjectaccessreviews": question("SelfSubjectAccessReview", resourceAttributes=ABOUT),
    f"{REVIEWS}/subjectaccessreviews": question(
        "SubjectAccessReview", nonResourceAttributes={"path": "/x", "verb": "get"}, **EXTRA
    ),
    f"{REVIEWS}/namespaces/default/localsubjectaccessreviews": question(
        "LocalSubjectAccessReview", resourceAttributes=ABOUT, **EXTRA
    ),
    f"{REVIEWS}/selfsubjectrulesreviews": question("SelfSubjectRulesReview", namespace="default"),
    "/apis/authentication.k8s.io/v1/tokenreviews": order(
        "authentication.k8s.io/v1", "TokenReview", spec={"token": "x.y.z", "audiences": ["a"]}
    ),
    "/apis/authentication.k8s.io/v1/selfsubjectreviews": order("authentication.k8s.io/v1", "SelfSubjectReview"),
}
PARTS: dict[str, Json] = {
    f"{DEPLOYMENT}/a/scale": order("autoscaling/v1", "Scale", spec={"replicas": 3}),
    f"{DEPLOYMENT}/a/status": {**RIGHT[DEPLOYMENT], "status": {"replicas": 1, "conditions": [{"type": "A", "status": "True"}]}},
}


def sent(rights: dict[str, Json]) -> st.SearchStrategy[tuple[str, bytes]]:
    return st.sampled_from(list(rights)).flatmap(lambda path: st.tuples(st.just(path), spoiled([rights[path]])))


@given(sent(ORDERS))
def test_any_order_and_any_question(victim: Victim, posted: tuple[str, bytes]) -> None:
    path, raw = posted
    victim.ask("POST", f"{NAMESPACE}/pods", encoded(RIGHT[f"{NAMESPACE}/pods"]))
    victim.ask("POST", path, raw)


@given(sent(PARTS), st.sampled_from(["application/json", "application/merge-patch+json", "application/strategic-merge-patch+json"]))
def test_any_part_of_an_object(victim: Victim, posted: tuple[str, bytes], kind: str) -> None:
    path, raw = posted
    assert victim.ask("POST", DEPLOYMENT, encoded(RIGHT[DEPLOYMENT]))[0] in (201, 409)
    victim.ask("PUT" if kind == "application/json" else "PATCH", path, raw, content_type=kind)
    # Its owner was never there: where the finalizer that holds it is taken away, it is cleared away.
    assert victim.ask("GET", path)[0] in (200, 404)


OPTIONS = {
    "kind": "DeleteOptions",
    "apiVersion": "v1",
    "gracePeriodSeconds": 0,
    "preconditions": {"uid": "x", "resourceVersion": "1"},
    "propagationPolicy": "Foreground",
    "orphanDependents": False,
    "dryRun": ["All"],
}


@given(spoiled([OPTIONS]), st.sampled_from(["/configmaps/a", "/configmaps", "/pods"]))
def test_any_options_of_a_deletion(victim: Victim, raw: bytes, where: str) -> None:
    victim.ask("POST", f"{NAMESPACE}/configmaps", encoded(RIGHT[f"{NAMESPACE}/configmaps"]))
    victim.ask("DELETE", f"{NAMESPACE}{where}", raw)


# --- protobuf --------------------------------------------------------------------------------------------------------------------

PACKED = {
    **{path: encode(right) for path, right in RIGHT.items() if "kubevirt.io" not in path},
    **{path: encode(right) for path, right in ORDERS.items() if path.endswith("subjectaccessreviews")},
}


def test_what_is_right_is_taken_in_protobuf(victim: Victim) -> None:
    for path, raw in PACKED.items():
        code, answer = victim.ask("POST", f"{path}?dryRun=All", raw, content_type=MEDIA_TYPE)
        assert code in (201, 409), (path, answer)


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, bytes]:
    path = draw(st.sampled_from(list(PACKED)))
    raw = PACKED[path]
    for _ in range(draw(st.integers(1, 3))):
        at, cut = draw(st.integers(0, len(raw))), draw(st.integers(0, 4))
        raw = raw[:at] + draw(st.binary(max_size=5)) + raw[at + cut :]
    return path, raw


@given(damaged())
def test_damaged_protobuf(victim: Victim, posted: tuple[str, bytes]) -> None:
    path, raw = posted
    for method, where in (("POST", path), ("PUT", f"{path}/a"), ("DELETE", f"{path}/a")):
        victim.ask(method, f"{where}?dryRun=All", raw, content_type=MEDIA_TYPE)


@given(
    st.sampled_from(list(PACKED)),
    st.one_of(st.binary(max_size=100), st.sampled_from(RAW)),
    st.text(max_size=10),
    st.text(max_size=10),
)
def test_no_protobuf_at_all(victim: Victim, path: str, raw: bytes, version: str, kind: str) -> None:
    for body in (raw, b"k8s\0" + raw, envelope(version, kind, raw), envelope("v1", "ConfigMap", chunk(1, raw))):
        victim.ask("POST", f"{path}?dryRun=All", body, content_type=MEDIA_TYPE)
