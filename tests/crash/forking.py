"""The engine's process, started quickly and often: everything is imported once, and each life is a fork.

Each line on stdin starts a life. Its pid is answered, then "r" by the engine itself once it is ready, and "d" when it is dead.
"""

import asyncio
import ctypes
import os
import signal
import sys
from pathlib import Path

from herder.app import engine_process, logs
from herder.app.data_directory import DataDirectory

_PR_SET_PDEATHSIG = 1


def live(data: Path, listen_fd: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    logs.configure("engine")
    os._exit(asyncio.run(engine_process.run(DataDirectory(data), os.dup(listen_fd), os.dup(1))))


def main() -> None:
    data, listen_fd = Path(sys.argv[1]), int(sys.argv[2])
    while os.read(0, 1):
        child = os.fork()
        if not child:
            live(data, listen_fd)
        os.write(1, f"{child}\n".encode())
        os.waitpid(child, 0)
        os.write(1, b"d")


if __name__ == "__main__":
    main()
