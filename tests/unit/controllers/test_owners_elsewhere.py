"""What names somebody else's object as its owner, from another namespace: it is nobody's, and above all not its."""

from typing import Any

import msgspec
import pytest
from prometheus_client import Counter

from herder.api import labels
from herder.controllers.launchers import LAUNCHERS_OF
from herder.kube.cache import BY_OWNER, Index, Stored, owned
from herder.kube.cache.reading import Reader
from herder.kube.resources import PODS

READER = Reader(PODS, Counter("unreadable", "", registry=None))


def pod(namespace: str) -> Stored[Any]:
    """One that could be the target of a migration: with it the guest's memory would go to whoever made it."""
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "vm", "uid": "of-vm", "controller": True}
    marks = {labels.APP: labels.LAUNCHER, labels.MIGRATION_UID: "of-migration"}
    metadata = {
        "name": "p",
        "namespace": namespace,
        "uid": "u",
        "resourceVersion": "1",
        "labels": marks,
        "ownerReferences": [owner],
    }
    stored = READER.stored(msgspec.json.encode({"metadata": metadata}))
    assert stored is not None
    return stored


@pytest.mark.parametrize("index", [LAUNCHERS_OF, BY_OWNER])
def test_a_pod_belongs_to_an_instance_of_its_own_namespace_only(index: Index[Any]) -> None:
    assert owned("shop", "of-vm") in index.values(pod("shop"))
    assert owned("shop", "of-vm") not in index.values(pod("elsewhere"))
