"""Patterns are followed all ways at once: the answers of trying one after the other, in time that grows with the text alone."""

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from herder.server.schema.patterns import Pattern, PatternError, compile_pattern
from tests.examples import examples

PIECES = ["a", "b", "[ab]", "[^a]", ".", r"\d", r"\w", r"\s", "c", r"\b", "^", "$", "[a-c]", "(?i:A)"]
TIMES = ["*", "+", "?", "{2}", "{1,3}", "{0,2}", "*?", "+?"]
patterns = st.recursive(
    st.sampled_from(PIECES),
    lambda inside: st.one_of(
        st.lists(inside, min_size=1, max_size=3).map("".join),
        st.tuples(inside, inside).map(lambda two: f"({two[0]}|{two[1]})"),
        st.tuples(inside, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,2}", "*?", "+?"])).map(
            lambda two: f"(?:{two[0]}){two[1]}"
        ),
    ),
    max_leaves=6,
)


@pytest.mark.slow
@settings(max_examples=examples(400), derandomize=True, database=None, deadline=None)
@given(patterns, st.text("abcA1 \n", max_size=8))
def test_the_automaton_agrees_with_python(pattern: str, text: str) -> None:
    expected = re.compile(pattern.replace("$", r"\Z"), re.ASCII).search(text) is not None
    assert automaton_says(compile_pattern(pattern), text) is expected


def automaton_says(pattern: Pattern, text: str) -> bool:
    return pattern._automaton.search(text)  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("a+b?", "xxaabaa", ["aab", "aa"]),
        ("a+?", "aa", ["a", "a"]),
        ("(ab|a)(c|bcd)", "abcd", ["abc"]),
        ("(?:[a-z]+[.])+", "ab.cd. ef.", ["ab.cd.", "ef."]),
        ("x*", "axb", ["", "x", ""]),
        (r"\bfoo\b", "foo food foo", ["foo", "foo"]),
    ],
)
def test_what_is_found_is_what_go_finds(pattern: str, text: str, found: list[str]) -> None:
    automaton = compile_pattern(pattern)._automaton  # pyright: ignore[reportPrivateUsage]
    for way in (compile_pattern(pattern), Pattern(automaton, None)):
        assert way.find_all(text) == found
        assert way.find(text) == found[0]


@pytest.mark.parametrize(
    "pattern", ["^(a+)+$", "(a|aa)+$", "(.*)*(.*)*(.*)*x", "^(a?){30}a{30}$", "((((a*)*)*)*)*b", "[a-z]+@[a-z]+"]
)
def test_no_text_takes_long(pattern: str) -> None:
    began = time.monotonic()
    assert not compile_pattern(pattern).matches("a" * 500_000 + "!")
    assert time.monotonic() - began < 5


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["(" * 5000 + ")" * 5000, "a{1001}", "((a{100}){100}){100}", "a" * 20_000])
def test_patterns_that_are_too_large_are_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        compile_pattern(pattern)


@pytest.mark.slow
def test_finding_where_has_a_bound() -> None:
    with pytest.raises(PatternError):
        compile_pattern("(a|aa)+$").find("a" * 3_000_000)
