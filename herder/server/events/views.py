"""v1 and events.k8s.io/v1 show the same events under other names. They are stored as v1, with the empty values that Go writes."""

from __future__ import annotations

from typing import Any

import msgspec

Document = dict[str, Any]

EVENTS = "events"
NEW_GROUP = "events.k8s.io"
# As the newer group calls it: as it is stored. Everything else has one name.
NEW_NAMES = {
    "regarding": "involvedObject",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
    "reportingController": "reportingComponent",
}
# What a stored event says even where nobody said it. Nobody owns it, and no rule hears it.
EMPTY: Document = {
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}
# Of these the newer group leaves out what is empty.
LEFT_OUT = ("reportingController", "reportingInstance")


class View:
    """How one of the two groups reads and writes events."""

    def __init__(self, api_version: str, names: dict[str, str]) -> None:
        self.api_version = api_version
        self._in = names
        self._out = {stored: shown for shown, stored in names.items()}
        self._head = msgspec.json.encode({"apiVersion": api_version})[:-1]
        self._empty = {self._out.get(name, name): value for name, value in EMPTY.items()}

    def stored(self, document: Document) -> Document:
        """From what this group calls it."""
        made = {self._in.get(name, name): value for name, value in document.items()}
        return {**EMPTY, **made, "apiVersion": CORE.api_version}

    def read(self, document: Document) -> Document:
        """A stored event as this group's rules and patches know it: without what is empty."""
        made = {self._out.get(name, name): value for name, value in document.items()}
        made["apiVersion"] = self.api_version
        self.drop_empty(made)
        return made

    def drop_empty(self, document: Document) -> None:
        for name, value in self._empty.items():
            if name in document and (document[name] == value or document[name] is None):
                del document[name]

    def shown(self, raw: bytes) -> bytes:
        """The stored bytes as this group shows them; what it shows already stays as it is."""
        if raw.startswith(self._head):
            return raw
        document: Document = msgspec.json.decode(raw)
        if document.get("apiVersion") == self.api_version:
            return raw
        made: Document = {"apiVersion": self.api_version, "kind": document["kind"], "metadata": document["metadata"]}
        for name, value in document.items():
            known: str = self._out.get(name, name)
            if known not in made and (value or known not in LEFT_OUT):
                made[known] = value
        return msgspec.json.encode(made)


CORE = View("v1", {})
NEW = View(f"{NEW_GROUP}/v1", NEW_NAMES)
