"""Words, defaults and labels that nobody uses mislead whoever looks for them: each is used, or is for an issue to come."""

import re
from pathlib import Path

import pytest

HERDER = Path(__file__).parents[3] / "herder"
# What an issue to come will use.
COMING = {
    "reasons": set[str](),
    "defaults": {
        "STATE_PRESERVATION",
    },
    "labels": set[str](),
}


CONSTANT = re.compile(r"^([A-Z][A-Z0-9_]+)(?:: Final)? = ", re.MULTILINE)


def _used(text: str, module: str) -> set[str]:
    """Names of the module that another one reads: as an attribute of it, or imported from it."""
    imports = re.findall(rf"^from herder\.api\.{module} import (\([^)]*\)|.*)$", text, re.MULTILINE)
    return {*re.findall(rf"\b{module}\.([A-Z][A-Z0-9_]+)\b", text), *re.findall(r"\b[A-Z][A-Z0-9_]+\b", " ".join(imports))}


@pytest.fixture(scope="module")
def texts() -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in sorted(HERDER.rglob("*.py"))}


@pytest.mark.parametrize("module", COMING)
def test_every_constant_is_used_or_is_for_an_issue_to_come(module: str, texts: dict[Path, str]) -> None:
    own = HERDER / "api" / f"{module}.py"
    used = {name for path, text in texts.items() if path != own for name in _used(text, module)}
    constants = set(CONSTANT.findall(texts[own]))
    assert len(constants) > 10
    assert constants - used == COMING[module]
