"""Node by node: may one migration go there, and if not, why. Asked of the scheduler's own rules, all nodes at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np

from herder.api import labels
from herder.api.core import Pod
from herder.api.kinds.instance import VirtualMachineInstance
from herder.api.meta import NodeAffinity as NodeAffinityView
from herder.api.meta import NodeSelectorTerm
from herder.api.reading import part
from herder.rules.instances.launcher import launcher_pod
from herder.rules.placement import RULES, Decision, Needs, Snapshot, decide, needs_of
from herder.rules.placement.columns import Codes, Mask
from herder.rules.placement.cordon import LEAVING, Cordon
from herder.rules.placement.named_nodes import NamedNodes
from herder.rules.placement.node_affinity import NodeAffinity, allowed_nodes
from herder.rules.placement.node_match import nobody, picked_by_term
from herder.rules.placement.rule import Rule
from herder.rules.placement.taints import Taints
from herder.rules.targets.merging import Added, constrained
from herder.rules.targets.words import (
    BEING_DELETED,
    CORDONED,
    NOT_SCHEDULABLE,
    OTHER_CPU,
    OTHER_RUNTIME,
    OWN_RULES,
    SOURCE,
    Phrase,
    excluded,
    refused,
    tainted,
    waits,
)

Document = dict[str, Any]


class Asked(msgspec.Struct, frozen=True):
    """One migration: the launcher pod that it would make if nothing were added, what is added, and where the guest is."""

    pod: Pod
    added: Added = Added()
    source: str = ""
    # Requirements on node labels that follow from what the guest was started with: its runtime, its processor.
    extra: tuple[Document, ...] = ()


class Judged(msgspec.Struct, frozen=True, eq=False):
    """All nodes. `numbers` says which of `phrases` is true of each; 0 of those that fit, and of rows without a node."""

    decision: Decision
    phrases: list[Phrase]
    numbers: Codes

    def counted(self) -> list[tuple[Phrase, int]]:
        counts = np.bincount(self.numbers, minlength=len(self.phrases))
        return [(phrase, int(count)) for phrase, count in zip(self.phrases[1:], counts[1:], strict=True) if count]


def asked_of(instance: Document, added: Added | None = None, extra: Iterable[Document] = ()) -> Asked:
    """About an instance as it is written: the same pod that its controller makes, and where it runs now."""
    view = msgspec.convert(instance, VirtualMachineInstance)
    pod = msgspec.convert(launcher_pod(instance, view.spec), Pod)
    source = view.status.node_name if view.status is not None else None
    return Asked(pod, added or Added(), source or "", tuple(extra))


class Masks(msgspec.Struct, frozen=True, eq=False):
    """What each side allows, and lasts: room, taints and cordons are not in it."""

    own: Mask
    added: Mask
    runtime: Mask
    cpu: Mask
    source: Mask

    @property
    def wanted(self) -> Mask:
        return self.own & self.added & self.runtime & self.cpu


def masks_of(asked: Asked, snapshot: Snapshot) -> Masks:
    nodes = snapshot.nodes
    own = needs_of(asked.pod)
    # That a node is ready for machines comes and goes; it is no rule of the machine.
    lasting = msgspec.structs.replace(own, node_selector=tuple(pair for pair in own.node_selector if pair[0] != labels.SCHEDULABLE))
    source = nobody(nodes)
    row = nodes.rows.get(asked.source)
    if row is not None:
        source[row] = True
    return Masks(
        own=allowed_nodes(lasting, snapshot) & nodes.alive,
        added=_by_term(asked.added.as_term(), snapshot),
        runtime=_by_tests(runtime_tests(asked), snapshot),
        cpu=_by_tests(cpu_tests(asked), snapshot),
        source=source,
    )


def runtime_tests(asked: Asked) -> list[Document]:
    return [test for test in asked.extra if test["key"] == labels.RUNTIME]


def cpu_tests(asked: Asked) -> list[Document]:
    return [test for test in asked.extra if test["key"] != labels.RUNTIME]


def judge_nodes(asked: Asked, snapshot: Snapshot) -> Judged:
    """The scheduler's decision about the pod as it would be made, in words that tell what is due to this migration."""
    masks = masks_of(asked, snapshot)
    decision = decide(target_needs(asked), snapshot, RULES)
    phrases, numbers = [Phrase("fits", "fit")], np.zeros(snapshot.nodes.capacity, dtype=np.int32)
    open_ = snapshot.nodes.alive & ~decision.fitting

    def say(phrase: Phrase, where: Mask) -> None:
        nonlocal open_
        here = open_ & where
        if here.any():
            numbers[here] = len(phrases)
            phrases.append(phrase)
            open_ = open_ & ~here

    say(SOURCE, masks.source)
    say(excluded(asked.added.said_by), ~masks.added)
    say(OTHER_RUNTIME, ~masks.runtime)
    say(OTHER_CPU, ~masks.cpu)
    if decision.waits_for is not None:
        say(OWN_RULES if isinstance(decision.waits_for, NamedNodes) else waits(decision.sentence), open_)
    for phrase, where in _refusals(asked, decision, masks, snapshot, open_):
        say(phrase, where)
    return Judged(decision, phrases, numbers)


def _refusals(asked: Asked, decision: Decision, masks: Masks, snapshot: Snapshot, open_: Mask) -> Iterable[tuple[Phrase, Mask]]:
    """Of the scheduler's rules the first that refused a node, with all that it said of it."""
    by_rule: dict[Rule, dict[str, Mask]] = {}
    for one in decision.refused:
        by_rule.setdefault(one.rule, {})[one.refusal.reason] = one.refusal.nodes
    for rule, said in by_rule.items():
        if isinstance(rule, Taints):
            numbers, nodes = snapshot.nodes.taints, snapshot.nodes
            (where,) = said.values()
            for number in np.unique(numbers[where & open_]).tolist():
                yield tainted(nodes.taint_sets[number], asked.pod.spec.tolerations), where & (numbers == number)
        elif isinstance(rule, Cordon):
            yield from ((BEING_DELETED if reason == LEAVING else CORDONED, where) for reason, where in said.items())
        elif isinstance(rule, NamedNodes | NodeAffinity):
            for where in said.values():
                yield OWN_RULES, where & ~masks.own
                yield NOT_SCHEDULABLE, where
        else:
            yield from _combinations(said, open_)


def _combinations(said: dict[str, Mask], open_: Mask) -> Iterable[tuple[Phrase, Mask]]:
    """A node that lacks both processors and memory is counted once."""
    codes = np.zeros(len(open_), dtype=np.int64)
    for place, where in enumerate(said.values()):
        codes |= where.astype(np.int64) << place
    for code in np.unique(codes[open_]).tolist():
        if code:
            yield refused([reason for place, reason in enumerate(said) if code >> place & 1]), codes == code


def target_needs(asked: Asked) -> Needs:
    """What the target pod will ask for."""
    own = needs_of(asked.pod)
    affinity = asked.pod.spec.affinity
    written = msgspec.to_builtins(affinity) if affinity is not None else {}
    term, selector = asked.added.term, asked.added.selector
    made = constrained(_without_nones(written), term, selector, extra=asked.extra, not_on=asked.source)
    nodes = msgspec.convert(part(made, "nodeAffinity"), NodeAffinityView)
    return msgspec.structs.replace(own, required_nodes=nodes.required, node_name="")


def _without_nones(written: Any) -> Any:
    if isinstance(written, dict):
        return {name: _without_nones(value) for name, value in written.items() if value is not None}
    if isinstance(written, list | tuple):
        return [_without_nones(value) for value in written]
    return written


def _by_tests(tests: list[Document], snapshot: Snapshot) -> Mask:
    return _by_term({"matchExpressions": tests}, snapshot)


def _by_term(term: Document, snapshot: Snapshot) -> Mask:
    """Nothing asked for is no restriction, other than in a required term."""
    if not any(term.get(name) for name in ("matchExpressions", "matchFields")):
        return snapshot.nodes.alive
    return picked_by_term(snapshot.nodes, msgspec.convert(term, NodeSelectorTerm))
