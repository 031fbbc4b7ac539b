"""The sum that is kept, beside the sum over all pods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from herder.api.core import Pod
from herder.kube.cache import Cache, Change, Stored
from herder.kube.resources import Key
from herder.nodes.booked import Booked
from herder.rules.matching.resources import used_by

NODES = ("", "one", "two")


class Pods:
    """What a cache tells."""

    def __init__(self) -> None:
        self.known: dict[Key, Stored[Pod]] = {}
        self._tell: Callable[[Change[Pod]], None] = lambda change: None

    def subscribe(self, tell: Callable[[Change[Pod]], None]) -> None:
        self._tell = tell

    def put(self, name: str, document: dict[str, Any] | None) -> None:
        key = Key("n", name)
        old = self.known.pop(key, None)
        new = None
        if document is not None:
            raw = msgspec.json.encode({"metadata": {"namespace": "n", "name": name, **document.pop("metadata")}, **document})
            new = self.known[key] = Stored(key, "", 0, raw, {}, (), "", False, lambda _, raw: msgspec.json.decode(raw, type=Pod))
        self._tell(Change(key, old, new))

    def on(self, node: str) -> list[Pod]:
        views = [stored.view for stored in self.known.values()]
        return [pod for pod in views if pod.spec.node_name == node and pod.status.phase not in ("Succeeded", "Failed")]


pods = st.builds(
    lambda uid, generation, node, phase, cpu: {
        "metadata": {"uid": uid, "generation": generation * 10 + cpu},
        "spec": {"nodeName": node, "containers": [{"name": "a", "resources": {"requests": {"cpu": f"{cpu}00m", "memory": "1Gi"}}}]},
        "status": {"phase": phase},
    },
    st.sampled_from(("u", "v")),
    st.integers(1, 2),
    st.sampled_from(NODES),
    st.sampled_from(("Pending", "Running", "Succeeded", "Failed")),
    st.integers(0, 3),
)


@given(st.lists(st.tuples(st.sampled_from(("a", "b", "c")), st.none() | pods), max_size=30))
def test_it_is_what_all_pods_of_a_node_ask_for(changes: list[tuple[str, dict[str, Any] | None]]) -> None:
    cache = Pods()
    booked = Booked(cast(Cache[Pod], cache))
    for name, document in changes:
        cache.put(name, document)
        for node in NODES[1:]:
            wanted = {name: value for name, value in used_by(cache.on(node)).items() if value}
            assert booked.on(node) == wanted
    assert booked.on("") == {}
