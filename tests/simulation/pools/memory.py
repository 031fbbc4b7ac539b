"""Pools that keep memory: scaled in and out with it, and machines that sleep beside the replicas."""

from __future__ import annotations

import msgspec

from herder.api import labels
from tests.simulation.matrix import Expect, Scenario, Step
from tests.simulation.pools.scenario import has, make, patch, pools, template
from tests.simulation.suspension.scenario import ledger_of, node_with_ledger

# Until all run, or sleep, for the first time.
PREPARED = 2
# One that was interrupted is saved once more.
TRIED = frozenset(f"pods default/save-<uid>-{attempt}" for attempt in range(4))


def nothing_kept(also: Expect) -> Expect:
    """Nobody may go on from any memory: what there was is used, or gone."""

    def look(left: dict[str, bytes]) -> str:
        claims = [msgspec.json.decode(raw) for name, raw in left.items() if name.startswith("persistentvolumeclaims ")]
        notes = [note for one in claims if (note := one["metadata"].get("annotations", {}).get(labels.MEMORY))]
        unused = [note for note in notes if msgspec.json.decode(note)["state"] != "Used"]
        return also(left) or (f"memory that somebody could go on from: {unused}" if unused else "")

    return look


def remembering(name: str, *steps: Step, expect: Expect) -> Scenario:
    """A ledger of all guests looks on: nobody goes on from the same memory twice, and no two are one guest."""
    watch = lambda simulation: ledger_of(simulation).wrong  # noqa: E731
    made = pools(name, *steps, expect=nothing_kept(expect))
    return msgspec.structs.replace(made, node=node_with_ledger, watch=watch, tried=TRIED, prepared=PREPARED)


ONLINE = remembering(
    "scaled in with memory, and back",
    make(1, template(), scaleInStrategy={"proactive": {"statePreservation": "Online"}}),
    patch(replicas=0),
    patch(replicas=1),
    expect=has(["web-1"]),
)
STANDBY = remembering(
    "asleep, and put to work",
    make(1, template(), standby={"replicas": 1, "state": "Online"}),
    patch(replicas=2, standby=None),
    expect=has(["web-1", "web-2"]),
)
