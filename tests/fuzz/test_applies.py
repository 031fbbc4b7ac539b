"""Whatever is applied, and whatever a patch of its own kind holds, it is refused or done, and who manages what stays readable."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.conftest import Victim
from tests.fuzz.strategies import RAW, Json, encoded, spoiled, texts, values
from tests.fuzz.test_bodies import RIGHT, TEMPLATE

APPLY, MERGE, STRATEGIC = "application/apply-patch+yaml", "application/merge-patch+json", "application/strategic-merge-patch+json"
PLACES = st.sampled_from(list(RIGHT))
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
MAPS = "/api/v1/namespaces/default/configmaps"


def clear(victim: Victim, path: str) -> None:
    victim.ask("PATCH", f"{path}/a", b'{"metadata":{"finalizers":null}}', content_type=MERGE)
    victim.ask("DELETE", f"{path}/a?gracePeriodSeconds=0")


def still_readable(victim: Victim, path: str) -> None:
    code, body = victim.ask("GET", f"{path}/a")
    if code == 200:
        for entry in json.loads(body)["metadata"].get("managedFields", []):
            assert isinstance(entry["fieldsV1"], dict)


@given(PLACES.flatmap(lambda path: st.tuples(st.just(path), spoiled([RIGHT[path]]), spoiled([RIGHT[path]]))), st.booleans())
def test_any_configurations_of_two_managers(victim: Victim, sent: tuple[str, bytes, bytes], force: bool) -> None:
    path, first, second = sent
    victim.ask("PATCH", f"{path}/a?fieldManager=one", encoded(RIGHT[path]), content_type=APPLY)
    victim.ask("PATCH", f"{path}/a?fieldManager=one", first, content_type=APPLY)
    victim.ask("PATCH", f"{path}/a?fieldManager=two&force={str(force).lower()}", second, content_type=APPLY)
    still_readable(victim, path)
    clear(victim, path)


@given(PLACES, st.one_of(st.binary(max_size=80), st.sampled_from(RAW)), texts)
def test_no_configuration_at_all(victim: Victim, path: str, raw: bytes, manager: str) -> None:
    for subresource in ("", "/status", "/scale"):
        victim.ask("PATCH", f"{path}/a{subresource}?fieldManager=one", raw, content_type=APPLY)


# --- who manages what, made up by a client ---------------------------------------------------------------------------------------

FIELDS = ("f:data", "f:metadata", "f:labels", "f:k", ".", "f:", 'k:{"name":"c"}', "k:{", 'v:"x"', "v:", "i:0", "i:x")
paths_of_fields = st.recursive(
    st.just(dict[str, Any]()),
    lambda inside: st.dictionaries(
        st.one_of(
            st.sampled_from(
                ["f:data", "f:metadata", "f:labels", "f:k", ".", "f:", 'k:{"name":"c"}', "k:{", 'v:"x"', "v:", "i:0", "i:x"]
            ),
            texts,
        ),
        inside,
        max_size=3,
    ),
    max_leaves=6,
)
entries = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "manager": texts,
            "operation": st.one_of(st.sampled_from(["Apply", "Update", ""]), texts),
            "apiVersion": st.one_of(st.sampled_from(["v1", "v2", "apps/v1"]), texts),
            "time": st.one_of(st.just("2026-01-01T00:00:00Z"), texts),
            "fieldsType": st.one_of(st.just("FieldsV1"), texts),
            "fieldsV1": st.one_of(paths_of_fields, values),
            "subresource": texts,
        },
    ),
    max_size=3,
)


@given(entries)
def test_any_record_of_managers(victim: Victim, made_up: list[Json]) -> None:
    right = RIGHT[MAPS]
    document = {**right, "metadata": {**right["metadata"], "managedFields": made_up}}
    victim.ask("POST", MAPS, encoded(document))
    victim.ask("PATCH", f"{MAPS}/a", encoded({"metadata": {"managedFields": made_up}}), content_type=MERGE)
    victim.ask("PATCH", f"{MAPS}/a?fieldManager=one&force=true", encoded({**right, "data": {"k": "w"}}), content_type=APPLY)
    still_readable(victim, MAPS)
    clear(victim, MAPS)


# --- strategic patches -----------------------------------------------------------------------------------------------------------

DIRECTIVES = ("$patch", "$retainKeys", "$setElementOrder/containers", "$deleteFromPrimitiveList/finalizers", "name")
items = st.dictionaries(st.sampled_from([*DIRECTIVES, "image", "ports", "x"]), values, max_size=3)
pod_specs = st.dictionaries(
    st.sampled_from(["containers", "tolerations", "volumes", *DIRECTIVES]),
    st.one_of(st.lists(items, max_size=3), values),
    max_size=3,
)
strategic = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.dictionaries(st.sampled_from(["finalizers", "labels", "ownerReferences", *DIRECTIVES]), values, max_size=3),
        "spec": st.one_of(
            values,
            st.fixed_dictionaries({"template": st.fixed_dictionaries({"spec": pod_specs})}),
            st.dictionaries(st.sampled_from(["replicas", "selector", "strategy", *DIRECTIVES]), values, max_size=3),
        ),
        "$patch": values,
    },
)


@given(strategic)
def test_any_strategic_patch(victim: Victim, patch: Json) -> None:
    victim.ask("POST", DEPLOYMENTS, encoded(RIGHT[DEPLOYMENTS]))
    victim.ask("PATCH", f"{DEPLOYMENTS}/a", encoded(patch), content_type=STRATEGIC)
    code, body = victim.ask("GET", f"{DEPLOYMENTS}/a")
    if code == 200:
        spec = json.loads(body)["spec"]["template"]["spec"]
        assert all(isinstance(one["name"], str) for one in spec["containers"])
    clear(victim, DEPLOYMENTS)


@given(spoiled([RIGHT[DEPLOYMENTS], {"spec": {"template": TEMPLATE}}]))
def test_a_spoiled_document_as_a_strategic_patch(victim: Victim, raw: bytes) -> None:
    victim.ask("POST", DEPLOYMENTS, encoded(RIGHT[DEPLOYMENTS]))
    victim.ask("PATCH", f"{DEPLOYMENTS}/a", raw, content_type=STRATEGIC)
    clear(victim, DEPLOYMENTS)
