"""What a client wants to be answered with: the Accept header, read as an API server reads it.

The first clause that can be served wins. Clauses are taken by quality, then in the order of the header. Protobuf is not
served, so such a clause is passed over for the next one.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

JSON = "json"
YAML = "yaml"

META_GROUP = "meta.k8s.io"
DISCOVERY_GROUP = "apidiscovery.k8s.io"

METADATA, METADATA_LIST = "PartialObjectMetadata", "PartialObjectMetadataList"
WITHOUT_TABLES = frozenset({METADATA, METADATA_LIST})
META_KINDS = WITHOUT_TABLES | {"Table"}
META_VERSIONS = frozenset({"v1", "v1beta1"})
DISCOVERY_KINDS = frozenset({"APIGroupDiscoveryList"})
DISCOVERY_VERSIONS = frozenset({"v2"})

_MEDIA_TYPES = {"application/json": JSON, "application/yaml": YAML, "application/*": JSON, "*/*": JSON, "*": JSON}


class Accepted(msgspec.Struct, frozen=True, gc=False):
    """The chosen answer. `as_kind` is empty when the object is wanted as it is."""

    as_kind: str = ""
    group: str = ""
    version: str = ""
    media_type: str = JSON
    pretty: bool = False

    @property
    def content_type(self) -> str:
        return f"application/{self.media_type}"


class _Clause(msgspec.Struct, frozen=True):
    media_type: str
    quality: float
    parameters: dict[str, str]


@lru_cache(maxsize=1024)
def parse_accept(header: str, tables: bool = True) -> Accepted | None:
    """For objects and lists: as they are, or as Table and PartialObjectMetadata. None: nothing acceptable (406). `tables`: whether
    there are any of this kind."""
    return _first_served(header, META_GROUP, META_VERSIONS, META_KINDS if tables else WITHOUT_TABLES)


@lru_cache(maxsize=256)
def parse_discovery_accept(header: str) -> Accepted | None:
    """For /api and /apis: the plain lists, or everything at once as APIGroupDiscoveryList."""
    return _first_served(header, DISCOVERY_GROUP, DISCOVERY_VERSIONS, DISCOVERY_KINDS)


@lru_cache(maxsize=256)
def parse_plain_accept(header: str) -> Accepted | None:
    """For what is shown in one way alone."""
    return _first_served(header, "", frozenset(), frozenset())


def first_of(header: str, offered: tuple[str, ...]) -> str | None:
    """For what has media types of its own: the one that is wanted most."""
    for clause in _clauses(header.strip() or "*/*"):
        for media_type in offered:
            if clause.media_type in (media_type, "application/*", "*/*", "*"):
                return media_type
    return None


def _first_served(header: str, group: str, versions: frozenset[str], kinds: frozenset[str]) -> Accepted | None:
    if not header.strip():
        return Accepted()
    for clause in _clauses(header):
        media_type = _MEDIA_TYPES.get(clause.media_type)
        if media_type is None or clause.parameters.get("stream", "watch") not in ("", "watch"):
            continue
        asked = clause.parameters
        pretty = asked.get("pretty") == "1"
        if not asked.keys() & {"as", "g", "v"}:
            return Accepted(media_type=media_type, pretty=pretty)
        if asked.get("g") == group and asked.get("v") in versions and asked.get("as") in kinds:
            return Accepted(asked["as"], group, asked["v"], media_type, pretty)
    return None


def _clauses(header: str) -> list[_Clause]:
    """By quality; wildcards after what is named; otherwise as written (the sort is stable)."""
    clauses = [_clause(part) for part in header.split(",") if part.strip()]
    return sorted(clauses, key=lambda clause: (-clause.quality, "*" in clause.media_type))


def _clause(part: str) -> _Clause:
    media_type, *raw = part.split(";")
    parameters: dict[str, str] = {}
    for one in raw:
        name, equals, value = one.partition("=")
        if equals and value:
            parameters[name.strip()] = value.strip()
    return _Clause(media_type.strip().lower().replace(" ", ""), _quality(parameters.pop("q", "1")), parameters)


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
