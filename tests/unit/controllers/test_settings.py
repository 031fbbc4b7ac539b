"""Who follows the settings of the cluster looks at everything again: when people change them, and not when we report about them."""

from types import SimpleNamespace
from typing import Any, cast

import msgspec
from prometheus_client import Counter

from herder.controllers.settings import ClusterSettings
from herder.kube.cache import Change, Stored
from herder.kube.cache.reading import Reader
from herder.kube.kit import Kit
from herder.kube.resources import SETTINGS, Key

READER = Reader(SETTINGS, Counter("unreadable", "", registry=None))
WHERE = Key("kubevirt", "kubevirt")


def settings(version: int, status: str, **migrations: int) -> Stored[Any]:
    metadata = {"name": "kubevirt", "namespace": "kubevirt", "uid": "u", "resourceVersion": str(version)}
    spec = {"configuration": {"migrations": migrations}} if migrations else {}
    stored = READER.stored(msgspec.json.encode({"metadata": metadata, "spec": spec, "status": {"phase": status}}))
    assert stored is not None
    return stored


def test_only_what_people_change_is_told() -> None:
    handlers: list[Any] = []
    cache = SimpleNamespace(subscribe=handlers.append)
    followed = ClusterSettings(cast(Kit, SimpleNamespace(caches=SimpleNamespace(of=lambda _: cache))))
    told: list[str] = []
    followed.subscribe(lambda: told.append("again"))
    (changed,) = handlers
    empty, reported = settings(1, "Deploying"), settings(2, "Deployed")
    limited, gone = settings(3, "Deployed", parallelMigrationsPerCluster=1), None
    for old, new, times in ((None, empty, 1), (empty, reported, 1), (reported, limited, 2), (limited, gone, 3)):
        changed(Change(WHERE, old, new))
        assert len(told) == times, (old, new)
