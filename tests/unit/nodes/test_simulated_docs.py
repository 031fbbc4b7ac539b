"""docs/simulated.md lists what the code reads, with the values that it takes where nothing is written."""

import re
from pathlib import Path

import msgspec
import pytest

from herder.nodes.runtimes.base import Refused
from herder.nodes.runtimes.simulated.settings import KNOWN, STEPS, Settings, settings_of

PAGE = (Path(__file__).parents[3] / "docs" / "simulated.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| `([a-z-]+)` \| (.+?) \|", PAGE, re.MULTILINE))
WORDS = {"never": None, "nowhere": "", "all of its memory": None}


def test_the_page_lists_all_annotations_and_no_others() -> None:
    assert list(ROWS) == list(KNOWN)


@pytest.mark.parametrize("name", list(ROWS))
def test_the_default_on_the_page_is_the_default(name: str) -> None:
    field = name.replace("-", "_")
    default = msgspec.to_builtins(Settings())[field]
    if ROWS[name] in WORDS:
        assert WORDS[ROWS[name]] == default
    else:
        assert msgspec.to_builtins(settings_of({name: ROWS[name]}))[field] == default


def test_the_page_names_every_step_that_can_fail() -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith("| `fails-at` "))
    assert re.findall(r"`([a-z]+)`", row.split("|", 3)[3]) == list(STEPS)


def test_an_annotation_that_nobody_knows_is_named() -> None:
    with pytest.raises(Refused, match=r"simulated\.herder\.dev/boots is not known; known are: boot, "):
        settings_of({"boots": "1s"})
