"""Reading what a client sent: JSON, YAML or protobuf into a document of the right kind, with unknown and doubled fields noticed."""

from __future__ import annotations

from typing import Any

import msgspec
import yaml

from herder.api.problems import MOST_SHOWN, invalid, not_supported, quoted, shortened
from herder.server import protobuf
from herder.server.nesting import extent_of, too_deep, too_many_values
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
from herder.server.yaml_bodies import read_yaml

BODY_TYPES = ("application/json", "application/yaml", protobuf.MEDIA_TYPE)
YAML_TYPES = ("application/yaml", "text/yaml", "application/x-yaml")
READABLE = ("application/json", *YAML_TYPES, protobuf.MEDIA_TYPE)
STRICT = "Strict"
WARN = "Warn"
IGNORE = "Ignore"

Document = dict[str, Any]


def media_type(request: Request) -> str:
    return request.headers.get("Content-Type", "application/json").split(";", 1)[0].strip().lower() or "application/json"


def write_type(request: Request) -> str:
    """The media type of a write. What cannot be read at all is refused first, then the query; only then the body is looked at."""
    kind = media_type(request)
    if kind not in READABLE:
        raise unsupported_media_type(BODY_TYPES)
    request.check_write_options()
    return kind


def parse(raw: bytes, kind: str, expected: Resource | None = None) -> tuple[Any, bytes]:
    """The value, and the same as JSON bytes. `expected`: what is meant where protobuf does not name its kind."""
    if kind == "application/json":
        raw = readable(raw)
        check_extent(raw)
        try:
            return msgspec.json.decode(raw), raw
        except (ValueError, RecursionError) as error:
            raise _unreadable(raw, error) from None
    if kind in YAML_TYPES:
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


def readable(raw: bytes) -> bytes:
    """What is not UTF-8 is replaced, as Go does it."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        return raw.decode(errors="replace").encode()
    return raw


def _parse_protobuf(raw: bytes, expected: Resource | None) -> tuple[Any, bytes]:
    if expected is not None and not expected.builtin:
        # Nobody knows the messages of kinds that CRDs bring.
        raise unsupported_media_type(BODY_TYPES[:2])
    try:
        value = protobuf.read_body(raw, *((expected.group_version, expected.kind) if expected else ()))
    except protobuf.WireError as error:
        raise bad_request(f"the body of the request is not a protobuf message: {error}") from None
    return value, msgspec.json.encode(value)


def _unreadable(raw: bytes, error: Exception) -> ApiError:
    if raw.startswith(b"\xef\xbb\xbf"):
        return bad_request("error decoding: the body starts with a byte order mark; send plain UTF-8")
    return bad_request(f"the body of the request is not JSON: {error}")


def parse_yaml(raw: bytes) -> tuple[Any, bytes]:
    """The value, and the same as JSON bytes. Most of what comes as YAML is JSON, which is read faster, and is YAML too."""
    try:
        if raw.lstrip()[:1] == b"{" and not any(extent_of(raw)):
            return msgspec.json.decode(raw), raw
    except ValueError:
        pass  # in braces, and yet not JSON
    try:
        encoded = msgspec.json.encode(read_yaml(raw))
        # Read once more: what an alias stands for is in several places, and each is a copy of its own.
        return msgspec.json.decode(encoded), encoded
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise bad_request(f"error decoding YAML: {error}") from None


def doubled_keys(raw: bytes) -> list[str]:
    """Keys that YAML says twice in one mapping; the last one counts."""
    found: list[str] = []
    _find_doubled(yaml.compose(raw, Loader=yaml.CSafeLoader), "", found)
    return found


def _find_doubled(node: Any, path: str, found: list[str]) -> None:
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            inside = f"{path}.{key.value}" if path else str(key.value)
            if inside in seen and len(found) < MOST_SHOWN:
                found.append(shortened(inside))
            seen.add(inside)
            _find_doubled(value, inside, found)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            _find_doubled(value, f"{path}[{number}]", found)


def read_document(request: Request, served: Served) -> tuple[Document, bool]:
    """An object for create and update: of the kind that the path names, pruned of what its kind does not have. And whether its
    types are known to be right."""
    value, raw = parse(read_limited(request), write_type(request), served.resource)
    document = as_object(value)
    check_kind(document, served)
    return document, check_fields(request, served, document, raw)


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
    kind, version = document.get("kind"), document.get("apiVersion")
    if not kind and not version and resource.builtin:
        document["kind"], document["apiVersion"] = resource.kind, resource.group_version
        return
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


def check_fields(request: Request, served: Served, document: Document, raw: bytes, *, once: bool = False) -> bool:
    """Unknown fields are refused, warned of or dropped, as the client wishes (`fieldValidation`); wrong types always refused."""
    mode = validation_mode(request)
    findings: list[str] = []
    if mode != IGNORE and not once:
        findings += [f"duplicate field {quoted(path)}" for path in duplicate_keys(raw, document)]
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
