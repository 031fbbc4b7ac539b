"""Server-side apply of lists and maps that are empty, when they are applied no longer."""

import pytest

from tests.behaviour.applying import apply, gadgets
from tests.engines.api import Api, Json
from tests.engines.resources import Resource

__all__ = ["gadgets"]
GOES: list[Json] = [{"list": []}, {"map": {}}, {"whole": {}}, {"any": []}]
# Of lists with keys only the items are owned.
STAYS: list[Json] = [{"parts": []}, {"tags": []}]


@pytest.mark.parametrize("empty", [*GOES, *STAYS], ids=str)
async def test_what_is_empty_goes_unless_it_is_a_list_with_keys(api: Api, namespace: str, gadgets: Resource, empty: Json) -> None:
    made = (await apply(api, gadgets, "a", {"spec": {"size": 1, **empty}}, namespace)).ok
    assert empty.items() <= made["spec"].items()
    left = (await apply(api, gadgets, "a", {"spec": {"size": 1}}, namespace)).ok
    assert left["spec"] == {"size": 1, "colour": "red", **(empty if empty in STAYS else {})}
