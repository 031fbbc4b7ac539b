"""Tables that list what the code has: all of it, and nothing else."""

import re
from pathlib import Path

import click

from herder.api import defaults
from herder.api.kinds.instance import InstancePhase
from herder.api.registry import KINDS
from herder.app.main import cli
from herder.server.builtins import BUILTINS
from herder.server.resource_metrics import MEASURED

from .pages import DOCS, PAGES, ROOT, blocks_of, spans_of, text_of


def _rows(page: Path, words: str) -> list[list[str]]:
    """The cells of the first table from these words on, without its head."""
    text = text_of(page)
    table = re.search(r"^\|.*?(?=^[^|]|\Z)", text[text.index(words) :], re.DOTALL | re.MULTILINE)
    assert table
    cells = [re.split(r" ?(?<!\\)\| ?", line)[1:-1] for line in table[0].splitlines()]
    return cells[2:]


def test_the_kinds_that_are_served_are_those_of_the_engine() -> None:
    listed = {kind for _, kinds in _rows(DOCS / "differences.md", "## What is served") for kind in re.findall(r"[A-Z]\w+", kinds)}
    assert listed == {one.kind for one in (*BUILTINS, *MEASURED, *KINDS)}
    groups = {group for cell, _ in _rows(DOCS / "differences.md", "## What is served") for group in cell.split(", ")}
    served = {f"{one.group}/{one.version}".removeprefix("/") for one in (*BUILTINS, *MEASURED, *KINDS)}
    assert groups == served


def test_the_kinds_of_the_readme_are_ours() -> None:
    row = next(line for line in text_of(ROOT / "README.md").splitlines() if line.startswith("| kinds | "))
    assert set(re.findall(r"[A-Z]\w+", row.split(";")[0])) == {info.kind for info in KINDS}


def _constant(setting: str) -> str:
    """parallelMigrationsPerCluster is PARALLEL_MIGRATIONS_PER_CLUSTER."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", setting.replace("GiB", "Gib")).upper()


def test_settings_of_migrations_have_the_values_that_are_built_in() -> None:
    told: dict[str, str] = {}
    for settings, values, _ in _rows(DOCS / "policies.md", "| setting | built in |"):
        names = re.findall(r"[a-z]+(?:[A-Z]\w+)+", re.sub(r"\([^)]*\)", "", settings))
        told |= dict(zip(names, values.split(", "), strict=True))
    assert told.pop("allowWorkloadDisruption") == "as allowPostCopy"
    assert told == {name: str(getattr(defaults, _constant(name))).replace("False", "false") for name in told}
    assert len(told) == 13


def test_the_options_of_a_node_are_all_explained() -> None:
    node = cli.commands["node"]
    told = {flag for option, _ in _rows(DOCS / "nodes.md", "# Nodes") for flag in re.findall(r"--[a-z-]+", option)}
    assert told == {name for option in node.params for name in (*option.opts, *option.secondary_opts)}


def test_ready_roles_are_those_that_are_deployed() -> None:
    told = {role.strip("`") for role, *_ in _rows(DOCS / "access.md", "## Ready roles")}
    assert told == {path.stem for path in (ROOT / "deploy" / "roles").glob("*.yaml") if "aggregate" not in path.stem}


def test_phases_of_an_instance_are_all_explained() -> None:
    told = [phase for phase, _ in _rows(DOCS / "machines.md", "## Phases of an instance")]
    assert set(told) == set(InstancePhase.__args__) - {"Unknown"}


def _commands(group: click.Group, said: str) -> list[str]:
    """Every command that `--help` shows."""
    found = list[str]()
    for name, command in group.commands.items():
        if not command.hidden:
            found += [f"{said} {name}", *(_commands(command, f"{said} {name}") if isinstance(command, click.Group) else [])]
    return found


def test_every_command_is_on_a_page() -> None:
    blocks = "\n".join(block.text for page in PAGES for block in blocks_of(page))
    spans = [span for page in PAGES for span in spans_of(page)]
    several = [found for span in spans for found in [re.match(r"herder (\w+(?:\|\w+)+)", span)] if found]
    told = "\n".join([blocks, *spans, *(f"herder {name}" for found in several for name in found[1].split("|"))])
    assert [name for name in _commands(cli, "herder") if not re.search(rf"{name}\b", told)] == []
