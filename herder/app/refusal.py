"""A reason not to start, in one sentence, with the exit code that says which kind it is."""

from __future__ import annotations

import errno
import os

# 1 is for bugs; 2 is also what click ends with.
WRONG_USE = 2
CANNOT_USE_DATA = 3
CANNOT_LISTEN = 4
CANNOT_RUN = 5
CANNOT_USE_FILE = 6
NOT_ALLOWED = 7


class Refusal(Exception):
    def __init__(self, sentence: str, code: int) -> None:
        super().__init__(sentence)
        self.code = code


def reason_of(error: OSError) -> str:
    """What the system says; "file exists" of something that should have been a directory means the opposite to a reader."""
    number = errno.ENOTDIR if isinstance(error, FileExistsError) else error.errno or 0
    return os.strerror(number)
