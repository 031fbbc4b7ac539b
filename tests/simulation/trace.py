"""All that happened, line by line with its virtual time: the same seed has to give the same lines."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Generator, MutableMapping
from contextlib import contextmanager
from typing import Any

import structlog


class Trace:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.lines: list[str] = []
        self._ended = False

    def end(self) -> None:
        self._ended = True

    def add(self, who: str, text: str) -> None:
        if self._ended:
            return
        self.lines.append(f"{self._now():12.6f} {who}: {text}")

    def errors(self) -> list[str]:
        """What was logged as an error, and processes that fell over by themselves."""
        return [line for line in self.lines if " log: error " in line or ": failed: " in line]

    def tail(self, lines: int) -> str:
        return "\n".join(self.lines[-lines:])

    @contextmanager
    def logs(self) -> Generator[None]:
        """What anybody logs meanwhile is part of it."""
        before = structlog.get_config()
        structlog.configure(processors=[self._log], cache_logger_on_first_use=False)
        try:
            yield
        finally:
            structlog.configure(**before)

    def _log(self, _: Any, level: str, event: MutableMapping[str, Any]) -> str:
        words = " ".join(f"{key}={_plain(value)}" for key, value in sorted(event.items()) if key != "event")
        self.add("log", f"{level} {event.get('event', '')} {words}".rstrip())
        raise structlog.DropEvent


def hash_of(lines: list[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _plain(value: Any) -> str:
    return str(value) if isinstance(value, str | int | float | bool | tuple | None) else type(value).__name__


def fingerprint(body: bytes) -> str:
    """Enough to see that two bodies differ."""
    return f"{zlib.crc32(body):08x}" if body else "-"
