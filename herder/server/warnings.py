"""What a client is told beside the answer, in headers that it can still read: bounded as kube-apiserver bounds them."""

from __future__ import annotations

from collections.abc import Iterable

from herder.api.problems import printable, quoted

# In characters, of all texts together. What is more is cut: each text first, then those that come last.
MOST_IN_ALL = 4096
MOST_EACH = 256


def warning_headers(texts: Iterable[str]) -> list[str]:
    """Each text once, in order."""
    unique = list(dict.fromkeys(texts))
    if sum(map(len, unique)) > MOST_IN_ALL:
        unique = _cut(unique)
    return [_header(text) for text in unique]


def _cut(texts: list[str]) -> list[str]:
    kept: list[str] = []
    written = 0
    for text in texts:
        if written >= MOST_IN_ALL:
            break
        kept.append(text[:MOST_EACH])
        written += len(kept[-1])
    return kept


def _header(text: str) -> str:
    """Whatever the text holds, the header is one line: what ends it or cannot be printed is spelled out."""
    line = text.replace("\n", " ")
    return f"299 - {quoted(printable(line))}"
