"""What is in the tree: its files, and the words of its sources."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

from .pages import DOCS, ROOT

# Where a name on a page may come from. Not the documents: a name that only they know is what is looked for.
SOURCES = ("herder/", "deploy/", "examples/", "tools/", "bench/", "tests/simulation/", "tests/fuzz/", "Makefile", "pyproject.toml")
WRITTEN = {".py", ".sh", ".c", ".h", ".S", ".json", ".yaml", ".toml", ".go", ""}
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@cache
def files() -> frozenset[str]:
    """All files of the tree but what git is told to ignore, by their paths from the root."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return frozenset(path for path in listed.splitlines() if (ROOT / path).exists())


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
