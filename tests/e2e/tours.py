"""Where what people are told to type can be typed."""

from pathlib import Path

from tests.e2e.manifests import ROOT


def like_a_clone(folder: Path) -> Path:
    """A folder that looks like a clone after `make setup`, with nothing of an earlier tour in it."""
    for name in ("Makefile", "examples", "tools", "herder", "pyproject.toml", "requirements.lock"):
        (folder / name).symlink_to(ROOT / name)
    _set_up(folder / ".venv")
    return folder


def _set_up(environment: Path) -> None:
    """The one that all tests use. For make it is new: whatever changed since, it is not set up again from here."""
    environment.mkdir()
    for path in (ROOT / ".venv").iterdir():
        if path.name != ".ready":
            (environment / path.name).symlink_to(path)
    (environment / ".ready").touch()


def environment(kubectl_program: Path) -> dict[str, str]:
    return {"PATH": f"{kubectl_program.parent}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(Path.home())}
