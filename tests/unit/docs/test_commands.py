"""Each command and flag that a page shows is one that the program has."""

import re
import shlex
from pathlib import Path

import click

from bench.__main__ import BENCHMARKS
from herder.app.main import cli

from .pages import PAGES, ROOT, blocks_of, name_of, problems, prose_of, spans_of
from .sources import files

HERDER = re.compile(r"(?<![\w./-])(?:\.venv/bin/)?herder (?=[a-z-])(.*)")
MAKE = re.compile(r"(?:^|[\s(`])make (?:-s )?([a-z-]+)(?=[\s`);]|$)")
MODULE = re.compile(r"python3? -m ([\w.]+)")
BENCH = re.compile(r"(?:python -m bench|make bench ARGS=)\s?([a-z-]+)|(?<=`)ARGS=([a-z-]+)")
FLAG = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")
# Flags that pages name alone and that are those of other programs.
OF_OTHERS = {
    *("--authorization-mode", "--kubelet-certificate-authority", "--kubelet-client-certificate"),  # kube-apiserver
    *("--kubelet-insecure-tls", "--kubelet-use-node-status-port"),  # metrics-server
    *("--as", "--grace-period", "--since", "--timestamps", "--server-side", "--seed", "--seeds"),  # kubectl, pytest
    *("--require-hashes", "--universal", "--generate-hashes"),  # uv
}
HELP = {"-h", "--help"}


def _shown(page: Path) -> list[str]:
    """What can be typed: lines of shell blocks (continued ones joined, no remarks), indented lines, and words in backticks."""
    typed = "".join(block.text for block in blocks_of(page) if block.language in ("sh", "")).replace("\\\n", " ")
    lines = [line.split("  #")[0].removeprefix("$ ").strip() for line in typed.splitlines()]
    return lines + re.findall(r"^ {4}(\S.*)$", prose_of(page), re.MULTILINE) + spans_of(page)


def _options(command: click.Command) -> set[str]:
    return HELP | {name for option in command.params for name in (*option.opts, *option.secondary_opts)}


def _names(word: str) -> list[str]:
    """`start|stop` stands for both."""
    return word.split("|")


def _wrong(command: click.Command, words: list[str], said: str) -> list[str]:
    """What is not so in a command line, from its own command on."""
    if isinstance(command, click.Group) and words and all(name in command.commands for name in _names(words[0])):
        return [problem for name in _names(words[0]) for problem in _wrong(command.commands[name], words[1:], f"{said} {name}")]
    if isinstance(command, click.Group) and not command.invoke_without_command and words and re.fullmatch(r"[a-z|-]+", words[0]):
        return [f"{said} {words[0]}"]
    flags = [flag for word in words for flag in FLAG.findall(word) if word.startswith("-")]
    return [f"{said} {flag}" for flag in flags if flag not in _options(command)]


def _words(typed: str) -> list[str]:
    """The words of one command: optional parts are taken as said; what is in $(…) or behind a pipe is another command."""
    plain = re.sub(r"\$\([^)]*\)", "WORD", typed)
    inside = re.sub(r"[\[\]…]", " ", re.sub(r"\[([^\]]*)\]", lambda part: part[1].replace("|", " "), plain))
    return re.split(r"(?:^| )(?:\||>|<|&|;|#)", inside)[0].replace(")", " ").replace('"', " ").split()


def wrong_in(line: str) -> list[str]:
    """What the program does not have of what is typed there; nothing where another program is meant."""
    found = HERDER.search(line)
    return _wrong(cli, _words(found[1]), "herder") if found else []


def test_commands_of_ours_exist_with_the_flags_that_are_shown() -> None:
    assert problems(lambda page: [problem for line in _shown(page) for problem in wrong_in(line)]) == {}


def _all_options(command: click.Command) -> set[str]:
    below = command.commands.values() if isinstance(command, click.Group) else ()
    return _options(command).union(*(_all_options(inner) for inner in below))


def _wrong_flags(page: Path) -> set[str]:
    alone = {flag for span in spans_of(page) if span.startswith("--") for flag in FLAG.findall(span)}
    return alone - _all_options(cli) - OF_OTHERS


def test_flags_that_are_named_alone_are_flags_of_a_command() -> None:
    assert problems(_wrong_flags) == {}


def test_targets_of_make_are_in_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    shown = {(name_of(page), name) for page in PAGES for line in _shown(page) for name in MAKE.findall(line)}
    assert shown
    assert sorted(one for one in shown if one[1] not in targets) == []


def test_contributors_are_told_of_every_target_of_make() -> None:
    phony = re.search(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert phony
    told = {name for span in spans_of(ROOT / "CONTRIBUTING.md") for name in MAKE.findall(span)}
    assert sorted(set(phony[1].split()) - told) == []


def test_modules_that_are_run_and_benchmarks_are_there() -> None:
    typed = [(name_of(page), line) for page in PAGES for line in [*_shown(page), *(f"`{span}" for span in spans_of(page))]]
    modules = {(page, name) for page, line in typed for name in MODULE.findall(line)}
    missing = {(page, name) for page, name in modules if not _module(name)}
    benchmarks = {(page, first or second) for page, line in typed for first, second in BENCH.findall(line)}
    assert modules
    assert benchmarks
    assert sorted(missing | {one for one in benchmarks if one[1] not in BENCHMARKS}) == []


def _module(name: str) -> bool:
    path = name.replace(".", "/")
    return f"{path}.py" in files() or f"{path}/__main__.py" in files()


def test_what_can_be_pasted_is_shell() -> None:
    for page in PAGES:
        for block in blocks_of(page):
            if block.language == "sh":
                assert shlex.split(block.text, comments=True), name_of(page)
