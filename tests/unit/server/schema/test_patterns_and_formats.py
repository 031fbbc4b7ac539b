import pytest

from herder.server.schema.formats import string_format
from herder.server.schema.patterns import MOST_KNOWN, PatternError, compile_pattern


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("^a$", "a", True),
        ("^a$", "a\n", False),
        (r"^\d+$", "٣", False),
        (r"^\w$", "é", False),
        ("^[[:alpha:]_-]+$", "ab_-", True),
        ("^[^[:space:]]+$", "a b", False),
        (r"^\pL+$", "éa", True),
        (r"^\p{Lu}", "a", False),
        (r"^[\p{L}\d]+$", "é1", True),
        ("(?i)^abc$", "ABC", True),
        ("^(?i:abc)d$", "ABCd", True),
        (r"^\Qa.b\E$", "a.b", True),
        (r"^\Qa.b\E$", "axb", False),
        (r"^a\z", "a", True),
        (r"^[a$]+$", "$a", True),
        (r"^\$a$", "$a", True),
        ("(?P<x>a)b", "ab", True),
        ("^[]a]+$", "]a", True),
    ],
)
def test_a_pattern_matches_what_it_matches_in_go(pattern: str, text: str, matches: bool):
    assert compile_pattern(pattern).matches(text) is matches
    # Long texts go another way, which must not say anything else.
    assert compile_pattern(pattern)._automaton.search(text) is matches  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("pattern", ["(?=a)", "(?!a)", "(?<=a)", r"(a)\1", "(", "[a", "a\\", "*", "(?P>x)", r"\p{Nonsense}"])
def test_a_pattern_that_go_would_not_compile_is_refused(pattern: str):
    with pytest.raises(PatternError):
        compile_pattern(pattern)


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("date-time", ["2024-02-29T00:00:00Z", "2024-01-01T00:00:00.5+01:00"], ["2023-02-29T00:00:00Z", "2024-01-01", "now"]),
        ("date", ["2024-02-29"], ["2023-02-29", "20240101"]),
        ("duration", ["1h30m", "0", "-1.5s", "5 days"], ["", "5", "x"]),
        ("ipv4", ["1.2.3.4", "01.2.3.4"], ["1.2.3", "::1", "1.2.3.256"]),
        ("ipv6", ["::1", "fe80::1"], ["1.2.3.4", "fe80::1%eth0", ":::"]),
        ("cidr", ["10.0.0.1/8", "::/0"], ["10.0.0.0", "10.0.0.0/33", "10.0.0.0/x"]),
        ("mac", ["01:23:45:67:89:ab", "0123.4567.89ab", "01-23-45-67-89-ab"], ["01:23:45:67:89", "01:23-45:67:89:ab"]),
        ("uuid", ["0D7B7AB6-6c57-4b1b-b37e-7c2c8f6b8f9e"], ["0d7b7ab6"]),
        ("uuid4", ["0d7b7ab6-6c57-4b1b-b37e-7c2c8f6b8f9e"], ["0d7b7ab6-6c57-3b1b-b37e-7c2c8f6b8f9e"]),
        ("hostname", ["a.b-c.example", "h"], ["a_b", "-a", "a..b", "x" * 64]),
        ("email", ["a@b.c", "A B <a@b.c>"], ["a", "a@", "a b@c"]),
        ("uri", ["https://a/b?c", "/path", "urn:x"], ["a/b", "", "http://a b", "/%zz"]),
        ("byte", ["", "aGk="], ["aGk", "@@@@"]),
        ("k8s-short-name", ["a-b"], ["A", "a.b", "x" * 64]),
        ("k8s-long-name", ["a-b.c"], ["A", "-a"]),
        ("hexcolor", ["#fff", "A0B1C2"], ["#ff"]),
        ("rgbcolor", ["rgb(1, 2,255)"], ["rgb(1,2,256)"]),
        ("ssn", ["123-45-6789"], ["123456789"]),
        ("isbn10", ["0321751043"], ["0321751044"]),
        ("isbn13", ["978-0321751041"], ["978-0321751042"]),
        ("creditcard", ["4111 1111 1111 1111"], ["4111 1111 1111 1112"]),
        ("password", ["anything"], []),
    ],
)
def test_a_format_tells_right_from_wrong(name: str, right: list[str], wrong: list[str]):
    fits = string_format(name)
    assert fits is not None
    assert [text for text in right if not fits(text)] == []
    assert [text for text in wrong if fits(text)] == []


def test_a_format_that_kubernetes_does_not_know_means_nothing():
    assert string_format("made-up") is None


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(x+x+)+y"])
def test_a_pattern_with_many_ways_to_fail_is_answered_all_the_same(pattern: str) -> None:
    """By trying one way after the other these would take longer than anybody can wait."""
    assert not compile_pattern(pattern).matches("a" * 60 + "!" + "x" * 60)
    assert compile_pattern("^(a+)+$").matches("a" * 60)


def test_a_pattern_remembers_what_it_said_of_a_few_short_texts() -> None:
    pattern = compile_pattern(
        r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
    )
    known = pattern._known  # pyright: ignore[reportPrivateUsage]
    for _ in range(2):
        assert pattern.matches("32Mi") and not pattern.matches("32 Mi") and pattern.matches("1" * 200)
        assert known == {"32Mi": True, "32 Mi": False}
    for number in range(3 * MOST_KNOWN):
        assert pattern.matches(f"{number}m")
    assert len(known) <= MOST_KNOWN
