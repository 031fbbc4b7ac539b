"""Whatever a body holds, the answer is a refusal or a success, and soon."""

import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.conftest import Victim
from tests.fuzz.strategies import RAW, Json, encoded, spoiled, values

NAMESPACE = "/api/v1/namespaces/default"
TYPES = (
    "application/json",
    "application/yaml",
    "",
    "application/json;charset=utf-16",
    "text/plain",
    "application/apply-patch+yaml",
)


def of(version: str, kind: str, **more: object) -> Json:
    metadata = {"name": "a", "labels": {"x": "y"}, "annotations": {"x": "y"}, "finalizers": ["example.com/x"]}
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "1", "controller": True}
    return {"apiVersion": version, "kind": kind, "metadata": {**metadata, "ownerReferences": [owner]}, **more}


TEMPLATE: Json = {
    "metadata": {"labels": {"x": "y", "z": "1"}},
    "spec": {
        "containers": [{"name": "c", "image": "i:1", "resources": {"requests": {"cpu": "1"}}, "ports": [{"containerPort": 80}]}],
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}],
    },
}
SELECTOR = {"matchLabels": {"x": "y"}, "matchExpressions": [{"key": "z", "operator": "In", "values": ["1"]}]}
RIGHT: dict[str, Json] = {
    f"{NAMESPACE}/configmaps": of("v1", "ConfigMap", data={"k": "v"}, binaryData={"b": "aGk="}, immutable=False),
    f"{NAMESPACE}/secrets": of("v1", "Secret", data={"k": "aGk="}, stringData={"s": "t"}, type="Opaque"),
    f"{NAMESPACE}/pods": of("v1", "Pod", spec=TEMPLATE["spec"]),
    f"{NAMESPACE}/persistentvolumeclaims": of(
        "v1", "PersistentVolumeClaim", spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    ),
    "/api/v1/nodes": of("v1", "Node", spec={"taints": [{"key": "a", "effect": "NoSchedule"}]}),
    "/apis/apps/v1/namespaces/default/deployments": of(
        "apps/v1",
        "Deployment",
        spec={"replicas": 1, "selector": SELECTOR, "template": TEMPLATE, "strategy": {"rollingUpdate": {"maxSurge": "25%"}}},
    ),
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets": of(
        "policy/v1", "PodDisruptionBudget", spec={"minAvailable": "50%", "selector": SELECTOR}
    ),
    "/apis/coordination.k8s.io/v1/namespaces/default/leases": of(
        "coordination.k8s.io/v1", "Lease", spec={"renewTime": "2026-01-01T00:00:00.000000Z", "leaseDurationSeconds": 1}
    ),
    "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles": of(
        "rbac.authorization.k8s.io/v1", "Role", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    ),
    "/apis/kubevirt.io/v1/namespaces/default/virtualmachines": of(
        "kubevirt.io/v1",
        "VirtualMachine",
        spec={
            "runStrategy": "Always",
            "template": {
                "spec": {
                    "domain": {"devices": {"disks": [{"name": "d"}]}, "memory": {"guest": "1Gi"}},
                    "volumes": [{"name": "d", "containerDisk": {"image": "i:1"}}],
                }
            },
        },
    ),
}
CREATED = st.sampled_from(list(RIGHT)).flatmap(lambda path: st.tuples(st.just(path), spoiled([RIGHT[path]])))


def test_what_is_right_is_taken(victim: Victim) -> None:
    """Else the others would only try what fails at its first line."""
    for path, right in RIGHT.items():
        code, answer = victim.ask("POST", f"{path}?dryRun=All", encoded(right))
        assert code == 201, (path, answer)


@given(CREATED, st.sampled_from(TYPES[:2]), st.sampled_from(["Strict", "Warn", "Ignore"]))
def test_creating_anything(victim: Victim, sent: tuple[str, bytes], kind: str, mode: str) -> None:
    path, raw = sent
    victim.ask("POST", f"{path}?dryRun=All&fieldValidation={mode}", raw, content_type=kind)


@given(CREATED)
def test_creating_and_changing_and_deleting_for_real(victim: Victim, sent: tuple[str, bytes]) -> None:
    path, raw = sent
    code, _ = victim.ask("POST", path, raw)
    if code == 201:
        victim.ask("PUT", f"{path}/a", raw)
        victim.ask("GET", path, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
        victim.ask("PATCH", f"{path}/a", b'{"metadata":{"finalizers":null}}', content_type="application/merge-patch+json")
    victim.ask("DELETE", f"{path}/a?gracePeriodSeconds=0")


@given(st.sampled_from(list(RIGHT)), st.one_of(st.binary(max_size=200), st.sampled_from(RAW)), st.sampled_from(TYPES))
def test_sending_no_document_at_all(victim: Victim, path: str, raw: bytes, kind: str) -> None:
    for method, where in (("POST", path), ("PUT", f"{path}/a"), ("DELETE", f"{path}/a"), ("PATCH", f"{path}/a")):
        victim.ask(method, f"{where}?dryRun=All", raw, content_type=kind)


@given(
    st.one_of(
        values.map(lambda value: yaml.safe_dump(value).encode()),
        st.text(max_size=100).map(lambda text: text.encode("utf-8", "ignore")),
    )
)
def test_sending_any_yaml(victim: Victim, raw: bytes) -> None:
    victim.ask("POST", f"{NAMESPACE}/configmaps?dryRun=All", raw, content_type="application/yaml")


YAML_HEAD = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\n"
LAUGHS = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [%s]\n" % (98 + level, 98 + level, b",".join([b"*%c" % (97 + level)] * 9)) for level in range(12)
)


def test_yaml_that_grows_without_end_or_sinks_without_ground(victim: Victim) -> None:
    for raw in (
        YAML_HEAD + LAUGHS,
        YAML_HEAD + b"x: " + b"[" * 100_000,
        YAML_HEAD + b"x: " + b"[" * 100_000 + b"]" * 100_000,
        b"- " * 100_000,
        b"? " * 50_000,
        b"a: &a [*a]",
        b"a: &a {b: *a}",
        b"a: !!python/object/apply:os.system [id]",
        b"a: !!timestamp 2026-01-01",
        YAML_HEAD + b"data: {a: .nan}",
        b"x: [" + b"a," * 300_000 + b"]",
        b"--- a\n--- b\n",
        b"%YAML 9.9\n---\na: b",
    ):
        code, answer = victim.ask("POST", f"{NAMESPACE}/configmaps?dryRun=All", raw, content_type="application/yaml")
        assert code in (400, 413), (raw[:60], answer)


def test_json_that_sinks_without_ground(victim: Victim) -> None:
    for depth in (100, 140, 149, 150, 151, 300, 500, 900, 990, 1000, 1500, 100_000):
        for opening, closing in ((b'{"a":', b"}"), (b"[", b"]")):
            raw = (
                b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"d"},"data":'
                + opening * depth
                + b"1"
                + closing * depth
                + b"}"
            )
            assert victim.ask("POST", f"{NAMESPACE}/configmaps?dryRun=All", raw)[0] == 400
            machine = raw.replace(b'"v1"', b'"kubevirt.io/v1"').replace(b"ConfigMap", b"VirtualMachine").replace(b"data", b"spec")
            victim.ask("POST", "/apis/kubevirt.io/v1/namespaces/default/virtualmachines?dryRun=All", machine)
