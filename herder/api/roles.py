"""The roles that come with our kinds, for both engines: `python -m herder.api.roles [--check] [DIR]` writes them as files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

from herder.api.crds import PART_OF, PRODUCT
from herder.api.made_files import MadeFiles, as_yaml

DEFAULT_DIRECTORY: Final = Path("deploy/roles")
_HEADER: Final = "# Made by `python -m herder.api.roles`: change herder/api/roles.py, not this.\n"
_PART_OF: Final = {PART_OF: PRODUCT}

READ: Final = ("get", "list", "watch")
WRITE: Final = ("create", "update", "patch", "delete", "deletecollection")
# Over a WebSocket it is a GET, and more than reading: API servers ask for both.
CONSOLE: Final = ("get", "create")

VIRT, POLICIES, DISKS, PODS = "kubevirt.io", "migrations.kubevirt.io", "cdi.kubevirt.io", "scheduling.koordinator.sh"
OWN: Final = "herder.dev"
MACHINES: Final = ("virtualmachines", "virtualmachineinstances", "virtualmachinepools")
MIGRATIONS: Final = "virtualmachineinstancemigrations"
REVIEWS: Final = "migrationreviews"

Document = dict[str, Any]


def _rule(verbs: tuple[str, ...], group: str, *resources: str) -> Document:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


def _role(name: str, about: str, rules: list[Document], **labels: str) -> Document:
    metadata = {"name": name, "labels": {**_PART_OF, **labels}, "annotations": {"description": about}}
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules}


# What a namespace's own people see of our kinds.
_SEE_MACHINES: Final = [
    _rule(READ, VIRT, *MACHINES, *(f"{one}/status" for one in MACHINES), "virtualmachinepools/scale"),
    _rule(READ, VIRT, MIGRATIONS, f"{MIGRATIONS}/status"),
    _rule(READ, OWN, REVIEWS, f"{REVIEWS}/status"),
    _rule(READ, DISKS, "datavolumes", "datavolumes/status"),
]
_EDIT_MACHINES: Final = [
    _rule(WRITE, VIRT, *MACHINES),
    _rule(("update", "patch"), VIRT, "virtualmachinepools/scale"),
    _rule(WRITE, DISKS, "datavolumes"),
]
_SEE_AROUND: Final = [
    _rule(READ, "", "pods", "pods/status", "events", "persistentvolumeclaims"),
    _rule(READ, "events.k8s.io", "events"),
]
# The templates that a pool's machines had: what `herder pool rollout history` and `undo` read.
_SEE_REVISIONS: Final = _rule(READ, "apps", "controllerrevisions")
# Those that scale pools, and whatever else there is in the namespace.
_SEE_AUTOSCALERS: Final = _rule(READ, "autoscaling", "horizontalpodautoscalers", "horizontalpodautoscalers/status")
_EDIT_AUTOSCALERS: Final = _rule(WRITE, "autoscaling", "horizontalpodautoscalers")
_SEE_CLUSTER: Final = [
    _rule(READ, VIRT, "kubevirts", "kubevirts/status"),
    _rule(READ, POLICIES, "migrationpolicies", "migrationpolicies/status"),
    _rule(READ, PODS, "podmigrationjobs", "podmigrationjobs/status", "reservations", "reservations/status"),
    _rule(READ, "", "nodes", "nodes/status", "namespaces", "persistentvolumes"),
    _rule(READ, "policy", "poddisruptionbudgets", "poddisruptionbudgets/status"),
    _rule(READ, "storage.k8s.io", "storageclasses"),
    _rule(READ, "scheduling.k8s.io", "priorityclasses"),
    _rule(READ, "coordination.k8s.io", "leases"),
]


def roles() -> list[Document]:
    return [
        _role(
            "herder-viewer",
            "Sees virtual machines, migrations, policies, nodes and what goes on. No Secrets, no ConfigMaps, no change.",
            [*_SEE_MACHINES, _SEE_REVISIONS, _SEE_AUTOSCALERS, *_SEE_AROUND, *_SEE_CLUSTER],
        ),
        _role(
            "vm-owner",
            "Makes, changes, starts, stops and deletes virtual machines, pools and disks. Sees migrations, and may not migrate.",
            [
                *_SEE_MACHINES,
                *_EDIT_MACHINES,
                _SEE_REVISIONS,
                _SEE_AUTOSCALERS,
                _EDIT_AUTOSCALERS,
                *_SEE_AROUND,
                _rule(WRITE, "", "persistentvolumeclaims"),
                _rule(READ, "", "pods/log"),
                _rule(CONSOLE, "", "pods/attach"),
            ],
        ),
        _role(
            "vm-migrator",
            "Starts and cancels migrations, sees machines, and is told where they could go and why. May not edit virtual machines.",
            [
                *_SEE_MACHINES,
                _rule(("create", "delete"), VIRT, MIGRATIONS),
                # What decides where a machine may go, and with which settings, is in no namespace, or in all of them. Who has this
                # role in one namespace asks, and is answered by who may read it: `herder explain policy` and `target` do.
                _rule(("create", "delete"), OWN, REVIEWS),
                *_SEE_AROUND,
                # Who has it everywhere may read that too.
                _rule(READ, POLICIES, "migrationpolicies", "migrationpolicies/status"),
                _rule(READ, VIRT, "kubevirts"),
                _rule(READ, "", "nodes", "namespaces", "persistentvolumes"),
                _rule(READ, "storage.k8s.io", "storageclasses"),
            ],
        ),
        _role(
            "pod-migrator",
            "For programs: files, follows, pauses and deletes PodMigrationJobs, and may evict. Changes nothing else.",
            [
                _rule((*READ, "create", "patch", "delete"), PODS, "podmigrationjobs"),
                _rule(READ, PODS, "podmigrationjobs/status", "reservations", "reservations/status"),
                _rule(READ, "", "pods"),
                # A job moves only what who creates it may evict.
                _rule(("create",), "", "pods/eviction"),
            ],
        ),
        _role("herder-admin", "Everything about virtual machines, moving, and the nodes under them. No Secrets, no roles.", _ADMIN),
        _role(
            "herder:aggregate-to-view",
            "Our kinds for the role `view`, and so for `edit` and `admin`.",
            _SEE_MACHINES,
            **{"rbac.authorization.k8s.io/aggregate-to-view": "true"},
        ),
        _role(
            "herder:aggregate-to-edit",
            "Our kinds for the role `edit`, and so for `admin`. Migrations are not in it: those are for vm-migrator.",
            _EDIT_MACHINES,
            **{"rbac.authorization.k8s.io/aggregate-to-edit": "true"},
        ),
    ]


_ADMIN: Final = [
    *({"apiGroups": [group], "resources": ["*"], "verbs": ["*"]} for group in (VIRT, POLICIES, DISKS, PODS, OWN)),
    _SEE_REVISIONS,
    _SEE_AUTOSCALERS,
    _EDIT_AUTOSCALERS,
    *_SEE_AROUND,
    *_SEE_CLUSTER[3:],
    _rule(("update", "patch"), "", "nodes"),
    _rule(READ, "", "pods/log"),
    _rule(CONSOLE, "", "pods/attach"),
    _rule(("delete",), "", "pods"),
    _rule(("create",), "", "pods/eviction"),
    _rule(WRITE, "", "persistentvolumeclaims"),
    _rule(WRITE, "policy", "poddisruptionbudgets"),
]


def files() -> dict[str, str]:
    """Name and text of every file; a colon in a role's name is none in a file's."""
    return {f"{role['metadata']['name'].replace(':', '-')}.yaml": _HEADER + as_yaml(role) for role in roles()}


MADE: Final = MadeFiles("herder.api.roles", "herder/api/roles.py says", DEFAULT_DIRECTORY, files)
stale, write, main = MADE.stale, MADE.write, MADE.main


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
