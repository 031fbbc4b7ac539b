"""Where one migration may go: what the machine asks for AND what this migration adds (seed 001).

What is added only ever narrows. It goes into every required term of the target pod's node affinity, or is the only one where there
is none; the machine itself is not touched. All of this works on affinities as they are written, so that nothing of them is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from herder.api import reasons
from herder.api.kinds.migration import VirtualMachineInstanceMigrationSpec
from herder.api.kinds.migration_review import MigrationReviewSpec
from herder.api.node_selector import NodeSelectorTerm
from herder.api.normalise import added_term
from herder.api.reading import entries, part, text

Document = dict[str, Any]
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
NAME_FIELD: Final = "metadata.name"
TERM: Final = "addedNodeSelectorTerm"
SELECTOR: Final = "addedNodeSelector"


class Impossible(msgspec.Struct, frozen=True):
    """No node there is will ever do: the migration fails at once."""

    reason: str
    message: str


class Added(msgspec.Struct, frozen=True):
    """What one migration asks of its target, beyond the machine."""

    term: Document = {}
    selector: Mapping[str, str] = {}

    @property
    def nothing(self) -> bool:
        return not self.selector and not self.term.get("matchExpressions") and not self.term.get("matchFields")

    @property
    def names(self) -> list[str]:
        """The nodes that it names; a target must be each of them."""
        tests = [test for test in entries(self.term, "matchFields") if test.get("key") == NAME_FIELD and test["operator"] == "In"]
        return [str(value) for test in tests for value in test.get("values") or ()]

    @property
    def said_by(self) -> str:
        """The field that is to blame where a node is kept out by this."""
        fields = [(TERM, self.term), (SELECTOR, self.selector)]
        return " and ".join(name for name, value in fields if value) or TERM

    def as_term(self) -> Document:
        return _merged(self.term, self.selector)


def added_by(spec: VirtualMachineInstanceMigrationSpec | MigrationReviewSpec) -> Added:
    """ValueError where the term is none: admission refuses it, but not every cluster asks us."""
    return Added(added_term(spec.added_node_selector_term), spec.added_node_selector or {})


def constrained(
    affinity: Document | None,
    term: Any = None,
    added_selector: Mapping[str, str] | None = None,
    *,
    extra: Sequence[Document] = (),
    not_on: str = "",
) -> Document:
    """The affinity of a target pod. `extra`: further requirements on labels; `not_on`: the node that the guest leaves."""
    wanted = _merged(added_term(term), added_selector or {}, extra, not_on)
    given = affinity or {}
    if not wanted:
        return given
    node_affinity = part(given, "nodeAffinity")
    required = node_affinity.get(REQUIRED)
    terms: list[Document] = [wanted] if required is None else [_and(one, wanted) for one in entries(required, "nodeSelectorTerms")]
    return {**given, "nodeAffinity": {**node_affinity, REQUIRED: {**(required or {}), "nodeSelectorTerms": terms}}}


def contradiction(own: Mapping[str, str], added: Added) -> Impossible | None:
    """Where what is added can never hold together with the machine's nodeSelector, or with itself."""
    wanted = {**added.selector}
    for key, value in own.items():
        if wanted.get(key, value) != value:
            said = f"{SELECTOR} asks for {key}={wanted[key]}, and the machine's own nodeSelector for {key}={value}"
            return _conflict(said)
    for pairs, whose in ((own, "the machine's own nodeSelector asks for"), (wanted, f"{SELECTOR} asks for")):
        for test in entries(added.term, "matchExpressions"):
            key = text(test, "key")
            if key in pairs and not NodeSelectorTerm({"matchExpressions": [test]}).matches({key: pairs[key]}, ""):
                return _conflict(f"{TERM} asks for {_told(test)}, and {whose} {key}={pairs[key]}")
    return None


def _conflict(said: str) -> Impossible:
    return Impossible(reasons.CONFLICTING_NODE_SELECTOR, f"{said}: no node can have both")


def _told(test: Document) -> str:
    listed = f" ({', '.join(test.get('values') or ())})" if test.get("values") else ""
    return f"{test['key']} {test['operator']}{listed}"


def _merged(term: Document, selector: Mapping[str, str], extra: Iterable[Document] = (), not_on: str = "") -> Document:
    pairs: list[Document] = [{"key": key, "operator": "In", "values": [value]} for key, value in sorted(selector.items())]
    elsewhere: list[Document] = [{"key": NAME_FIELD, "operator": "NotIn", "values": [not_on]}] if not_on else []
    lists = {
        "matchExpressions": [*entries(term, "matchExpressions"), *pairs, *extra],
        "matchFields": [*entries(term, "matchFields"), *elsewhere],
    }
    return {name: tests for name, tests in lists.items() if tests}


def _and(own: Document, wanted: Document) -> Document:
    """An empty term matches nothing, and stays empty: with something in it, it would begin to match."""
    if not own.get("matchExpressions") and not own.get("matchFields"):
        return own
    return {**own, **{name: [*entries(own, name), *tests] for name, tests in wanted.items()}}
