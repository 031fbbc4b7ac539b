"""The words for why a node is no target, as they are read by people: one word for one node, one for several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from herder.api.core.nodes import Taint
from herder.api.meta import Toleration
from herder.rules.matching.taints import untolerated
from herder.rules.placement.resources import INSUFFICIENT, TOO_MANY_PODS


class Phrase(msgspec.Struct, frozen=True):
    one: str
    several: str
    # Stays true whatever room there is and whatever taints come and go.
    lasting: bool = False


SOURCE = Phrase("is the source node", "are the source node", True)
OWN_RULES = Phrase("does not match the machine's own node rules", "do not match the machine's own node rules", True)
OTHER_CPU = Phrase("lacks the CPU that the guest was started with", "lack the CPU that the guest was started with", True)
OTHER_RUNTIME = Phrase("has another runtime", "have another runtime", True)
NOT_SCHEDULABLE = Phrase("is not ready for machines", "are not ready for machines")
CORDONED = Phrase("is cordoned", "are cordoned")
BEING_DELETED = Phrase("is being deleted", "are being deleted")
# A node may have a taint that no other has: a sentence is not a list of all nodes.
MOST_REASONS = 12
_INSUFFICIENT = INSUFFICIENT.format("")


def excluded(said_by: str) -> Phrase:
    return Phrase(f"excluded by {said_by}", f"excluded by {said_by}", True)


def tainted(taints: Iterable[Taint], tolerations: tuple[Toleration, ...]) -> Phrase:
    taint = untolerated(taints, tolerations)
    key = taint.key if taint is not None else "that is not tolerated"
    return Phrase(f"has taint {key}", f"have taint {key}")


def refused(reasons: Sequence[str]) -> Phrase:
    """From what kube-scheduler says."""
    lacking = [reason.removeprefix(_INSUFFICIENT) for reason in reasons if reason.startswith(_INSUFFICIENT)]
    lacking += ["room for another pod" for reason in reasons if reason == TOO_MANY_PODS]
    if len(lacking) == len(reasons):
        return Phrase(f"lacks {' and '.join(lacking)}", f"lack {' and '.join(lacking)}")
    said = ", ".join(reason.removeprefix("node(s) ") for reason in reasons)
    return Phrase(said, said)


def waits(said: str) -> Phrase:
    """The pod would have to wait wherever it went."""
    return Phrase(f"must wait: {said}", f"must wait: {said}")


def sentence(fitting: int, total: int, counts: Iterable[tuple[Phrase, int]]) -> str:
    """ "0/5 nodes: 2 lack cpu, 1 has taint x, 2 excluded by addedNodeSelectorTerm": what may pass first."""
    if not total:
        return "0/0 nodes: there are no nodes"
    ordered = sorted(counts, key=lambda one: (one[0].lasting, -one[1], one[0].one))
    said = [f"{count} {phrase.one if count == 1 else phrase.several}" for phrase, count in ordered[:MOST_REASONS]]
    others = sum(count for _, count in ordered[MOST_REASONS:])
    listed = ", ".join([*said, *([f"{others} for other reasons"] if others else [])])
    return f"{fitting}/{total} nodes: {listed}" if listed else f"{fitting}/{total} nodes"
