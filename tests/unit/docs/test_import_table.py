"""The import table of docs/architecture.md is that of the contracts that `make check` enforces."""

import re
import tomllib
from typing import Any

from .pages import DOCS, ROOT, text_of
from .sources import files

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONTRACTS: list[dict[str, Any]] = PYPROJECT["tool"]["importlinter"]["contracts"]
ROOMS = {path.split("/")[1] for path in files() if path.startswith("herder/") and path.count("/") > 1}
ROW = re.compile(r"^\| ([a-z, ]+?)(?: \([^|]*\))? \| ([a-z, ]+) \|$", re.MULTILINE)


def _rooms(modules: list[str]) -> set[str]:
    return {module.removeprefix("herder.") for module in modules if module.startswith("herder.")}


def _forbidden(contract: dict[str, Any], room: str) -> set[str]:
    if contract["type"] == "independence":
        apart = _rooms(contract["modules"])
        return apart if room in apart else set()
    return _rooms(contract["forbidden_modules"]) if room in _rooms(contract["source_modules"]) else set()


def _allowed(room: str) -> set[str]:
    return ROOMS - {room} - set[str]().union(*(_forbidden(contract, room) for contract in CONTRACTS))


def _table() -> dict[str, set[str]]:
    text = text_of(DOCS / "architecture.md")
    table = text[text.index("| room | may import |") :]
    told: dict[str, set[str]] = {}
    for names, imports in ROW.findall(table[: table.index("\n\n")])[1:]:
        for room in names.split(", "):
            allowed = {"all": ROOMS - {room}, "nothing of ours": set[str]()}.get(imports)
            told[room] = set(imports.split(", ")) if allowed is None else allowed
    return told


def test_the_import_table_is_that_of_the_contracts() -> None:
    assert _table() == {room: _allowed(room) for room in ROOMS}


def test_a_contract_forbids_what_its_name_says() -> None:
    for contract in CONTRACTS:
        if said := re.fullmatch(r".+ may import (?:only (.+)|nothing of ours)", contract["name"]):
            named = set(re.split(r", | and ", said[1])) if said[1] else set[str]()
            for room in _rooms(contract["source_modules"]):
                assert _allowed(room) == named, contract["name"]
