"""A claim that only one pod may use (ReadWriteOncePod), and that one uses already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from herder.rules.placement.events import Event, What
from herder.rules.placement.needs import Needs
from herder.rules.placement.rule import Refusal, Rule
from herder.rules.placement.snapshot import Snapshot
from herder.rules.placement.storage import ONE_POD

REASON = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"


class Access(Rule):
    name = "access modes"
    listens = frozenset({What.POD_WENT, What.CLAIM_CHANGED})

    def refuse(self, pod: Needs, snapshot: Snapshot) -> Sequence[Refusal]:
        return (Refusal(REASON, snapshot.nodes.alive),) if any(self._in_use(pod, snapshot)) else ()

    def details(self, pod: Needs, rows: Sequence[int], snapshot: Snapshot) -> Iterable[list[str]]:
        said = [f"claim {name} is {ONE_POD}, and another pod uses it" for name in self._in_use(pod, snapshot)]
        return (said for _ in rows)

    def unblocked_by(self, pod: Needs, event: Event, snapshot: Snapshot) -> bool:
        return not any(self._in_use(pod, snapshot))

    def _in_use(self, pod: Needs, snapshot: Snapshot) -> list[str]:
        if not pod.claims:
            return []
        used = [claim.name for claim in pod.claims if not claim.ephemeral and snapshot.storage.users[pod.namespace, claim.name] > 0]
        found = [(name, snapshot.storage.claims.get((pod.namespace, name))) for name in used]
        return [name for name, claim in found if claim is not None and ONE_POD in claim.spec.access_modes]
