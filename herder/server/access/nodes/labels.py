"""Labels that a node must not give itself: with them it would draw pods to itself that trust the label."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

RESTRICTED: Final = "node-restriction.kubernetes.io"
# Those of Kubernetes' own that say what a machine is.
OWN: Final = frozenset(
    {
        *("kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch", "beta.kubernetes.io/os", "beta.kubernetes.io/arch"),
        *("topology.kubernetes.io/zone", "topology.kubernetes.io/region", "node.kubernetes.io/instance-type"),
        *("failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"),
        "beta.kubernetes.io/instance-type",
    }
)
OWN_PREFIXES: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")


def forbidden_labels(new: Mapping[str, str] | None, old: Mapping[str, str] | None) -> str:
    """Of those that are new, changed or gone; in order, to be told."""
    before, after = old or {}, new or {}
    changed = {key for key in {*before, *after} if before.get(key) != after.get(key)}
    return ", ".join(sorted(key for key in changed if _is_forbidden(key)))


def _is_forbidden(key: str) -> bool:
    prefix = key.partition("/")[0] if "/" in key else ""
    if _within(prefix, RESTRICTED):
        return True
    if not (_within(prefix, "kubernetes.io") or _within(prefix, "k8s.io")):
        return False
    return key not in OWN and not any(_within(prefix, one) for one in OWN_PREFIXES)


def _within(prefix: str, domain: str) -> bool:
    return prefix == domain or prefix.endswith(f".{domain}")
