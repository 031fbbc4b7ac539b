"""The engine's process, started quickly and often: everything is imported once, and each life is a fork.

Each line on stdin starts a life. Its pid is answered, then "r" by the engine itself once it is ready, and "d" when it is dead.
A number on the line: the life ends by itself when it has made so many calls since a restore began; 0 for one that does not count.
"""

import asyncio
import ctypes
import mmap
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from herder.app import engine_process, logs
from herder.app.data_directory import DataDirectory
from herder.server import upkeep
from herder.server.store import Database

_PR_SET_PDEATHSIG = 1


def count_calls_of_restores(file: Path, most: int) -> None:
    """In all threads, from the moment the backup is read on. How many there were until the commit stands in `file`."""
    file.write_bytes(bytes(8))
    with file.open("r+b") as opened:
        shared = mmap.mmap(opened.fileno(), 8)
    calls, begun, read, write = 0, False, upkeep.read_backup, Database.write

    def count(*_: Any) -> None:
        nonlocal calls
        if not begun:
            return
        calls += 1
        if calls >= most:
            os.kill(os.getpid(), signal.SIGKILL)

    def begin(path: Path) -> Any:
        nonlocal begun
        begun = True
        return read(path)

    def committed(database: Database, *arguments: Any) -> None:
        write(database, *arguments)
        if begun and not any(shared[:]):
            shared[:] = calls.to_bytes(8, "little")

    upkeep.read_backup = begin
    setattr(Database, "write", committed)  # noqa: B010 (it takes whatever the real one takes)
    threading.setprofile(count)
    sys.setprofile(count)


def live(data: Path, listen_fd: int, most: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if most:
        count_calls_of_restores(data.with_name("calls"), most)
    logs.configure("engine")
    os._exit(asyncio.run(engine_process.run(DataDirectory(data), os.dup(listen_fd), os.dup(1))))


def main() -> None:
    data, listen_fd = Path(sys.argv[1]), int(sys.argv[2])
    for line in iter(sys.stdin.readline, ""):
        child = os.fork()
        if not child:
            live(data, listen_fd, int(line))
        os.write(1, f"{child}\n".encode())
        os.waitpid(child, 0)
        os.write(1, b"d")


if __name__ == "__main__":
    main()
