"""Sets of paths behave as sets, whatever form they are kept in."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from herder.server.fields import contains, difference, intersection, of_paths, paths, union, without
from herder.server.fields.managed import without_change
from herder.server.fields.sets import FieldSet

Path = tuple[str, ...]
some_paths = st.sets(st.lists(st.sampled_from(["f:a", "f:b", 'k:{"n":"x"}']), min_size=1, max_size=4).map(tuple), max_size=8)


def as_paths(fields: FieldSet) -> set[Path]:
    found = paths(fields)
    assert len(found) == len(set(found))
    return set(found)


def is_below(path: Path, others: set[Path]) -> bool:
    return any(path[: len(other)] == other for other in others)


@given(some_paths)
def test_a_set_holds_what_was_put_into_it(one: set[Path]):
    whole = of_paths(one)
    assert as_paths(whole) == one
    assert all(contains(whole, path) for path in one)
    assert not contains(whole, ("f:elsewhere",))


@given(some_paths, some_paths)
def test_union_difference_and_intersection_are_those_of_sets(one: set[Path], other: set[Path]):
    left, right = of_paths(one), of_paths(other)
    assert as_paths(union(left, right)) == one | other
    assert as_paths(difference(left, right)) == one - other
    assert as_paths(intersection(left, right)) == one & other


@given(some_paths, some_paths)
def test_without_takes_away_what_is_below_too(one: set[Path], other: set[Path]):
    assert as_paths(without(of_paths(one), of_paths(other))) == {path for path in one if not is_below(path, other)}


@given(some_paths, some_paths)
def test_nothing_is_changed_in_place_and_every_result_is_in_its_shortest_form(one: set[Path], other: set[Path]):
    left, right = of_paths(one), of_paths(other)
    for operation in (union, difference, intersection, without):
        result = operation(left, right)
        assert result == of_paths(as_paths(result))
    assert as_paths(left) == one
    assert as_paths(right) == other


@given(some_paths, some_paths, some_paths)
def test_an_entry_that_is_still_bytes_loses_the_same_as_one_that_was_read(one: set[Path], written: set[Path], removed: set[Path]):
    fields, now, gone = of_paths(one), of_paths(written), of_paths(removed)
    read = without_change({"manager": "m", "fieldsV1": fields}, now, gone)
    as_bytes = without_change({"manager": "m", "fieldsV1": msgspec.Raw(msgspec.json.encode(fields))}, now, gone)
    assert msgspec.json.decode(msgspec.json.encode(as_bytes)) == read


def test_an_entry_whose_names_are_written_with_escapes_is_read():
    entry = {"fieldsV1": msgspec.Raw(b'{"\\u0066:a":{}}')}
    assert without_change(entry, of_paths([("f:a",)]), {}) is None
