"""Rules: compiled ones decide as reading them one by one would, and comparing them agrees with deciding."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from herder.server.access.comparing import TooManyPieces, missing
from herder.server.access.rules import Grants, Rule, read_rules, slots_of
from tests.examples import examples

VERBS = ("get", "list", "create")
GROUPS = ("", "apps")
RESOURCES = ("pods", "nodes")
SUBRESOURCES = ("", "status", "log")
NAMES = ("", "a", "b")
PATHS = ("/a", "/a/b", "/ab", "/")


def some(*values: str, empty: bool = False) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(values), min_size=0 if empty else 1, max_size=3).map(tuple)


resource_rules = st.builds(
    Rule,
    verbs=some(*VERBS, "*"),
    api_groups=some(*GROUPS, "*"),
    resources=some(*RESOURCES, "*", "pods/status", "pods/log", "*/status", "nodes/*", "*/"),
    names=some("a", "b", empty=True),
)
path_rules = st.builds(Rule, verbs=some(*VERBS, "*"), paths=some(*PATHS, "*", "/a*", "/a/*", "/**"))
rules = st.lists(st.one_of(resource_rules, path_rules), max_size=4)
actions = st.tuples(*(st.sampled_from(values) for values in (VERBS, GROUPS, RESOURCES, SUBRESOURCES, NAMES)))


def read_one_by_one(held: list[Rule], verb: str, group: str, resource: str, subresource: str, name: str) -> bool:
    """As the rules are explained to people."""
    whole = f"{resource}/{subresource}" if subresource else resource
    for rule in held:
        verb_fits = "*" in rule.verbs or verb in rule.verbs
        group_fits = "*" in rule.api_groups or group in rule.api_groups
        resource_fits = "*" in rule.resources or whole in rule.resources
        resource_fits = resource_fits or (subresource != "" and f"*/{subresource}" in rule.resources)
        name_fits = not rule.names or name in rule.names
        if verb_fits and group_fits and resource_fits and name_fits:
            return True
    return False


def read_paths_one_by_one(held: list[Rule], verb: str, path: str) -> bool:
    return any(
        (verb in rule.verbs or "*" in rule.verbs)
        and any(one == path or (one.endswith("*") and path.startswith(one.rstrip("*"))) for one in rule.paths)
        for rule in held
    )


@settings(max_examples=examples(200))
@given(rules, actions)
def test_compiled_rules_decide_as_the_rules_read(held: list[Rule], action: tuple[str, str, str, str, str]) -> None:
    *what, name = action
    assert Grants(held).allow(slots_of(*what), name) == read_one_by_one(held, *action)


@settings(max_examples=examples(150))
@given(rules, st.sampled_from(VERBS), st.sampled_from(PATHS))
def test_compiled_paths_decide_as_the_rules_read(held: list[Rule], verb: str, path: str) -> None:
    assert Grants(held).allow_path(verb, path) == read_paths_one_by_one(held, verb, path)


@pytest.mark.slow
@settings(max_examples=examples(200))
@given(rules, rules, actions)
def test_whoever_lacks_nothing_may_do_everything_that_the_other_may(
    held: list[Rule], wanted: list[Rule], action: tuple[str, str, str, str, str]
) -> None:
    *what, name = action
    if not missing(held, wanted).amount and Grants(wanted).allow(slots_of(*what), name):
        assert Grants(held).allow(slots_of(*what), name)


@given(rules, rules)
def test_what_is_missing_is_all_that_is_missing(held: list[Rule], wanted: list[Rule]) -> None:
    lacking = missing(held, wanted)
    assert missing([*held, *lacking.pieces], wanted).amount == 0
    assert missing(wanted, lacking.pieces).amount == 0
    assert missing(held, held).amount == 0


def test_a_right_to_one_name_is_not_a_right_to_all() -> None:
    one, every = Rule(("get",), ("",), ("secrets",), ("a",)), Rule(("get",), ("",), ("secrets",))
    assert missing([every], [one]).amount == 0
    assert missing([one], [every]).pieces == [every]


def test_what_is_missing_is_told_by_kind() -> None:
    lacking = missing([], read_rules([{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "nodes"]}]))
    assert lacking.told() == (
        '{APIGroups:[""], Resources:["nodes"], Verbs:["get" "list"]}\n{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}'
    )


def test_a_right_to_the_name_star_is_not_a_right_to_all_names() -> None:
    star = Rule(("get",), ("",), ("secrets",), ("*",))
    assert missing([star], [Rule(("get",), ("",), ("secrets",), ("a",))]).amount == 1


def test_lists_that_multiply_are_compared_without_multiplying_them() -> None:
    """A hundred million pieces: what is lacking is counted, and some of it told."""
    hundred = tuple(str(number) for number in range(100))
    lacking = missing([], [Rule(hundred, hundred, hundred, hundred)])
    assert lacking.amount == 100**4
    assert len(lacking.told()) < 64 * 1024
    assert lacking.told().endswith(f"and {100**4 - 500} more")


def test_rules_that_multiply_decide_as_they_read() -> None:
    hundred = tuple(str(number) for number in range(100))
    grants = Grants([Rule(hundred, hundred, hundred, ("a",))])
    assert grants.allow(slots_of("7", "8", "9", ""), "a")
    assert not grants.allow(slots_of("7", "8", "9", ""), "b")
    assert not grants.allow(slots_of("7", "8", "x", ""), "a")


def test_what_is_held_in_too_many_pieces_to_compare_is_refused_in_time() -> None:
    """Each verb, group and resource is in a rule of its own, so that no two of them are held alike."""
    many = tuple(str(number) for number in range(100))
    held = [Rule((one,), (one,), (one,)) for one in many]
    with pytest.raises(TooManyPieces):
        missing(held, [Rule(many, many, many)])


def test_rules_survive_what_is_not_there() -> None:
    assert read_rules(None) == ()
    assert read_rules([None, {"verbs": None, "resources": ["pods"]}]) == (Rule(), Rule(resources=("pods",)))
    assert Rule.read({"verbs": ["get"], "nonResourceURLs": ["/a"]}).document() == {"nonResourceURLs": ["/a"], "verbs": ["get"]}
