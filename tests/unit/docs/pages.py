"""The pages that people read, taken apart: headings, links, code, and what stands in backticks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SPAN = re.compile(r"`([^`]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


class Block(NamedTuple):
    language: str
    text: str


def name_of(page: Path) -> str:
    """The page's path from the root of the tree, as a test's id."""
    return str(page.relative_to(ROOT))


@cache
def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks_of(page: Path) -> list[Block]:
    return [Block(language, text) for language, text in FENCE.findall(text_of(page))]


def prose_of(page: Path) -> str:
    """The page without its fenced blocks."""
    return FENCE.sub("", text_of(page))


def spans_of(page: Path) -> list[str]:
    """What stands in backticks, on one line, with a table's escaped bars as plain ones."""
    return [" ".join(span.split()).replace("\\|", "|") for span in SPAN.findall(prose_of(page))]


def links_of(page: Path) -> list[str]:
    return LINK.findall(SPAN.sub("", prose_of(page)))


def anchors_of(page: Path) -> set[str]:
    """The names by which GitHub lets a link lead to a heading."""
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in HEADING.findall(prose_of(page)))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain}


def problems(find: Callable[[Path], Iterable[str]]) -> dict[str, list[str]]:
    """What is not so, by page; pages that are right are left out."""
    return {name_of(page): found for page in PAGES if (found := sorted(set(find(page))))}
