"""A value that a schema accepts, with every field that the schema knows."""

from typing import Any

Json = dict[str, Any]
MOMENT = "2030-01-02T03:04:05Z"
BY_PATTERN_HINT = (
    ("https?://", "https://example.com/disk.qcow2"),
    ("sha256", "sha256:00ff"),
    ("{2}[:-]", "02:00:00:00:00:01"),
    ("µs", "5m"),
)


def sample(schema: Json) -> Any:
    if schema.get("x-kubernetes-int-or-string"):
        return "1"
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("type") == "object":
        return _object(schema)
    if schema.get("type") == "array":
        return [sample(schema["items"])]
    return _scalar(schema)


def _object(schema: Json) -> Json:
    values = schema.get("additionalProperties")
    if isinstance(values, dict):
        return {"a": sample(values)}
    return {name: sample(one) for name, one in schema.get("properties", {}).items()}


def _scalar(schema: Json) -> Any:
    kind = schema.get("type")
    if kind == "integer":
        return max(1, schema.get("minimum", 1))
    if kind == "boolean":
        return True
    if schema.get("format") == "date-time":
        return MOMENT
    pattern = schema.get("pattern", "")
    return next((value for hint, value in BY_PATTERN_HINT if hint in pattern), "a")
