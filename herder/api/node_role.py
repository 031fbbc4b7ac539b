"""What the agents of nodes may read on a real cluster beyond what its node authorizer lets every node read.

Before a node fills, copies or clears a volume it reads what vouches for that (herder/rules/volumes/verification.py). Roles
cannot say "those of the pods that are on you", so it is every object of these kinds, but only one by one and by its name. The
embedded engine needs no role: its node authorizer knows what the importer pods of a node work for.
"""

from __future__ import annotations

from typing import Any, Final

from herder.api import registry
from herder.api.crds import PART_OF, PRODUCT

NAME: Final = "herder:nodes"
NODES: Final = "system:nodes"
_GROUP: Final = "rbac.authorization.k8s.io"
_METADATA: Final = {"name": NAME, "labels": {PART_OF: PRODUCT}}
Document = dict[str, Any]

RULES: Final[list[Document]] = [
    {"apiGroups": [registry.DATA_VOLUME.group], "resources": [registry.DATA_VOLUME.plural], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["persistentvolumeclaims", "persistentvolumes"], "verbs": ["get"]},
]


def documents() -> list[Document]:
    reference = {"apiGroup": _GROUP, "kind": "ClusterRole", "name": NAME}
    subjects = [{"apiGroup": _GROUP, "kind": "Group", "name": NODES}]
    return [
        {"apiVersion": f"{_GROUP}/v1", "kind": "ClusterRole", "metadata": dict(_METADATA), "rules": RULES},
        {
            "apiVersion": f"{_GROUP}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": dict(_METADATA),
            "roleRef": reference,
            "subjects": subjects,
        },
    ]
