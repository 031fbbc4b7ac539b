"""Whom the owners of machines concern."""

from typing import Any

import msgspec
from prometheus_client import Counter

from herder.controllers.instances import changes_pool
from herder.kube.cache import Change
from herder.kube.cache.reading import Reader
from herder.kube.resources import MACHINES
from tests.unit.rules.machines import Json, machine

READER = Reader(MACHINES, Counter("unreadable", "", registry=None))
POOL = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachinePool", "name": "web", "uid": "pool-1", "controller": True}


def changed(old: Json | None, new: Json | None) -> bool:
    def stored(document: Json | None, version: str) -> Any:
        if document is None:
            return None
        metadata = {**document["metadata"], "resourceVersion": version}
        return READER.stored(msgspec.json.encode({**document, "metadata": metadata}))

    before, after = stored(old, "1"), stored(new, "2")
    return changes_pool(Change((after or before).key, before, after))


def test_an_instance_looks_again_only_when_its_machine_comes_to_or_leaves_a_pool() -> None:
    alone, owned = machine(), machine()
    owned["metadata"]["ownerReferences"] = [POOL]
    assert changed(alone, owned)
    assert changed(owned, alone)
    assert not changed(owned, {**owned, "status": {"printableStatus": "Running"}})
    assert not changed(alone, {**alone, "status": {"printableStatus": "Running"}})
    assert not changed(None, alone)
