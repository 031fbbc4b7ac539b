"""Custom kinds: what the administrator of a cluster may define, and what everyone may then send."""

from __future__ import annotations

from tests.attacks.attack import ADMINISTRATOR, EDITOR, NAMESPACE, Plan, Shot, attack, create, dry, encoded
from tests.attacks.classes.documents import counted, up_to

GROUP = "attacks.example.com"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
Json = dict[str, object]
TEXT: Json = {"type": "string"}


def definition(name: str, properties: Json, columns: list[Json] | None = None) -> Json:
    plural, group = f"{name}s", GROUP
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}},
        **({"additionalPrinterColumns": columns} if columns else {}),
    }
    names = {"plural": plural, "singular": name, "kind": name.capitalize(), "listKind": f"{name.capitalize()}List"}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**kind, "metadata": {"name": f"{plural}.{group}"}, "spec": spec}


def objects(name: str) -> str:
    return f"/apis/attacks.example.com/v1/namespaces/{NAMESPACE}/{name}s"


def custom(name: str, spec: bytes) -> bytes:
    head = b'{"apiVersion":"attacks.example.com/v1","kind":"%s","metadata":{"name":"a"},"spec":' % name.capitalize().encode()
    return head + spec + b"}"


@attack("definitions", ADMINISTRATOR)
def definitions(size: int) -> Plan:
    deep: Json = {"type": "string"}
    for _ in range(45):
        deep = {"type": "object", "properties": {"a": deep}}
    nested: Json = {"a": deep}
    wide: Json = {f"p{number}": TEXT for number in range(20_000)}
    patterns: Json = {f"p{number}": {"type": "string", "pattern": "^(a+)+(b|c){1,900}$"} for number in range(200)}
    defaults: Json = {f"p{number}": {"type": "string", "default": "x" * 1000} for number in range(1000)}
    rules: Json = {"a": {"type": "string", "x-kubernetes-validations": [{"rule": "self == 'a'"}] * 5000}}
    long: Json = {"a": {"type": "string", "x-kubernetes-validations": [{"rule": "||".join(["self=='a'"] * 20_000)}]}}
    return Plan([create(dry(CRDS), definition("wide", one)) for one in (nested, wide, patterns, defaults, rules, long)])


PATTERNED: Json = {
    "code": {"type": "string", "pattern": "^(a+)+$"},
    "codes": {"type": "array", "items": {"type": "string", "pattern": "^(a|aa)+$"}},
    "names": {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT},
    "pairs": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"], "properties": {"name": TEXT, "size": {"type": "integer", "default": 1}}},
    },
    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "times": {"type": "array", "items": {"type": "string", "format": "date-time"}},
    "counts": {"type": "array", "items": {"type": "integer", "minimum": 5}},
    "unique": {"type": "array", "items": {"type": "integer"}},
}
COLUMNS: list[Json] = [
    {"name": "All", "type": "string", "jsonPath": "..name"},
    {"name": "Free", "type": "string", "jsonPath": ".spec.free..*"},
    {"name": "Found", "type": "string", "jsonPath": '.spec.pairs[?(@.name=="x")].size'},
]


@attack("custom-objects", EDITOR)
def custom_objects(size: int) -> Plan:
    bodies = [
        b'{"code":"' + b"a" * (size - 10) + b'!"}',
        b'{"codes":[' + up_to(size, (b'"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"' for _ in range(size))) + b"]}",
        b'{"names":[' + up_to(size // 2 - 8192, counted(b'"n%d"')) + b"]}",
        b'{"pairs":[' + up_to(size // 2 - 8192, counted(b'{"name":"n%d"}')) + b"]}",
        b'{"pairs":[' + up_to(size, (b'{"name":"n"}' for _ in range(size))) + b"]}",
        b'{"free":{' + up_to(size // 2 - 8192, counted(b'"k%d":{}')) + b"}}",
        b'{"free":{"a":[' + up_to(size // 2 - 8192, (b"[]" for _ in range(size))) + b"]}}",
        b'{"times":[' + up_to(size, (b'"2026-01-01T00:00:00Z"' for _ in range(size))) + b"]}",
        b'{"counts":[' + up_to(size, (b"1" for _ in range(size))) + b"]}",
        b'{"unknown":{' + up_to(size, counted(b'"k%d":{}')) + b"}}",
    ]
    definition_of = Shot("POST", CRDS, encoded(definition("pattern", PATTERNED, COLUMNS)), who=ADMINISTRATOR)
    path = objects("pattern")
    return Plan([create(dry(path), custom("pattern", body)) for body in bodies], [definition_of], path)


@attack("custom-tables", EDITOR)
def custom_tables(size: int) -> Plan:
    definition_of = Shot("POST", CRDS, encoded(definition("column", PATTERNED, COLUMNS)), who=ADMINISTRATOR)
    pairs = (
        b'{"pairs":['
        + up_to(300_000, counted(b'{"name":"n%d"}'), values=20_000)
        + b'],"free":{'
        + up_to(300_000, counted(b'"k%d":{}'), values=20_000)
        + b"}}"
    )
    made = create(objects("column"), custom("column", pairs))
    table = (("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"),)
    shown = [Shot("GET", path, headers=table) for path in (objects("column"), f"{objects('column')}/a")]
    removed = Shot("DELETE", f"{objects('column')}/a")
    return Plan([made, *shown, removed], [definition_of], objects("column"))


EXPRESSIONS: Json = {
    "items": {
        "type": "array",
        "maxItems": 100_000,
        "items": {"type": "string", "maxLength": 10},
        "x-kubernetes-validations": [{"rule": "self.all(a, self.exists(b, a == b))"}],
    },
    "text": {"type": "string", "x-kubernetes-validations": [{"rule": "self.matches('^(a+)+$') && self.split('').size() > 0"}]},
}


@attack("expressions", EDITOR)
def expressions(size: int) -> Plan:
    """A rule whose cost is the square of what is sent."""
    definition_of = Shot("POST", CRDS, encoded(definition("expression", EXPRESSIONS)), who=ADMINISTRATOR)
    items = b'{"items":[' + up_to(size // 2, counted(b'"n%d"')) + b"]}"
    text = b'{"text":"' + b"a" * (size // 2) + b'!"}'
    return Plan(
        [create(dry(objects("expression")), custom("expression", body)) for body in (items, text)],
        [definition_of],
        objects("expression"),
    )
