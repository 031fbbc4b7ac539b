"""Where what people are told to type can be typed."""

from pathlib import Path

from tests.e2e.manifests import ROOT


def like_a_clone(folder: Path) -> Path:
    """A folder that looks like a clone after `make setup`, with nothing of an earlier tour in it."""
    for name in ("Makefile", "examples", "tools", "herder", "pyproject.toml", "requirements.lock", ".venv"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def environment(kubectl_program: Path) -> dict[str, str]:
    return {"PATH": f"{kubectl_program.parent}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(Path.home())}
