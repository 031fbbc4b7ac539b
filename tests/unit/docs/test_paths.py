"""Whatever path a page names is there: in the tree, or as a file that the running program makes."""

import re
from pathlib import Path

from .pages import DOCS, ROOT, blocks_of, problems, prose_of, spans_of, text_of
from .sources import files, folders, source_text

TOPS = ("herder", "tests", "docs", "bench", "tools", "examples", "deploy", ".ci")
BELOW_A_TOP = re.compile(rf"(?<![\w/.-])(?:{'|'.join(re.escape(top) for top in TOPS)})/[\w./-]*\w/?")
OF_THE_TREE = re.compile(r"[\w./-]+\.(?:py|md|sh|toml|lock|c|go)")
# The files of a data directory and what stands in them for something: DATA/nodes/NODE, pvc-<uid>, empty-*.img.
AT_RUN_TIME = re.compile(r"[\w./<>* -]+\.(?:db|sock|socket|json|log|crt|key|img|iso|input)")
STANDS_FOR_SOMETHING = re.compile(r"<[^>]*>|\*|DATA|NODE|NAME|/")
# Files that are nobody's here: what somebody else's program has, and what a decision was against.
NOT_OURS = {"app.py", "uv.lock", "kube-root-ca.crt"}


def _in_the_tree(path: str) -> bool:
    wanted = path.removesuffix("/")
    return any(wanted == known or known.endswith(f"/{wanted}") for known in files() | folders())


def _not_in_the_tree(page: Path) -> set[str]:
    below = {path for path in BELOW_A_TOP.findall(text_of(page)) if not re.search(r"://\S*" + re.escape(path), text_of(page))}
    missing = {path for path in below if path.removesuffix("/") not in files() | folders()}
    named = {span for span in spans_of(page) if OF_THE_TREE.fullmatch(span)} - below - NOT_OURS
    return missing | {path for path in named if not _in_the_tree(path)}


def test_paths_that_pages_name_are_in_the_tree() -> None:
    assert problems(_not_in_the_tree) == {}


def _not_made(page: Path) -> set[str]:
    named = {span for span in spans_of(page) if AT_RUN_TIME.fullmatch(span) and not _in_the_tree(span)} - NOT_OURS
    return {path for path in named if not _made(path)}


def _made(path: str) -> bool:
    """Each part of the path is in the code: as one word, or as a word that an ending is added to."""
    parts = [part for part in STANDS_FOR_SOMETHING.split(path) if part.strip()]
    return all(part in source_text() or _with_an_ending(part) for part in parts)


def _with_an_ending(part: str) -> bool:
    stem, _, ending = part.rpartition(".")
    return f'"{stem}"' in source_text() and f'.{ending}"' in source_text()


def test_files_that_pages_say_are_made_are_made_by_the_code() -> None:
    assert problems(_not_made) == {}


def _tree_of_rooms() -> list[str]:
    page = DOCS / "architecture.md"
    return next(block.text for block in blocks_of(page) if block.text.startswith("herder/\n")).splitlines()[1:]


def test_the_tree_of_rooms_is_that_of_the_program() -> None:
    shown = [line.split("/")[0].strip() for line in _tree_of_rooms() if re.match(r"  \w+/", line)]
    there = {path.split("/")[1] for path in files() if path.startswith("herder/") and path.count("/") > 1}
    assert sorted(shown) == sorted(there)


def test_the_folders_in_the_tree_of_rooms_are_those_of_each_room() -> None:
    room, shown = "", set[str]()
    for line in _tree_of_rooms():
        named = re.findall(r"(?:^|  )(\w+)/(?= |$)", line)
        if re.match(r"  \w+/", line):
            room, named = named[0], named[1:]
        shown |= {f"{room}/{folder}" for folder in named}
    packages = [re.fullmatch(r"herder/(\w+/\w+)/__init__\.py", path) for path in files()]
    there = {package[1] for package in packages if package}
    assert sorted(shown) == sorted(there)


def test_the_tests_are_in_the_folders_that_contributors_are_told_of() -> None:
    told = {span.removesuffix("/") for span in spans_of(ROOT / "CONTRIBUTING.md") if re.fullmatch(r"tests/\w+/", span)}
    there = {str(path.relative_to(ROOT)) for path in (ROOT / "tests").iterdir() if (path / "__init__.py").exists()}
    assert sorted(told) == sorted(there)


def test_no_page_knows_the_machine_that_it_was_written_on() -> None:
    assert problems(lambda page: re.findall(r"(?<!\w)/(?:work|home|root|tmp)/\S*", prose_of(page))) == {}
