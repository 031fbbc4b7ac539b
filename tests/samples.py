"""A value that a schema accepts, with every field that the schema knows and does not refuse."""

from typing import Any

Json = dict[str, Any]
MOMENT = "2030-01-02T03:04:05Z"
# By a part of the rule that the text must keep.
BY_RULE_HINT = (
    ("https?://", "https://example.com/disk.qcow2"),
    ("sha256", "sha256:" + "0f" * 32),
    ("{2}[:-]", "02:00:00:00:00:01"),
    ("b5s|", "5m"),
    ("{8}(-", "5d307ca9-b3ef-428c-8861-06e72d69f223"),
    ("/[0-9]{1,3}", "10.0.2.0/24"),
)


def sample(schema: Json) -> Any:
    if "example" in schema:
        return schema["example"]
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
    fields = schema.get("properties", {}).items()
    return {name: sample(one) for name, one in fields if not one.get("description", "").startswith("Refused: ")}


def _scalar(schema: Json) -> Any:
    kind = schema.get("type")
    if kind == "integer":
        return max(1, schema.get("minimum", 1))
    if kind == "boolean":
        return True
    if schema.get("format") == "date-time":
        return MOMENT
    rules = " ".join(rule["rule"] for rule in schema.get("x-kubernetes-validations", ()))
    return next((value for hint, value in BY_RULE_HINT if hint in rules), "a")
