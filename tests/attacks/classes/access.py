"""Roles and bindings: what a namespace's administrator may write."""

from __future__ import annotations

from tests.attacks.attack import NAMESPACE, OWNER, RBAC, Plan, Shot, attack, create, dry, encoded
from tests.attacks.classes.documents import counted, up_to

GROUP = "rbac.authorization.k8s.io"
ROLE = b'{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"%s"},"rules":['


def many(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def role(name: str, *rules: dict[str, list[str]]) -> dict[str, object]:
    return {"apiVersion": f"{GROUP}/v1", "kind": "Role", "metadata": {"name": name}, "rules": list(rules)}


def wide(count: int) -> dict[str, list[str]]:
    return {
        "verbs": many("v", count),
        "apiGroups": many("g", count),
        "resources": many("r", count),
        "resourceNames": many("n", count),
    }


def held(count: int, each: int) -> dict[str, list[str]]:
    """All of it is held by an administrator of the namespace, so that all of it is compared."""
    return {
        "verbs": ["get", "list", "watch", "update"] * each,
        "apiGroups": [""] * each,
        "resources": ["configmaps", "pods", "secrets"] * each,
        "resourceNames": many("n", count),
    }


@attack("role-products", OWNER)
def role_products(size: int) -> Plan:
    """A body of few bytes whose lists multiply."""
    quarter = size // 4 // 12
    return Plan(
        [
            create(f"{RBAC}/roles", role("wide", wide(100))),
            create(dry(f"{RBAC}/roles"), role("wider", wide(min(2000, quarter)))),
            create(dry(f"{RBAC}/roles"), role("held", held(1000, 50))),
        ]
    )


@attack("role-products-stored", OWNER)
def role_products_stored(size: int) -> Plan:
    """One that may be stored: it is compiled, compared again when it is bound, and shown to whoever has it."""
    stored = role("stored", held(200, 60))
    binding = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "stored"},
        "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": "stored"},
        "subjects": [{"kind": "User", "name": "somebody", "apiGroup": GROUP}],
    }
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": NAMESPACE}}
    return Plan(
        [
            create(f"{RBAC}/roles", stored),
            create(dry(f"{RBAC}/rolebindings"), binding),
            create("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", review),
            Shot("DELETE", f"{RBAC}/roles/stored"),
        ]
    )


@attack("rules", OWNER)
def rules(size: int) -> Plan:
    granted = b'{"verbs":["get"],"apiGroups":[""],"resources":["configmaps"],"resourceNames":["n%d"]}'
    lacking = b'{"verbs":["x"],"apiGroups":[""],"resources":["r%d"]}'
    wrong = b"{}"
    few = size // 2 - 8192
    bodies = [
        ROLE % b"granted" + up_to(few, counted(granted)) + b"]}",
        ROLE % b"lacking" + up_to(size, counted(lacking)) + b"]}",
        ROLE % b"wrong" + up_to(size, (wrong for _ in range(size))) + b"]}",
    ]
    return Plan([create(dry(f"{RBAC}/roles"), body) for body in bodies])


@attack("rules-stored", OWNER)
def rules_stored(size: int) -> Plan:
    granted = b'{"verbs":["get"],"apiGroups":[""],"resources":["configmaps"],"resourceNames":["n%d"]}'
    body = ROLE % b"many-rules" + up_to(size // 2 - 8192, counted(granted)) + b"]}"
    bound = binding_of(
        "many-rules", b'{"kind":"User","name":"attacker","apiGroup":"rbac.authorization.k8s.io"}', role=b"many-rules", kind=b"Role"
    )
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": NAMESPACE}}
    return Plan(
        [
            create(f"{RBAC}/roles", body),
            create(f"{RBAC}/rolebindings", bound),
            create("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", review),
            create(dry(f"{RBAC}/roles"), body.replace(b'"many-rules"', b'"more-rules"')),
            Shot("DELETE", f"{RBAC}/rolebindings/many-rules"),
            Shot("DELETE", f"{RBAC}/roles/many-rules"),
        ]
    )


def binding_of(name: str, subjects: bytes, role: bytes = b"view", kind: bytes = b"ClusterRole") -> bytes:
    head = b'{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"%s"},' % name.encode()
    reference = b'"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"%s","name":"%s"},"subjects":[' % (kind, role)
    return head + reference + subjects + b"]}"


@attack("subjects", OWNER)
def subjects(size: int) -> Plan:
    user = b'{"kind":"User","name":"u%d","apiGroup":"rbac.authorization.k8s.io"}'
    body = binding_of("crowd", up_to(size // 2 - 4096, counted(user)))
    wrong = binding_of("wrong", up_to(size, (b"{}" for _ in range(size))))
    small = Shot(
        "PATCH", f"{RBAC}/rolebindings/crowd", encoded({"metadata": {"labels": {"a": "b"}}}), "application/merge-patch+json"
    )
    path = f"{RBAC}/rolebindings"
    return Plan([create(path, body), small, Shot("DELETE", f"{path}/crowd"), create(dry(path), wrong)])
