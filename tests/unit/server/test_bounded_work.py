"""What one request may hold and what is kept of it: bounded, and refused in words where it is too much."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from herder.api.nesting import MOST_VALUES
from herder.server.access.rbac import LONGEST_REMEMBERED
from herder.server.fields import shape
from herder.server.request import AUTHENTICATED, User
from herder.server.status import LONGEST_MESSAGE
from tests.unit.server.inside import Inside, config_map, engine_inside

MAPS = "/api/v1/namespaces/default/configmaps"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
SOMEBODY = User("somebody", (AUTHENTICATED,))


@pytest.fixture
async def inside(tmp_path: Path) -> AsyncIterator[Inside]:
    async with engine_inside(tmp_path) as engine:
        yield engine


def map_of(keys: int) -> dict[str, Any]:
    return config_map("many", **{f"k{number}": "" for number in range(keys)})


@pytest.mark.parametrize("method", ["POST", "PATCH", "apply"])
async def test_a_body_of_more_values_than_the_bound_is_refused_and_says_which(inside: Inside, method: str) -> None:
    await inside.ask("POST", MAPS, config_map("many"))
    if method == "POST":
        code, refused = await inside.ask("POST", MAPS, map_of(MOST_VALUES))
    elif method == "PATCH":
        kind = "application/merge-patch+json"
        code, refused = await inside.ask("PATCH", f"{MAPS}/many", map_of(MOST_VALUES), content_type=kind)
    else:
        kind = "application/apply-patch+yaml"
        code, refused = await inside.ask("PATCH", f"{MAPS}/many?fieldManager=x", map_of(MOST_VALUES), content_type=kind)
    assert (code, refused["reason"]) == (413, "RequestEntityTooLarge")
    assert f"more than {MOST_VALUES} values" in refused["message"]


async def test_texts_do_not_count_by_what_is_written_in_them(inside: Inside) -> None:
    code, _ = await inside.ask("POST", MAPS, config_map("text", csv="{[,]}," * 100_000))
    assert code == 201


async def test_copies_of_a_patch_hold_no_more_values_than_a_body(inside: Inside) -> None:
    await inside.ask("POST", MAPS, config_map("copied"))
    copies = [{"op": "copy", "from": "/data/e", "path": f"/data/k{number}"} for number in range(100)]
    patch = [{"op": "add", "path": "/data", "value": {"e": [[]] * 1000}}, *copies]
    code, refused = await inside.ask("PATCH", f"{MAPS}/copied", patch, content_type="application/json-patch+json")
    assert code == 422
    assert f"hold more than {MOST_VALUES} values in all" in refused["message"]


async def test_a_refusal_is_no_larger_than_a_person_reads(inside: Inside) -> None:
    """It names the first hundred, counts the others, and shows the ends of what is long."""
    wrong = config_map("wrong", **{f"?{number}": "" for number in range(20_000)})
    code, refused = await inside.ask("POST", MAPS, wrong)
    assert (code, len(refused["details"]["causes"])) == (422, 100)
    assert refused["message"].endswith("and 19900 more problems]")
    code, refused = await inside.ask("POST", MAPS, config_map("n" * 2_000_000))
    assert code == 422
    assert len(refused["message"]) <= LONGEST_MESSAGE + 1


async def test_many_owners_that_all_control_are_refused_without_telling_of_all_each_time(inside: Inside) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "uid": "u", "controller": True}
    document = config_map("owned")
    document["metadata"]["ownerReferences"] = [{**owner, "name": f"o{number}"} for number in range(8_000)]
    code, refused = await inside.ask("POST", MAPS, document)
    assert (code, len(refused["details"]["causes"])) == (422, 100)


@pytest.mark.parametrize("field", ["namespace", "user", "groups"])
async def test_whom_a_review_asks_about_is_not_kept_in_memory(inside: Inside, field: str) -> None:
    """Any user may ask, about names of three megabytes."""
    rbac = inside.running.engine.access.rbac
    long = "x" * (LONGEST_REMEMBERED + 1)
    asked = {"verb": "get", "resource": "pods", "namespace": long if field == "namespace" else "default"}
    who = {"user": long if field == "user" else "u", "groups": [long] if field == "groups" else ["g"]}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {"resourceAttributes": asked, **who}}
    code, _ = await inside.ask("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body)
    assert code == 201
    kept = [key for key in vars(rbac)["_remembered"] if long in (key[0], key[2], *key[1])]
    assert kept == []


def test_items_are_remembered_by_names_and_not_by_texts() -> None:
    items = shape.Items(("name",), {}, shape.PIECE)
    before = vars(shape)["_known_item"].cache_info().currsize
    long = "x" * 1_000_000
    assert items.element({"name": long}) == f'k:{{"name":"{long}"}}'
    assert vars(shape)["_known_item"].cache_info().currsize == before


async def test_large_answers_in_yaml_are_json_which_yaml_is(inside: Inside) -> None:
    await inside.ask("POST", MAPS, map_of(5_000))
    await inside.ask("POST", MAPS, config_map("small", a="b"))
    code, shown = await inside.ask("GET", f"{MAPS}/many", accept="application/yaml")
    assert (code, len(shown["data"])) == (200, 5_000)
    answer = await inside.router.handle(inside.request("GET", f"{MAPS}/small", None, accept="application/yaml"))
    assert getattr(answer, "body", b"").startswith(b"apiVersion: v1\nkind: ConfigMap\n")
