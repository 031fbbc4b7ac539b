"""Reading what a client sent: JSON, YAML or protobuf into a document of the right kind, with unknown and doubled fields noticed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from herder.api.nesting import extent_of, too_deep, too_many_values
from herder.api.problems import MOST_SHOWN, invalid, not_supported, quoted
from herder.api.yaml_documents import TooManyValues, YamlError, read_yaml
from herder.server import protobuf
from herder.server.request import BODY_LIMIT, FIELD_VALIDATION, Request
from herder.server.resources import Resource
from herder.server.schema import duplicate_keys
from herder.server.served import Served
from herder.server.status import (
    ApiError,
    bad_request,
    invalid_kind,
    invalid_options,
    too_large,
    too_large_to_read,
    unsupported_media_type,
)

BODY_TYPES = ("application/json", "application/yaml", protobuf.MEDIA_TYPE)
STRICT = "Strict"
WARN = "Warn"
IGNORE = "Ignore"

Document = dict[str, Any]


def media_type(request: Request) -> str:
    return request.headers.get("Content-Type", "application/json").split(";", 1)[0].strip().lower() or "application/json"


def write_type(request: Request) -> str:
    """The media type of a write. What cannot be read at all is refused first, then the query; only then the body is looked at."""
    kind = media_type(request)
    if kind not in BODY_TYPES:
        raise unsupported_media_type(BODY_TYPES)
    request.check_write_options()
    return kind


class Parsed(NamedTuple):
    """What was sent, the same as JSON, and a sentence for each key that it says twice; None where the JSON still shows them."""

    value: Any
    raw: bytes
    doubled: list[str] | None = None


def parse(raw: bytes, kind: str, expected: Resource | None = None) -> Parsed:
    """`expected`: what is meant where protobuf does not name its kind."""
    if kind == "application/json":
        raw = readable(raw)
        check_extent(raw)
        try:
            return Parsed(msgspec.json.decode(raw), raw)
        except (ValueError, RecursionError) as error:
            raise _unreadable(raw, error) from None
    if kind == "application/yaml":
        return parse_yaml(raw)
    if kind == protobuf.MEDIA_TYPE:
        return _parse_protobuf(raw, expected)
    raise unsupported_media_type(BODY_TYPES)


def check_extent(raw: bytes) -> None:
    """Whatever walks through a document calls itself for each level of it, and takes its time for each value."""
    extent = extent_of(raw)
    if extent.too_deep:
        raise bad_request(f"the body of the request cannot be read: {too_deep()}")
    if extent.too_much:
        raise too_large_to_read(too_many_values())


# Escapes of JSON: a pair of surrogates, half of one, or any other.
_ESCAPE = re.compile(rb"(?s)\\(?:u(?i:d[89ab][0-9a-f]{2})\\u(?i:d[c-f][0-9a-f]{2})|(u(?i:d[89a-f][0-9a-f]{2}))|.)")


def readable(raw: bytes) -> bytes:
    """What is no text in any encoding is replaced, as Go does it: bytes that are not UTF-8, halves of surrogate pairs."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        raw = raw.decode(errors="replace").encode()
    if b"\\ud" in raw or b"\\uD" in raw:
        return _ESCAPE.sub(lambda escape: b"\\ufffd" if escape[1] else escape[0], raw)
    return raw


def _parse_protobuf(raw: bytes, expected: Resource | None) -> Parsed:
    if expected is not None and not expected.builtin:
        # Nobody knows the messages of kinds that CRDs bring.
        raise unsupported_media_type(BODY_TYPES[:2])
    try:
        value = protobuf.read_body(raw, *((expected.group_version, expected.kind) if expected else ()))
    except protobuf.WireError as error:
        raise bad_request(f"the body of the request is not a protobuf message: {error}") from None
    return Parsed(value, msgspec.json.encode(value))


def _unreadable(raw: bytes, error: Exception) -> ApiError:
    if raw.startswith(b"\xef\xbb\xbf"):
        return bad_request("error decoding: the body starts with a byte order mark; send plain UTF-8")
    return bad_request(f"the body of the request is not JSON: {error}")


def parse_yaml(raw: bytes) -> Parsed:
    """Most of what comes as YAML is JSON, which is read faster, and is YAML too."""
    try:
        if raw.lstrip()[:1] == b"{" and not any(extent_of(raw)):
            value = msgspec.json.decode(raw)
            return Parsed(value, raw, _doubled_lines(raw) if duplicate_keys(raw, value) else [])
    except ValueError:
        pass  # in braces, and yet not JSON
    doubled: list[str] = []
    try:
        encoded = msgspec.json.encode(read_yaml(raw, doubled))
        # Read once more: what an alias stands for is in several places, and each is a copy of its own.
        return Parsed(msgspec.json.decode(encoded), encoded, doubled)
    except TooManyValues as error:
        raise bad_request(f"error decoding YAML: {error}; send JSON") from None
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise bad_request(f"error decoding YAML: {error}") from None


def _doubled_lines(raw: bytes) -> list[str] | None:
    """Of JSON that came as YAML: then lines are told, unless it is more than is read as YAML."""
    doubled: list[str] = []
    try:
        read_yaml(raw, doubled)
    except YamlError:
        return None
    return doubled


def yaml_error(doubled: Sequence[str]) -> str:
    """What Kubernetes makes of keys that are said twice, where one is enough to refuse the whole."""
    return "\n  ".join(("yaml: unmarshal errors:", *doubled))


def read_document(request: Request, served: Served) -> tuple[Document, bool]:
    """An object for create and update: of the kind that the path names, pruned of what its kind does not have. And whether its
    types are known to be right."""
    parsed = parse(read_limited(request), write_type(request), served.resource)
    document = as_object(parsed.value)
    check_kind(document, served)
    return document, check_fields(request, served, document, parsed.raw, parsed.doubled)


def read_limited(request: Request) -> bytes:
    if len(request.body) > BODY_LIMIT:
        raise too_large(BODY_LIMIT)
    return request.body


def as_object(value: Any) -> Document:
    if not isinstance(value, dict):
        raise bad_request("the body of the request must be a JSON object")
    return value


def check_kind(document: Document, served: Served) -> None:
    resource = served.resource
    if resource.builtin:
        # The path says it as well.
        document["kind"] = document.get("kind") or resource.kind
        document["apiVersion"] = document.get("apiVersion") or resource.group_version
    kind, version = document.get("kind"), document.get("apiVersion")
    if not isinstance(kind, str) or not kind:
        raise bad_request(f"Object 'Kind' is missing in the body; expected {resource.kind!r}")
    if not isinstance(version, str) or not version:
        raise bad_request(f"Object 'apiVersion' is missing in the body; expected {resource.group_version!r}")
    if version != resource.group_version:
        raise bad_request(
            f"the API version in the data ({version}) does not match the expected API version ({resource.group_version})"
        )
    if kind != resource.kind:
        why = f"the kind in the data ({kind}) does not match the expected kind ({resource.kind})"
        raise bad_request(why) if resource.builtin else wrong_kind(resource, kind)


def wrong_kind(resource: Resource, kind: str) -> ApiError:
    return invalid_kind(resource.group, resource.kind, "", [invalid("kind", kind, f"must be {resource.kind}")])


def check_fields(request: Request, served: Served, document: Document, raw: bytes, doubled: Sequence[str] | None = None) -> bool:
    """Unknown fields are refused, warned of or dropped, as the client wishes (`fieldValidation`); wrong types always refused.
    `doubled`: what is known to be said twice; else it is looked for."""
    mode = validation_mode(request)
    findings = _said_twice(document, raw, doubled, mode) if mode != IGNORE else []
    typed = served.schema.accepts(raw)
    if not typed:
        refuse_wrong_types(served, document)  # of a custom resource only its metadata: the schema judges the rest
        unknown = served.schema.unknown_fields(document) if mode != IGNORE else []
        findings += [_unknown(served, path) for path in unknown]
        if unknown or mode == IGNORE:
            served.schema.prune(document)
    sentence = served.strategy.conform(document)
    if sentence:
        raise not_handled(served, sentence)
    report_findings(request, served, findings, mode)
    return typed


def _said_twice(document: Document, raw: bytes, doubled: Sequence[str] | None, mode: str) -> list[str]:
    if doubled is None:
        return [f"duplicate field {quoted(path)}" for path in duplicate_keys(raw, document)]
    return [yaml_error(doubled)] if doubled and mode == STRICT else list(doubled)


def report_findings(request: Request, served: Served, findings: list[str], mode: str) -> None:
    if findings and mode == STRICT:
        text = f"strict decoding error: {listed(findings)}"
        raise not_handled(served, text) if served.resource.builtin else bad_request(text)
    request.warnings.extend(findings)


def listed(sentences: list[str]) -> str:
    """Of very many the first, and how many more there are."""
    more = len(sentences) - MOST_SHOWN
    told = [*sentences[:MOST_SHOWN], f"and {more} more"] if more > 0 else sentences
    return ", ".join(told)


def _unknown(served: Served, path: str) -> str:
    hint = served.schema.did_you_mean(path)
    return f"unknown field {quoted(path)}" + (f' (did you mean "{hint}"?)' if hint else "")


def refuse_wrong_types(served: Served, document: Document) -> None:
    sentences = served.schema.type_errors(document)
    if sentences:
        raise not_handled(served, listed(sentences))


def not_handled(served: Served, why: str) -> ApiError:
    kind, version = served.resource.kind, served.resource.version
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {why}')


def validation_mode(request: Request) -> str:
    mode = request.query.get("fieldValidation") or WARN
    if mode not in FIELD_VALIDATION:
        raise invalid_options(request.options_kind, [not_supported("fieldValidation", mode, FIELD_VALIDATION)])
    return mode
