"""Bodies that are not JSON: YAML with aliases and doubled keys, protobuf of many and of nested messages."""

from __future__ import annotations

from tests.attacks.attack import ANYONE, CORE, EDITOR, Plan, Shot, attack, dry
from tests.attacks.classes.documents import REVIEWS, VALUES, counted, up_to
from tests.engines.protobuf import MEDIA_TYPE, chunk, envelope

YAML = "application/yaml"
MAPS = dry(f"{CORE}/configmaps")
HEAD = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\n"


def yaml_of(body: bytes, path: str = MAPS) -> Shot:
    return Shot("POST", path, body, YAML)


@attack("yaml", EDITOR)
def yaml(size: int) -> Plan:
    keys = HEAD + b"data:\n" + up_to(size, counted(b"  k%d: v"), b"\n", VALUES // 2)
    numbers = HEAD + b"x: [" + up_to(size, (b"1" for _ in range(size))) + b"]"
    texts = HEAD + b"data: {a: '" + b"x " * (size // 2) + b"'}"
    lines = HEAD + b"data:\n  a: |\n" + b"    x\n" * (size // 6)
    comments = HEAD + b"#\n" * (size // 2)
    long = HEAD + b"data: {a: " + b"0" * size + b"}"
    sexagesimal = HEAD + b"x: " + b"1:" * (size // 2) + b"1"
    return Plan([yaml_of(body) for body in (keys, numbers, texts, lines, comments, long, sexagesimal)])


@attack("yaml-aliases", ANYONE)
def yaml_aliases(size: int) -> Plan:
    laughs = b"a: &a [x,x,x,x,x,x,x,x,x]\n"
    for level in range(12):
        laughs += b"%c: &%c [%s]\n" % (98 + level, 98 + level, b",".join([b"*%c" % (97 + level)] * 9))
    long = b"a: &a '" + b"x" * (size // 2) + b"'\nb: [" + b",".join([b"*a"] * (size // 8)) + b"]"
    # Few enough to be read: what each stands for is what costs.
    texts = b"a: &a '" + b"x" * (size // 2) + b"'\nb: [" + b",".join([b"*a"] * min(size // 8, VALUES // 2)) + b"]"
    merges = (
        b"a: &a {" + up_to(size // 4, counted(b"k%d: v"), values=20) + b"}\n" + up_to(size // 2, counted(b"m%d: {<<: *a}"), b"\n")
    )
    several = b"a: &a {" + up_to(size // 4, counted(b"k%d: v")) + b"}\nb: {<<: [" + b",".join([b"*a"] * 10_000) + b"]}"
    return Plan([yaml_of(body, REVIEWS) for body in (laughs, long, texts, merges, several)])


@attack("yaml-applies", EDITOR)
def yaml_applies(size: int) -> Plan:
    doubled = HEAD + b"data:\n" + up_to(size, (b"  k%d: v" % (number // 2) for number in range(size)), b"\n", VALUES // 2)
    laughs = HEAD + b"a: &a [x,x,x,x,x,x,x,x,x]\n"
    for level in range(12):
        laughs += b"%c: &%c [%s]\n" % (98 + level, 98 + level, b",".join([b"*%c" % (97 + level)] * 9))
    aliases = HEAD + b"a: &a {k: v, k: v}\nb: [" + b",".join([b"*a"] * 50_000) + b"]"
    path = f"{CORE}/configmaps/y?fieldManager=x&dryRun=All"
    return Plan([Shot("PATCH", path, body, "application/apply-patch+yaml") for body in (doubled, laughs, aliases)])


@attack("protobuf", EDITOR)
def protobuf(size: int) -> Plan:
    def body(raw: bytes, kind: str = "ConfigMap") -> Shot:
        return Shot("POST", dry(f"{CORE}/{kind.lower()}s"), envelope("v1", kind, raw), MEDIA_TYPE)

    entry = chunk(2, chunk(1, b"k") + chunk(2, b"v"))
    entries = b"".join(chunk(2, chunk(1, b"%d" % number)) for number in range(size // 10))
    empty = chunk(1, b"") * (size // 2)
    containers = chunk(2, chunk(2, b"") * (size // 3))
    length = b"\x12\xff\xff\xff\xff\x0f"
    groups = b"\x7b" * size
    unknown = b"\xa8\x1f\x01" * (size // 3)
    return Plan(
        [
            body(entries),
            body(entry * (size // len(entry))),
            body(empty),
            body(containers, "Pod"),
            body(length),
            body(groups),
            body(unknown),
        ]
    )
