"""Remarks in examples and in the code lead to files and commands that are there."""

import re

from .pages import ROOT
from .sources import files
from .test_commands import wrong_in

EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
WRITTEN = re.compile(r"(?<![\w/])(?:docs/[\w./-]+\.md|examples/[\w.-]+\.yaml)")


def test_commands_that_an_example_shows_exist() -> None:
    typed = [line for path in EXAMPLES for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#   ")]
    assert typed
    assert [problem for line in typed for problem in wrong_in(line)] == []


def test_other_examples_that_an_example_names_are_there() -> None:
    named = {(path.name, name) for path in EXAMPLES for name in re.findall(r"[\w-]+\.yaml", path.read_text(encoding="utf-8"))}
    assert sorted(one for one in named if f"examples/{one[1]}" not in files()) == []


def test_pages_and_examples_that_the_code_names_are_there() -> None:
    code = [path for path in files() if path.endswith((".py", ".sh", ".yaml")) and "unit/docs" not in path]
    named = {(path, name) for path in code for name in WRITTEN.findall((ROOT / path).read_text(encoding="utf-8"))}
    assert named
    assert sorted(one for one in named if one[1] not in files()) == []
