"""The certificates and keys in the data directory: what of them goes into a backup, and how they come back whole.

Objects are restored in one transaction; files cannot be part of it. So the keys are first laid beside, with a mark that the
transaction stores as well. Whoever opens the directory next finishes what was begun, or drops it, by that mark.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from herder.app.data_directory import DataDirectory
from herder.pki.files import write_private
from herder.server.running import DATABASE
from herder.server.store import Database

# Made anew at each start.
NOT_KEPT = ("server.crt", "server.key", "kubelet.crt", "kubelet.key", "kubelet-client.crt", "kubelet-client.key")
LAID_BESIDE = "restored-keys"


class _Beside(msgspec.Struct):
    mark: str
    files: dict[str, bytes]


def kept_files(directory: DataDirectory) -> dict[str, bytes]:
    """The certificate authority, and whatever else signs for this data directory."""
    paths = sorted(path for path in directory.pki.glob("*") if path.is_file()) if directory.pki.is_dir() else []
    return {f"pki/{path.name}": path.read_bytes() for path in paths if _is_kept(path)}


def _is_kept(path: Path) -> bool:
    return path.name not in NOT_KEPT and not path.name.startswith(".") and path.suffix != ".new"


def lay_beside(directory: DataDirectory, files: dict[str, bytes], mark: str) -> None:
    named = {name: data for name, data in files.items() if _is_ours(name)}
    write_private(directory.path / LAID_BESIDE, msgspec.json.encode(_Beside(mark, named)))


def _is_ours(name: str) -> bool:
    """Never outside of the folder, whatever the file says."""
    folder, _, rest = name.partition("/")
    return folder == "pki" and rest not in ("", ".", "..") and "/" not in rest and "\0" not in rest


def finish(directory: DataDirectory) -> None:
    """Put the keys in place that belong to the objects that are there; those of a restore that never happened are dropped."""
    path = directory.path / LAID_BESIDE
    if not path.exists():
        return
    database = Database(directory.path / DATABASE)
    try:
        stored = database.meta("restored")
    finally:
        database.close()
    beside = msgspec.json.decode(path.read_bytes(), type=_Beside)
    if beside.mark == stored:
        directory.pki.mkdir(exist_ok=True)
        for name, data in beside.files.items():
            write_private(directory.path / name, data)
    path.unlink()
