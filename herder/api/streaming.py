"""Why a pod gives nobody a command, a connection, a console or a log: one sentence, the same from every engine and node. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from herder.api import labels

Wanted = Literal["exec", "portforward", "attach", "log"]

_MACHINE: Final[Mapping[Wanted, str]] = {
    "exec": "runs a virtual machine, and no node starts programs in a machine; use its console (herder console)",
    "portforward": "runs a virtual machine, and nodes pass on no connections; use the addresses of the machine",
}
_IMPORT: Final[Mapping[Wanted, str]] = {
    "exec": "fills a volume, and no other command can run in it",
    "portforward": "fills a volume, and listens on no port",
    "attach": "fills a volume, and has no console",
    "log": "fills a volume, and writes no log; `kubectl describe datavolume` shows how far it is",
}
_PLAIN: Final[Mapping[Wanted, str]] = {
    "exec": "is simulated: no container runs in it, so it cannot run a command",
    "portforward": "is simulated: no container runs in it, so nothing listens on its ports",
    "attach": "is simulated: no container runs in it, so there is nothing to attach to",
    "log": "is simulated: no container runs in it, so it writes no log",
}


def why_not(wanted: Wanted, namespace: str, name: str, annotations: Mapping[str, str]) -> str:
    """Empty where it can be had. What the pod's annotations say decides over the words alone."""
    words = _MACHINE if labels.GUEST in annotations else _IMPORT if labels.IMPORT in annotations else _PLAIN
    return f"pod {namespace}/{name} {words[wanted]}" if wanted in words else ""
