"""Files that are made from what the code says, and checked in: written by a command, and checked by the same."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

CHECK: Final = "--check"


class _PlainDumper(yaml.SafeDumper):
    """No anchors: a part that is used twice is written twice, as API servers want it."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def as_yaml(document: dict[str, Any]) -> str:
    """The same document gives the same bytes."""
    return yaml.dump(document, Dumper=_PlainDumper, sort_keys=False, width=120, allow_unicode=True)


class MadeFiles(msgspec.Struct, frozen=True):
    module: str
    # What they are made from, in the words of a sentence.
    source: str
    directory: Path
    # Name and text of every file.
    files: Callable[[], dict[str, str]]

    def stale(self, directory: Path) -> list[str]:
        """Names of files that are missing, too many or not what they should be."""
        wanted = self.files()
        present = {path.name: path.read_text(encoding="utf-8") for path in directory.glob("*.yaml")}
        return sorted(name for name in wanted.keys() | present.keys() if wanted.get(name) != present.get(name))

    def write(self, directory: Path) -> None:
        """Writes every file and removes those that are no longer made."""
        directory.mkdir(parents=True, exist_ok=True)
        wanted = self.files()
        for name in self.stale(directory):
            if name not in wanted:
                (directory / name).unlink()
        for name, text in wanted.items():
            (directory / name).write_text(text, encoding="utf-8")

    def main(self, arguments: list[str]) -> int:
        places = [one for one in arguments if not one.startswith("-")]
        if len(places) > 1 or any(one.startswith("-") and one != CHECK for one in arguments):
            print(f"usage: python -m {self.module} [{CHECK}] [DIR]", file=sys.stderr)
            return 2
        directory = Path(places[0]) if places else self.directory
        if CHECK not in arguments:
            self.write(directory)
            return 0
        names = self.stale(directory)
        for name in names:
            print(f"{directory / name} is not what {self.source}: run `python -m {self.module}`", file=sys.stderr)
        return 1 if names else 0
