"""How answers are printed: on a terminal, where there is none, and as documents."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator

import msgspec
import pytest
import yaml

from herder.cli.asking import refuse
from herder.cli.output import show
from herder.cli.tables import Part, Table

HOSTILE = "evil\x1b[2J\u202e[red]"


END = "<end>"


class Answer(msgspec.Struct, rename="camel"):
    target_node: str
    takes_it: bool = True


def text(answer: Answer) -> list[Part]:
    why = "because " * 20 + "of the end"
    return [
        f"It goes to {answer.target_node}.",
        Table(("NODE", "FITS", "WHY NOT"), [(answer.target_node, "yes", ""), ("b", "no", why)]),
    ]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Answer], str]]:
    """Shows an answer on a real terminal of 60 columns, and returns what came out of it."""
    ours, theirs = os.openpty()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.delenv("NO_COLOR", raising=False)

    def shown(answer: Answer) -> str:
        with open(theirs, "w", closefd=False) as stdout, monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", stdout)
            show(answer, text)
            stdout.write(END)
        # A terminal passes on what it gets bit by bit.
        said = ""
        while not said.endswith(END):
            said += os.read(ours, 65536).decode()
        return said.removesuffix(END).replace("\r\n", "\n")

    yield shown
    os.close(ours)
    os.close(theirs)


def test_where_there_is_no_terminal_tables_are_plain_columns(capsys: pytest.CaptureFixture[str]) -> None:
    show(Answer("a"), text)
    why = "because " * 20 + "of the end"
    assert capsys.readouterr().out == f"It goes to a.\nNODE   FITS   WHY NOT\na      yes\nb      no     {why}\n"


def test_a_terminal_gets_colours_and_rows_that_are_folded_to_its_width(terminal: Callable[[Answer], str]) -> None:
    said = terminal(Answer("a"))
    assert "\x1b[32myes" in said and "\x1b[31mno" in said
    assert max(len(line) for line in terminal_text(said)) <= 60
    assert " ".join(said.split()).endswith("because of the end")


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_who_wants_no_colours_gets_none(
    terminal: Callable[[Answer], str], monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    said = terminal(Answer("a"))
    assert "\x1b" not in said
    assert said.splitlines()[2].split() == ["a", "yes"]


def test_what_others_have_named_cannot_steer_the_terminal(
    terminal: Callable[[Answer], str], capsys: pytest.CaptureFixture[str]
) -> None:
    escaped = "evil\\x1b[2J\\u202e[red]"
    said = terminal(Answer(HOSTILE))
    assert said.splitlines()[0] == f"It goes to {escaped}."
    assert escaped in terminal_text(said)[2]
    show(Answer(HOSTILE), text)
    for output in ("json", "yaml"):
        show(Answer(HOSTILE), text, output)
    printed = capsys.readouterr().out
    assert escaped in printed
    assert printed.replace("\n", "").isprintable()


def test_a_refusal_that_quotes_others_cannot_steer_the_terminal_either(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        refuse(f"it failed: {HOSTILE}\nand again", 8)
    assert capsys.readouterr().err == "herder: it failed: evil\\x1b[2J\\u202e[red]\nand again\n"


def test_a_document_has_all_fields_in_the_case_of_kubernetes(capsys: pytest.CaptureFixture[str]) -> None:
    show(Answer("a"), text, "json")
    assert json.loads(capsys.readouterr().out) == {"targetNode": "a", "takesIt": True}
    show(Answer("a"), text, "yaml")
    printed = capsys.readouterr().out
    assert yaml.safe_load(printed) == {"targetNode": "a", "takesIt": True}
    assert printed == "targetNode: a\ntakesIt: true\n"


def terminal_text(said: str) -> list[str]:
    """Without colours."""
    for code in ("\x1b[1m", "\x1b[32m", "\x1b[31m", "\x1b[0m"):
        said = said.replace(code, "")
    return [line.rstrip() for line in said.splitlines()]
