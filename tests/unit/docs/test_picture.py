"""The picture of a terminal in the README shows commands of the tour, and what came of them."""

import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tools.terminal.draw import COMMANDS
from tools.terminal.screen import shown

from .pages import ROOT, links_of, text_of
from .test_commands import wrong_in

README = ROOT / "README.md"
PICTURE = ROOT / "docs" / "terminal.svg"
TEXT = "{http://www.w3.org/2000/svg}text"


def _lines(picture: Path) -> list[str]:
    """From top to bottom; a line is drawn in pieces of one colour."""
    rows: dict[float, dict[float, str]] = {}
    for piece in ElementTree.parse(picture).iter(TEXT):
        rows.setdefault(float(piece.get("y", 0)), {})[float(piece.get("x", 0))] = "".join(piece.itertext())
    return ["".join(text for _, text in sorted(rows[y].items())).replace("\xa0", " ").strip() for y in sorted(rows)]


def test_the_readme_shows_the_picture_in_its_first_screen() -> None:
    assert "docs/terminal.svg" in links_of(README)
    assert text_of(README)[: text_of(README).index("docs/terminal.svg")].count("\n") < 20


def test_the_picture_shows_the_commands_of_its_script() -> None:
    assert tuple(line.removeprefix("$ ") for line in _lines(PICTURE) if line.startswith("$ ")) == COMMANDS


def test_the_commands_of_the_picture_are_lines_of_the_tour() -> None:
    tour = text_of(README)[text_of(README).index("## Five minutes") :].splitlines()
    assert [command for command in COMMANDS if command not in tour] == []
    assert [problem for command in COMMANDS for problem in wrong_in(command)] == []


def test_the_guest_of_the_picture_missed_no_number() -> None:
    ticks = [int(number) for line in _lines(PICTURE) for number in re.findall(r"^tick (\d+) ok", line)]
    assert len(ticks) == 4
    assert all(later == earlier + 1 for earlier, later in pairwise(ticks))


@pytest.mark.parametrize(
    ("written", "lines"),
    [
        ("one\r\ntwo\r\n", ["one", "two"]),
        ("10 %\r20 %\r\ndone\r\n", ["20 %", "done"]),
        ("bar 1\r\nbar 2\r\n\x1b[2A\x1b[2Kall\r\n\x1b[2Kdone\r\n", ["all", "done"]),
        ("\x1b[?25l\x1b[32mgreen\x1b[0m\x1b[?25h", ["green"]),
    ],
)
def test_what_was_written_over_is_not_drawn(written: str, lines: list[str]) -> None:
    assert [line.plain for line in shown(written)] == lines
