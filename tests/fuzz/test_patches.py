"""Whatever a patch holds, it is refused or done, and the object stays one."""

import json

from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.conftest import Victim
from tests.fuzz.strategies import RAW, encoded, texts, values

MAPS = "/api/v1/namespaces/default/configmaps"
KEPT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "p", "labels": {"x": "y"}}, "data": {"a": "b", "c": "d"}}
MERGE, OPERATIONS = "application/merge-patch+json", "application/json-patch+json"

pointers = st.one_of(
    st.sampled_from(["", "/", "/data", "/data/a", "/metadata", "/metadata/labels/x", "/metadata/name", "/data/-", "/x/0", "/kind"]),
    st.lists(texts, max_size=3).map(lambda parts: "/" + "/".join(parts)),
    texts,
)
operations = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]), "path": pointers},
            optional={"value": values, "from": pointers},
        ),
        st.fixed_dictionaries({}, optional={"op": values, "path": values, "value": values, "from": values}),
        values,
    ),
    max_size=6,
)
metadata = st.dictionaries(
    st.sampled_from(["name", "labels", "annotations", "finalizers", "ownerReferences", "managedFields", "uid", "resourceVersion"]),
    values,
)
merges = st.fixed_dictionaries({}, optional={"metadata": st.one_of(metadata, values), "data": values, "kind": values, "x": values})


def check(victim: Victim, raw: bytes, kind: str) -> None:
    victim.ask("POST", MAPS, encoded(KEPT))
    victim.ask("PATCH", f"{MAPS}/p", raw, content_type=kind)
    code, body = victim.ask("GET", f"{MAPS}/p")
    assert code == 200
    kept = json.loads(body)
    assert (kept["kind"], kept["metadata"]["name"]) == ("ConfigMap", "p")
    assert all(isinstance(value, str) for value in kept.get("data", {}).values())
    victim.ask("PATCH", f"{MAPS}/p", b'{"metadata":{"finalizers":null}}', content_type=MERGE)
    victim.ask("DELETE", f"{MAPS}/p")


@given(operations)
def test_any_operations(victim: Victim, patch: list[object]) -> None:
    check(victim, encoded(patch), OPERATIONS)


@given(merges)
def test_any_merge(victim: Victim, patch: dict[str, object]) -> None:
    check(victim, encoded(patch), MERGE)


@given(st.sampled_from([MERGE, OPERATIONS]), st.one_of(st.binary(max_size=60), st.sampled_from(RAW)))
def test_no_patch_at_all(victim: Victim, kind: str, raw: bytes) -> None:
    check(victim, raw, kind)


def test_operations_that_multiply_or_sink(victim: Victim) -> None:
    doubling = [{"op": "copy", "from": "", "path": f"/x{number}"} for number in range(60)]
    sinking = [{"op": "add", "path": "/data" + "/a" * number, "value": {}} for number in range(3000)]
    nesting = [{"op": "copy", "from": "/data", "path": "/data/a"} for _ in range(2000)]
    moving = [{"op": "add", "path": "/l", "value": []}] + [{"op": "add", "path": "/l/0", "value": 1} for _ in range(9998)]
    for patch in (doubling, sinking, nesting, moving):
        check(victim, encoded(patch), OPERATIONS)
