"""What every object has: labels, annotations, finalizers, owners, managedFields, names."""

from __future__ import annotations

from collections.abc import Iterator

from tests.attacks.attack import CORE, EDITOR, Plan, Shot, attack, config_map, create, dry
from tests.attacks.classes.documents import counted, up_to

MAPS = f"{CORE}/configmaps"
UID = b"00000000-0000-4000-8000-%012d"
OWNER = b'{"apiVersion":"v1","kind":"ConfigMap","name":"o%d","uid":"' + UID + b'"}'


def with_metadata(inside: bytes, name: bytes = b"a") -> bytes:
    return b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"' + name + b'",' + inside + b"}}"


def put(name: str, inside: bytes, query: str = "") -> Shot:
    return Shot("PUT", f"{MAPS}/{name}{query}", with_metadata(inside, name.encode()))


@attack("labels", EDITOR)
def labels(size: int) -> Plan:
    valid = b'"labels":{' + up_to(size // 3, counted(b'"k%d":"v"')) + b"}"
    wrong = b'"labels":{' + up_to(size, counted(b'"?%d":"?"')) + b"}"
    long = b'"labels":{"a":"' + b"x" * size + b'"}'
    domain = b'"labels":{"' + b"a." * (size // 2) + b'a/b":""}'
    return Plan([create(dry(MAPS), with_metadata(inside)) for inside in (valid, wrong, long, domain)])


@attack("annotations", EDITOR)
def many_annotations(size: int) -> Plan:
    many = b'"annotations":{' + up_to(size, counted(b'"k%d":""')) + b"}"
    wrong = b'"annotations":{' + up_to(size, counted(b'"?%d":""')) + b"}"
    large = b'"annotations":{"a":"' + b"x" * size + b'"}'
    return Plan([create(dry(MAPS), with_metadata(inside)) for inside in (many, wrong, large)])


@attack("finalizers", EDITOR)
def finalizers(size: int) -> Plan:
    many = b'"finalizers":[' + up_to(size // 2 - 4096, counted(b'"e.com/%d"')) + b"]"
    plain = b'"finalizers":[' + up_to(size // 2 - 4096, counted(b'"f%d"')) + b"]"
    prepare = [create(MAPS, config_map("finalized")), put("finalized", many)]
    again = b'"finalizers":[' + up_to(size // 2 - 4096, counted(b'"e.com/9%d"')) + b"]"
    shots = [
        create(dry(MAPS), with_metadata(many)),
        create(dry(MAPS), with_metadata(plain)),
        put("finalized", again, "?dryRun=All"),
    ]
    return Plan([*shots, Shot("DELETE", f"{MAPS}/finalized?dryRun=All")], prepare)


@attack("owners", EDITOR)
def owners(size: int) -> Plan:
    def list_of(pattern: bytes, most: int) -> bytes:
        pieces = (piece for number, piece in enumerate(counted_twice(pattern)) if number < most)
        return b'"ownerReferences":[' + up_to(size, pieces) + b"]"

    same = b'"ownerReferences":[' + up_to(size, (OWNER % (1, 1) for _ in range(size))) + b"]"
    controllers = list_of(OWNER[:-1] + b',"controller":true}', size)
    return Plan([create(dry(MAPS), with_metadata(inside)) for inside in (list_of(OWNER, size), same, controllers)])


def counted_twice(pattern: bytes) -> Iterator[bytes]:
    number = 0
    while True:
        yield pattern % (number, number)
        number += 1


@attack("owners-stored", EDITOR)
def owners_stored(size: int) -> Plan:
    """Each owner is looked for, when the object is stored and when the garbage collector looks at it."""
    inside = b'"ownerReferences":[' + up_to(size // 2 - 4096, counted_twice(OWNER)) + b"]"
    return Plan([create(MAPS, with_metadata(inside, b"owned")), Shot("DELETE", f"{MAPS}/owned")])


@attack("managed-fields", EDITOR)
def managed_fields(size: int) -> Plan:
    entry = b'{"manager":"m%d","operation":"%s","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:a":{}}}}'
    few = size // 2 - 8192
    updates = b'"managedFields":[' + up_to(few, counted(entry.replace(b"%s", b"Update"))) + b"]"
    applies = b'"managedFields":[' + up_to(few, counted(entry.replace(b"%s", b"Apply"))) + b"]"
    wide = b'"managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{'
    wide += up_to(few, counted(b'"f:%d":{}')) + b"}}]"
    deep = b'"managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":'
    deep += b'{"f:a":' * 100 + b"{}" + b"}" * 100 + b"}]"
    made = [create(MAPS, config_map("managed"))]
    changed = [put("managed", inside + b',"labels":{"a":"b"}', "?dryRun=All") for inside in (updates, applies, wide, deep)]
    stored = [put("managed", applies)]
    apply = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"managed"},"data":{"a":"b"}}'
    applied = Shot("PATCH", f"{MAPS}/managed?fieldManager=x&dryRun=All", apply, "application/apply-patch+yaml")
    small = Shot("PATCH", f"{MAPS}/managed?dryRun=All", b'{"data":{"a":"c"}}', "application/merge-patch+json")
    return Plan([*changed, *stored, applied, small], made)


@attack("names", EDITOR)
def names(size: int) -> Plan:
    name = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"' + b"a." * (size // 2) + b'"}}'
    bad = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"' + b"A-" * (size // 2) + b'"}}'
    generated = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"' + b"a" * size + b'"}}'
    kind = b'{"apiVersion":"v1","kind":"' + b"a" * size + b'","metadata":{"name":"a"}}'
    version = b'{"apiVersion":"' + b"a/" * (size // 2) + b'","kind":"ConfigMap","metadata":{"name":"a"}}'
    return Plan([create(dry(MAPS), body) for body in (name, bad, generated, kind, version)])
