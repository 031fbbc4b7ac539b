"""What is asked in addresses and headers: selectors, pages, tokens, impersonation. These may be some kilobytes, not megabytes."""

from __future__ import annotations

import base64

from tests.attacks.attack import ANYONE, CORE, EDITOR, NAMESPACE, OWNER, Plan, Shot, attack, config_map, create, encoded
from tests.attacks.classes.documents import counted, up_to

MAPS = f"{CORE}/configmaps"
# The longest line and the longest header that are read.
LINE = 8000
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def some_maps(name: str, count: int, **more: object) -> list[Shot]:
    return [create(MAPS, {**config_map(f"{name}-{number}"), **more}) for number in range(count)]


@attack("label-selectors", EDITOR)
def label_selectors(size: int) -> Plan:
    values = up_to(LINE, counted(b"v%d")).decode()
    terms = up_to(LINE, counted(b"k%d!=a")).decode()
    selectors = (f"a+in+({values})", f"a+notin+({values})", terms, "(" * LINE, "," * LINE, "a+in+(" + "," * LINE + ")")
    return Plan([Shot("GET", f"{MAPS}?labelSelector={one}") for one in selectors], some_maps("labelled", 300))


@attack("field-selectors", EDITOR)
def field_selectors(size: int) -> Plan:
    terms = up_to(LINE, counted(b"metadata.name!=n%d")).decode()
    escapes = "metadata.name=" + "\\\\" * (LINE // 2)
    paths = (
        f"{MAPS}?fieldSelector={terms}",
        f"{MAPS}?fieldSelector={escapes}",
        f"{CORE}/pods?fieldSelector=" + "a=b," * (LINE // 4),
    )
    return Plan([Shot("GET", path) for path in paths], some_maps("fielded", 300))


@attack("pages", EDITOR)
def pages(size: int) -> Plan:
    token = base64.urlsafe_b64encode(b'{"v":"meta.k8s.io/v1","rv":-1,"start":"' + b"z" * (LINE // 2) + b'"}').decode()
    deep = base64.urlsafe_b64encode(b"[" * (LINE // 2)).decode()
    wanted = [f"{MAPS}?limit=1&continue={text}" for text in (token, deep, "a" * LINE)]
    queries = [f"{MAPS}?limit={'9' * LINE}", f"{MAPS}?resourceVersion={'9' * LINE}", f"{MAPS}?" + "a&" * (LINE // 2)]
    return Plan([Shot("GET", path) for path in (*wanted, *queries)], some_maps("paged", 300))


@attack("tokens", ANYONE)
def tokens(size: int) -> Plan:
    texts = ("Bearer " + "a" * LINE, "Bearer " + "a." * (LINE // 2), "Bearer " + "e30." * 2 + "a" * LINE, "x" * LINE)
    return Plan([Shot("GET", "/api", headers=(("Authorization", text),)) for text in texts])


@attack("impersonation", ANYONE)
def impersonation(size: int) -> Plan:
    groups = tuple(("Impersonate-Group", f"g{number}") for number in range(90))
    extras = tuple((f"Impersonate-Extra-k{number}", "v") for number in range(90))
    user = ("Impersonate-User", "somebody")
    return Plan([Shot("GET", "/api", headers=(user, *more)) for more in (groups, extras)])


@attack("headers", ANYONE)
def headers(size: int) -> Plan:
    accept = ",".join(["application/x;q=0.1;a=b"] * (LINE // 24))
    kinds = tuple(("X-Anything", "x" * 100) for _ in range(90))
    shots = [Shot("GET", "/api", headers=(("Accept", accept),)), Shot("GET", "/api", headers=kinds)]
    return Plan(
        [*shots, Shot("GET", "/" + "/" * LINE), Shot("GET", "/apis/" + "a/" * (LINE // 2)), Shot("GET", "/" + "%41" * (LINE // 3))]
    )


@attack("tables", EDITOR)
def tables(size: int) -> Plan:
    """Lists shown as something else: every object is read for it."""
    prepare = some_maps("tabled", 8, data={f"k{number}": "" for number in range(30_000)})
    wanted = (TABLE, "application/yaml", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")
    one = [Shot("GET", f"{MAPS}/tabled-1", headers=(("Accept", kind),)) for kind in (*wanted[:2], wanted[2].replace("List", ""))]
    many = [Shot("GET", MAPS, headers=(("Accept", kind),)) for kind in wanted]
    watch = Shot("GET", f"{MAPS}?watch=true&timeoutSeconds=1", headers=(("Accept", TABLE),), enough=1 << 24)
    return Plan([*one, *many, watch], prepare)


@attack("subject-reviews", OWNER)
def subject_reviews(size: int) -> Plan:
    kind = b'{"apiVersion":"authorization.k8s.io/v1","kind":"LocalSubjectAccessReview",'
    head = kind + b'"metadata":{"namespace":"%s"},"spec":{"user":"u",' % NAMESPACE.encode()
    asked = b'"resourceAttributes":{"namespace":"%s","verb":"get","resource":"pods"}}}' % NAMESPACE.encode()
    groups = head + b'"groups":[' + up_to(size - 1000, counted(b'"g%d"')) + b"]," + asked
    extra = head + b'"extra":{' + up_to(size - 1000, counted(b'"k%d":["v"]')) + b"}," + asked
    path = f"/apis/authorization.k8s.io/v1/namespaces/{NAMESPACE}/localsubjectaccessreviews"
    return Plan([create(path, groups), create(path, extra)])


@attack("token-requests", OWNER)
def token_requests(size: int) -> Plan:
    path = f"{CORE}/serviceaccounts/asked/token"
    account = create(f"{CORE}/serviceaccounts", {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "asked"}})
    head = b'{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"audiences":['
    many = head + up_to(size, counted(b'"a%d"')) + b"]}}"
    long = head + b'"' + b"a" * size + b'"]}}'
    bound = {"kind": "Pod", "apiVersion": "v1", "name": "x" * (size // 2), "uid": "y" * (size // 2)}
    other = encoded({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"boundObjectRef": bound}})
    return Plan([create(path, body) for body in (many, long, other)], [account])
