"""Warnings are bounded as kube-apiserver bounds them: clients refuse to read more headers than so many."""

from herder.server.warnings import MOST_EACH, MOST_IN_ALL, warning_headers


def texts_of(headers: list[str]) -> list[str]:
    return [header.removeprefix('299 - "').removesuffix('"') for header in headers]


def test_a_few_warnings_are_told_whole() -> None:
    long = "x" * (MOST_EACH + 100)
    assert warning_headers([long, "other"]) == [f'299 - "{long}"', '299 - "other"']


def test_each_is_told_once() -> None:
    assert warning_headers(["a", "b", "a"]) == ['299 - "a"', '299 - "b"']


def test_what_would_begin_a_line_or_end_the_text_is_escaped() -> None:
    assert warning_headers(['a\n"b"\\']) == ['299 - "a \\"b\\"\\\\"']
    assert warning_headers(["a\x01b\rc\x85d\U000e0001é"]) == ['299 - "a\\\\x01b\\\\rc\\\\u0085d\\\\U000e0001é"']


def test_of_very_many_the_first_are_told() -> None:
    told = texts_of(warning_headers(f'unknown field "spec.{number}"' for number in range(25_000)))
    assert told[:2] == ['unknown field \\"spec.0\\"', 'unknown field \\"spec.1\\"']
    assert sum(map(len, told)) < MOST_IN_ALL + MOST_EACH + 2 * len(told)


def test_once_there_are_too_many_each_is_cut() -> None:
    told = texts_of(warning_headers(["short", *(f"{number}-" + "x" * 1000 for number in range(100))]))
    assert told[0] == "short"
    assert {len(text) for text in told[1:]} == {MOST_EACH}
    assert sum(map(len, told)) < MOST_IN_ALL + MOST_EACH
