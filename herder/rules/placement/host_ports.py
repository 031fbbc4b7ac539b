"""Ports of the node itself: two pods of one node cannot have the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from herder.rules.placement.events import Event, What
from herder.rules.placement.needs import ANY_ADDRESS, Needs, Port
from herder.rules.placement.node_match import nobody
from herder.rules.placement.rule import Refusal, Rule
from herder.rules.placement.snapshot import Snapshot

REASON = "node(s) didn't have free ports for the requested pod ports"


class HostPorts(Rule):
    name = "host ports"
    listens = frozenset({What.NODE_CAME, What.POD_WENT})

    def refuse(self, pod: Needs, snapshot: Snapshot) -> Sequence[Refusal]:
        if not pod.ports:
            return ()
        taken = nobody(snapshot.nodes)
        for wanted in pod.ports:
            for row, used in snapshot.ports.get((wanted.protocol, wanted.number), {}).items():
                taken[row] |= any(_clash(wanted, one) for one in used)
        return (Refusal(REASON, taken),)

    def details(self, pod: Needs, rows: Sequence[int], snapshot: Snapshot) -> Iterable[list[str]]:
        for row in rows:
            others = snapshot.pods_on(snapshot.nodes.offers[row].name)
            taken = [(wanted, other) for other in others for wanted in pod.ports if any(_clash(wanted, one) for one in other.ports)]
            yield [f"hostPort {port.protocol} {port.number} is taken by pod {by.namespace}/{by.name}" for port, by in taken]

    def unblocked_by(self, pod: Needs, event: Event, snapshot: Snapshot) -> bool:
        gone = event.pod.ports if event.pod is not None else ()
        return event.what is What.NODE_CAME or any(_clash(wanted, one) for wanted in pod.ports for one in gone)


def _clash(one: Port, other: Port) -> bool:
    if (one.protocol, one.number) != (other.protocol, other.number):
        return False
    return one.address == other.address or ANY_ADDRESS in (one.address, other.address)
