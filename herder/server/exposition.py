"""One text for Prometheus from those of several processes.

A family that more than one of them has is named and explained once. What another process counted says whose it is by the label
`process`; so does what every process has of its own kind (`process_*`, `python_*`). What only the engine counts stays as it is.
Which labels a series has never depends on who answered this time.

The texts are those of prometheus-client: families one after the other, each with its HELP and TYPE. They are taken apart by
lines and not parsed: thousands of samples are asked for again and again, by the process that everybody waits for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

ENGINE = "engine"
LABEL = "process"
UP = "herder_process_up"
_FAMILY = re.compile(rb"# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) [^\n]*\n# TYPE \1 [a-z]+\n")
# Nothing after the labels has a brace: the last one of a line ends them, whatever their values hold.
_SAMPLE = re.compile(rb"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})?(?= )", re.MULTILINE)
_OF_EVERY_PROCESS = (b"process_", b"python_")


class UnreadableText(Exception):
    """It is not what a process of ours says."""


class Family:
    def __init__(self, head: bytes) -> None:
        self.head = head
        self.samples: list[bytes] = []


def merge(texts: Mapping[str, bytes | None]) -> bytes:
    """By process; None for one that did not answer, of which it is said that it is not up."""
    families: dict[bytes, Family] = {}
    up = dict.fromkeys(texts, 0)
    for process, text in texts.items():
        if text is None:
            continue
        try:
            _add(families, _families_of(text), process)
        except UnreadableText:
            continue
        up[process] = 1
    parts = [part for family in families.values() for part in (family.head, *family.samples)]
    return b"".join((*parts, _who_is_up(up)))


def _add(families: dict[bytes, Family], text: list[tuple[bytes, bytes, bytes]], process: str) -> None:
    for name, head, samples in text:
        if process != ENGINE or name.startswith(_OF_EVERY_PROCESS):
            samples = _labelled(samples, process)
        families.setdefault(name, Family(head)).samples.append(samples)


def _families_of(text: bytes) -> list[tuple[bytes, bytes, bytes]]:
    """Name, head and samples of each."""
    heads = list(_FAMILY.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    if not heads or heads[0].start() != 0 or not text.endswith(b"\n"):
        raise UnreadableText
    return [(head[1], head[0], text[head.end() : end]) for head, end in zip(heads, ends, strict=True)]


def _labelled(samples: bytes, process: str) -> bytes:
    label = b'%s="%s"' % (LABEL.encode(), process.encode())
    return _SAMPLE.sub(lambda found: b"%s{%s%s}" % (found[1], found[2] + b"," if found[2] else b"", label), samples)


def _who_is_up(up: Mapping[str, int]) -> bytes:
    head = f"# HELP {UP} Whether the process said what it counts.\n# TYPE {UP} gauge\n"
    return (head + "".join(f'{UP}{{{LABEL}="{process}"}} {value}\n' for process, value in up.items())).encode()
