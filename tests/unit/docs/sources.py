"""What is in the tree: its files, and the words of its sources."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

from .pages import DOCS, ROOT

# Where a name on a page may come from. Not the documents: a name that only they know is what is looked for.
SOURCES = ("herder/", "deploy/", "examples/", "tools/", "bench/", "tests/simulation/", "tests/fuzz/", "Makefile", "pyproject.toml")
WRITTEN = {".py", ".sh", ".c", ".h", ".S", ".json", ".yaml", ".toml", ".go", ""}
# What is ignored by git.
MADE = {".git", ".venv", ".herder", ".hypothesis", "__pycache__", "results", "dist"}
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@cache
def files() -> frozenset[str]:
    """All files of the tree but what programs have left there, by their paths from the root."""
    found = set[str]()
    for folder, inner, names in os.walk(ROOT):
        inner[:] = [name for name in inner if name not in MADE and not name.endswith((".egg-info", "_cache"))]
        found |= {os.path.relpath(os.path.join(folder, name), ROOT) for name in names}
    return frozenset(found)


@cache
def folders() -> frozenset[str]:
    return frozenset(str(folder) for path in files() for folder in Path(path).parents if str(folder) != ".")


@cache
def source_text() -> str:
    """All sources in one text, without the tests of the pages."""
    here = str(Path(__file__).parent.relative_to(ROOT))
    chosen = (path for path in sorted(files()) if path.startswith(SOURCES) and not path.startswith((here, str(DOCS))))
    return "\n".join((ROOT / path).read_text(encoding="utf-8") for path in chosen if Path(path).suffix in WRITTEN)


@cache
def source_words() -> frozenset[str]:
    return frozenset(WORD.findall(source_text()))
