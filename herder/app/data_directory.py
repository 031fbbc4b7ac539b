"""The data directory: held by one `herder up` at a time, and readable by nobody else."""

from __future__ import annotations

import fcntl
import os
from functools import cached_property
from pathlib import Path

import msgspec

from herder.app.refusal import CANNOT_USE_DATA, Refusal, reason_of

LONGEST_SOCKET_NAME = 107


class Holder(msgspec.Struct):
    pid: int
    listen: str


class Held(Refusal):
    """Somebody else has it."""


class DataDirectory:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.pki = path / "pki"
        self._lock: int | None = None

    @cached_property
    def socket(self) -> Path:
        """For whoever holds the directory, and may do everything."""
        return self.socket_named("server")

    def socket_named(self, name: str) -> Path:
        """Through an open descriptor of the directory where its own name is longer than the kernel takes for a socket."""
        path = self.path / f"{name}.sock"
        if len(os.fsencode(path)) <= LONGEST_SOCKET_NAME:
            return path
        return Path(f"/proc/self/fd/{os.open(self.path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)}/{path.name}")

    def take(self, listen: str) -> None:
        """Refuses with who holds it. The lock is the kernel's: it goes with the process, however that ends."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self.path.chmod(0o700)
            self.pki.mkdir(exist_ok=True)
            lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Refusal(
                f"--data {self.path}: cannot be used as the data directory: {reason_of(error)}", CANNOT_USE_DATA
            ) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = _read_holder(lock)
            os.close(lock)
            who = f"another herder (pid {holder.pid}, on {holder.listen})" if holder else "another herder"
            raise Held(f"--data {self.path}: is held by {who}; stop that one or name another directory", CANNOT_USE_DATA) from None
        self._lock = lock
        self.announce(listen)

    @property
    def lock(self) -> int:
        """To be handed to the engine: as long as it lives, even without its supervisor, nobody else may have the data."""
        assert self._lock is not None
        return self._lock

    def guests(self) -> list[Path]:
        """The folders of all guests that nodes of this directory have, or had."""
        return sorted((self.path / "nodes").glob("*/guests/*"))

    def announce(self, listen: str) -> None:
        """Who holds it, for the next one who tries."""
        assert self._lock is not None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, msgspec.json.encode(Holder(os.getpid(), listen)), 0)

    def release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def last_holder(self) -> Holder | None:
        """Who holds it, or held it last: where the API is, or was."""
        try:
            return msgspec.json.decode((self.path / "lock").read_bytes(), type=Holder)
        except (OSError, msgspec.MsgspecError):
            return None


def is_herder(pid: int) -> bool:
    """And not another process that has its number by now."""
    try:
        return b"herder" in (Path("/proc") / str(pid) / "cmdline").read_bytes()
    except OSError:
        return False


def _read_holder(lock: int) -> Holder | None:
    try:
        return msgspec.json.decode(os.pread(lock, 4096, 0), type=Holder)
    except msgspec.MsgspecError:
        return None
