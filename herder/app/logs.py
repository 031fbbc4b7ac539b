"""Logs of our processes: one line each, to stderr, so that whoever runs us decides where they go."""

from __future__ import annotations

import contextlib
import logging
import sys
from typing import Any, TextIO, cast


class _Stderr:
    """What nobody reads is lost: a closed terminal, or a pipe to a program that has ended, is no reason for work to fail."""

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            sys.stderr.write(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            sys.stderr.flush()


def configure(process: str, level: int = logging.INFO) -> None:
    # Imported here: only processes that stay write logs, and `herder --help` should not wait for it.
    import structlog

    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, cast(Any, _Stderr()))),
    )
    structlog.contextvars.bind_contextvars(process=process)
