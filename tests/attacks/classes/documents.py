"""Bodies that are documents: keys said twice, keys nobody knows, very many of them, very deep ones."""

from __future__ import annotations

from collections.abc import Iterable

from herder.api.nesting import MOST_VALUES
from tests.attacks.attack import ANYONE, CORE, EDITOR, NAMESPACE, Plan, Shot, attack, config_map, create, dry, encoded

# What a body may hold, less a little for what is around it.
VALUES = MOST_VALUES - 200
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
QUESTION = b'{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"nonResourceAttributes":'
HEAD = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":'


def up_to(size: int, pieces: Iterable[bytes], separator: bytes = b",", values: int = VALUES) -> bytes:
    """As many pieces as fit, in bytes and in values: what holds more is refused before anything is done with it."""
    taken, length = list[bytes](), 0
    for piece in pieces:
        length += len(piece) + len(separator)
        values -= 1 + piece.count(b",") + piece.count(b"{") + piece.count(b"[")
        if length > size or values < 0:
            break
        taken.append(piece)
    return separator.join(taken)


def counted(pattern: bytes) -> Iterable[bytes]:
    number = 0
    while True:
        yield pattern % number
        number += 1


def doubled(pattern: bytes) -> Iterable[bytes]:
    for piece in counted(pattern):
        yield piece
        yield piece


@attack("doubled-keys", ANYONE)
def doubled_keys(size: int) -> Plan:
    inside = up_to(size, doubled(b'"k%d":1'))
    review = QUESTION + b'{"path":"/x","verb":"get"},"x":{' + inside + b"}}}"
    flat = QUESTION + b'{"path":"/x","verb":"get",' + inside + b"}}}"
    same = QUESTION + b'{"path":"/x","verb":"get",' + up_to(size, (b'"k":1' for _ in range(size))) + b"}}}"
    strict = f"{REVIEWS}?fieldValidation=Strict"
    return Plan([create(REVIEWS, review), create(strict, review), create(REVIEWS, flat), create(REVIEWS, same)])


@attack("doubled-keys-deep", ANYONE)
def doubled_keys_deep(size: int) -> Plan:
    """Each path is long: naming them all would be far more than was sent."""
    depth, name = 100, b'"%s":' % (b"n" * 40)
    head = b"".join(b"{" + name for _ in range(depth))
    inside = head + b"{" + up_to(size - len(head) - 200, doubled(b'"k%d":1')) + b"}" + b"}" * depth
    return Plan([create(REVIEWS, QUESTION + b'{"path":"/x","verb":"get","x":' + inside + b"}}}")])


@attack("doubled-keys-of-patches", EDITOR)
def doubled_keys_of_patches(size: int) -> Plan:
    target = create(f"{CORE}/configmaps", config_map("doubled-patch"))
    body = b'{"data":{' + up_to(size, doubled(b'"k%d":null')) + b"}}"
    path = f"{CORE}/configmaps/doubled-patch"
    kinds = ("merge-patch+json", "strategic-merge-patch+json")
    return Plan([Shot("PATCH", path, body, f"application/{kind}") for kind in kinds], [target])


@attack("unknown-fields", ANYONE)
def unknown_fields(size: int) -> Plan:
    inside = up_to(size, counted(b'"resorceAtributes%d":1'))
    body = b'{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{' + inside + b"}}"
    top = b'{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview",' + inside + b"}"
    return Plan([create(REVIEWS, body), create(f"{REVIEWS}?fieldValidation=Strict", body), create(REVIEWS, top)])


@attack("unknown-fields-long", ANYONE)
def unknown_fields_long(size: int) -> Plan:
    """Few and long ones: how alike two names are costs the product of their lengths."""
    inside = up_to(size, counted(b'"' + b"resourceAttributes" * 500 + b'%d":1'))
    return Plan(
        [create(REVIEWS, b'{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{' + inside + b"}}")]
    )


@attack("unknown-fields-of-pods", EDITOR)
def unknown_fields_of_pods(size: int) -> Plan:
    inside = up_to(size, counted(b'{"name":"c%d","image":"i","imagepulpolicy":"x","livenesProbe":{},"enw":[]}'))
    body = b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[' + inside + b"]}}"
    return Plan([create(dry(f"{CORE}/pods"), body)])


@attack("many-keys", EDITOR)
def many_keys(size: int) -> Plan:
    inside = up_to(size, counted(b'"%d":""'))
    path = dry(f"{CORE}/configmaps")
    return Plan(
        [create(path, HEAD + b"{" + inside + b"}}"), create(f"{path}&fieldValidation=Strict", HEAD + b"{" + inside + b" }}")]
    )


@attack("many-values", EDITOR)
def many_values(size: int) -> Plan:
    """The most values that fit into a body, where none is expected."""
    path = dry(f"{CORE}/configmaps")
    lists = HEAD + b"{}" + b',"x":[' + b",".join([b"[]"] * (size // 3)) + b"]}"
    numbers = HEAD + b"{}" + b',"x":[' + b",".join([b"1"] * (size // 2)) + b"] }"
    objects = HEAD + b"{}" + b',"x":[' + b",".join([b"{}"] * (size // 3)) + b"]}"
    return Plan([create(path, body) for body in (lists, numbers, objects)])


@attack("wrong-types", EDITOR)
def wrong_types(size: int) -> Plan:
    """Each value is wrong by itself, and could be told of by itself."""
    path = dry(f"{CORE}/configmaps")
    pod = b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":['
    return Plan(
        [
            create(path, HEAD + b"{" + up_to(size, counted(b'"%d":1')) + b"}}"),
            create(dry(f"{CORE}/pods"), pod + up_to(size, (b"1" for _ in range(size))) + b"]}}"),
            create(dry(f"{CORE}/pods"), pod + up_to(size, (b'{"name":1,"env":[1,1]}' for _ in range(size))) + b"]}}"),
        ]
    )


@attack("wrong-values", EDITOR)
def wrong_values(size: int) -> Plan:
    """Of the right types, and each refused by a rule."""
    pod = b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":['
    same = b'{"name":"same","image":"i","ports":[{"containerPort":1},{"containerPort":1}]}'
    bad = b'{"name":"A B","image":"","env":[{"name":"="}],"volumeMounts":[{"name":"v","mountPath":"/a"}]}'
    env = b'{"name":"c","image":"i","env":[' + up_to(size - 500, counted(b'{"name":"E%d","value":"v"}')) + b"]}"
    return Plan(
        [
            create(dry(f"{CORE}/configmaps"), HEAD + b"{" + up_to(size, counted(b'"?%d":""')) + b"}}"),
            *(create(dry(f"{CORE}/pods"), pod + up_to(size, (one for _ in range(size))) + b"]}}") for one in (same, bad)),
            create(dry(f"{CORE}/pods"), pod + env + b"]}}"),
        ]
    )


@attack("nesting", ANYONE)
def nesting(size: int) -> Plan:
    half = size // 2
    deep = QUESTION + b"[" * half + b"]" * half + b"}}"
    objects = QUESTION + b'{"a":' * (size // 6) + b"1" + b"}" * (size // 6) + b"}}"
    unclosed = QUESTION + b'{"a":[' * (size // 6)
    wide = QUESTION + b'{"x":[' + b",".join([b"[" * 100 + b"]" * 100] * (size // 201)) + b"]}}}"
    quotes = QUESTION + b'"' + b"\\" * (size // 2 * 2)
    return Plan([create(REVIEWS, body) for body in (deep, objects, unclosed, wide, quotes)])


@attack("long-texts", ANYONE)
def long_texts(size: int) -> Plan:
    text = "x" * size
    path = encoded({"path": text, "verb": "get"})
    verb = encoded({"path": "/", "verb": text})
    asked = encoded({"group": text[: size // 2], "resource": text[: size // 2], "verb": "get", "namespace": NAMESPACE})
    question = QUESTION.replace(b"nonResourceAttributes", b"resourceAttributes")
    escaped = QUESTION + b'{"path":"' + b"\\u0041" * (size // 6) + b'","verb":"get"}}}'
    broken = QUESTION + b'{"path":"' + b"\xff" * size + b'","verb":"get"}}}'
    bodies = (QUESTION + path + b"}}", QUESTION + verb + b"}}", question + asked + b"}}", escaped, broken)
    return Plan([create(REVIEWS, body) for body in bodies])


@attack("review-selectors", ANYONE)
def review_selectors(size: int) -> Plan:
    question = (
        b'{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"verb":"list",'
    )
    raw = question + b'"fieldSelector":{"rawSelector":"' + up_to(size, counted(b"a%d=b")) + b'"}}}}'
    terms = up_to(size, counted(b'{"key":"k%d","operator":"In","values":["a"]}'))
    listed = question + b'"labelSelector":{"requirements":[' + terms + b"]}}}}"
    return Plan([create(REVIEWS, raw), create(REVIEWS, listed)])
