"""How a migration stands, as both its pods and their nodes show it. The one place that decides who may be removed."""

from __future__ import annotations

import msgspec

from herder.api import reasons
from herder.api.core import Node, Pod
from herder.api.guest import ENDED, MigrationReport, order_of, report_of
from herder.api.kinds.migration import MigrationPhase
from herder.rules.instances.observed import answers, fenced
from herder.rules.migration.snapshot import MigrationSnapshot, said_by

# What the source has sent is there when it gives the guest away. A target that answers and knows nothing of it for so long has lost
# it: its machine was restarted.
ARRIVES_WITHIN = 60.0
# Agents tell each other at once. Only where that did not work, the grant goes through the API server.
GRANT_AFTER = 2.0


class Failed(msgspec.Struct, frozen=True):
    """Over, and nobody was moved: what was made for it may go."""

    reason: str
    message: str


class Moved(msgspec.Struct, frozen=True):
    """Over: the guest runs at the target, and needs its source no more."""


class GoesOn(msgspec.Struct, frozen=True):
    phase: MigrationPhase
    reason: str = ""
    message: str = ""
    # The order shall be given to the source, or taken back.
    give_order: bool = False
    cancel: bool = False
    # The target shall be told that its source runs no more.
    grant: bool = False
    # `reason` is an error that a node has met: people are told.
    troubled: bool = False
    next_look: float | None = None
    # When time alone would make it fail.
    look_in: float | None = None


Standing = Failed | Moved | GoesOn


class Sides(msgspec.Struct, frozen=True):
    uid: str
    source: Pod | None
    target: Pod | None
    source_said: MigrationReport | None
    target_said: MigrationReport | None
    source_node: Node | None
    target_node: Node | None
    # How long ago the source gave the guest away, as it is written down; None where it is not.
    handed_over_for: float | None
    # Whether the source was told to send.
    ordered: bool
    cancelled: bool

    @property
    def source_is_past(self) -> bool:
        """Nothing of it can run any more: somebody vouched for that."""
        return self.source is None or (bool(self.source.spec.node_name) and fenced(self.source_node))

    @property
    def source_ended(self) -> bool:
        if self.source is None or self.source.status.phase in ("Succeeded", "Failed"):
            return True
        report = report_of(self.source)
        return report is not None and report.state in ENDED and report.state != "HandedOver"

    @property
    def given_away(self) -> bool:
        if self.source_said is not None and self.source_said.handed_over:
            return True
        return self.ordered and self.source_is_past

    @property
    def target_lost(self) -> str:
        """Why the target cannot be gone to any more; empty where it can."""
        pod = self.target
        if pod is None:
            return "the target pod is gone"
        if pod.status.phase in ("Failed", "Succeeded"):
            report = report_of(pod)
            said = (report.message if report else "") or pod.status.message or pod.status.reason
            return f"target pod {pod.name} ended" + (f": {said}" if said else "")
        return f"target pod {pod.name} was deleted" if pod.being_deleted else ""


def sides_of(snapshot: MigrationSnapshot, now: float) -> Sides:
    uid, source, target = snapshot.migration.uid, snapshot.source, snapshot.target
    order = order_of(source) if source is not None else None
    given = order is not None and order.migration == uid
    status = snapshot.migration.status
    state = status.migration_state if status is not None else None
    handed_over = state.handed_over_timestamp if state is not None else None
    return Sides(
        uid=uid,
        source=source,
        target=target,
        source_said=said_by(source, uid),
        target_said=said_by(target, uid),
        source_node=snapshot.nodes.get(source.spec.node_name) if source is not None else None,
        target_node=snapshot.nodes.get(target.spec.node_name) if target is not None else None,
        handed_over_for=now - handed_over.timestamp() if handed_over is not None else None,
        # A source that is gone took its order with it: then the phase remembers.
        ordered=given or (source is None and status is not None and status.phase == "Running"),
        cancelled=given and order is not None and order.cancelled,
    )


def standing(sides: Sides, unwanted: tuple[str, str]) -> Standing:
    """`unwanted`: why it shall not go on (reason and sentence), empty where it shall."""
    said, heard = sides.source_said, sides.target_said
    if heard is not None and heard.taken_over:
        over = sides.source_ended or sides.source_is_past or (said is not None and said.completed)
        return Moved() if over else GoesOn("Running")
    if sides.given_away:
        return _given_away(sides)
    if said is not None and said.failed:
        return _failed(sides, unwanted, said)
    if sides.source_ended:
        return Failed(reasons.SOURCE_STOPPED, "the guest ended before it was moved")
    why = _unwanted(sides, unwanted)
    if why[0]:
        if not sides.ordered:
            return Failed(*why)
        return GoesOn("Running", why[0], f"{why[1]}; the source is being told", cancel=not sides.cancelled)
    return _on_its_way(sides)


def _given_away(sides: Sides) -> Standing:
    heard = sides.target_said
    if sides.target_lost:
        return Failed(reasons.TARGET_POD_FAILED, f"{sides.target_lost} after the guest was handed over to it")
    if heard is not None and heard.has_memory:
        sure = sides.source_is_past
        return _remarked(sides, GoesOn("Running", grant=True, next_look=None if sure else GRANT_AFTER))
    if sides.source_is_past:
        return Failed(reasons.NODE_LOST, "the source was lost before all memory had been copied")
    return _arriving(sides)


def _arriving(sides: Sides) -> Standing:
    """All that it needs was sent, and the target has not said that it is there. One that does not answer may have it."""
    if not answers(sides.target_node):
        return GoesOn("Running")
    left = ARRIVES_WITHIN - (sides.handed_over_for or 0.0)
    if left > 0:
        return _remarked(sides, GoesOn("Running", look_in=left))
    return Failed(reasons.TARGET_POD_FAILED, "the target knows nothing of the guest that was handed over to it: it was restarted")


def _failed(sides: Sides, unwanted: tuple[str, str], said: MigrationReport) -> Failed:
    """The source says what it saw; what we know better is told instead."""
    if said.failed == reasons.CANCELLED and (why := _unwanted(sides, unwanted))[0]:
        return Failed(*why)
    if sides.target_lost and said.failed == reasons.TARGET_POD_FAILED:
        return Failed(reasons.TARGET_POD_FAILED, sides.target_lost)
    return Failed(said.failed, said.message)


def _unwanted(sides: Sides, unwanted: tuple[str, str]) -> tuple[str, str]:
    if unwanted[0]:
        return unwanted
    return (reasons.TARGET_POD_FAILED, sides.target_lost) if sides.target_lost else ("", "")


def _remarked(sides: Sides, stands: GoesOn) -> GoesOn:
    """With what is worth knowing of one that goes on: what a node has met, and what it does without."""
    if stands.reason:
        return stands
    if (trouble := _trouble(sides))[0]:
        return msgspec.structs.replace(stands, reason=trouble[0], message=trouble[1], troubled=True)
    if sides.target_said is not None and sides.target_said.no_post_copy:
        without = f"{sides.target_said.no_post_copy}; it goes on without post-copy"
        return msgspec.structs.replace(stands, reason=reasons.POST_COPY_NOT_AVAILABLE, message=without)
    return stands


def _trouble(sides: Sides) -> tuple[str, str]:
    said = sides.source_said
    if said is not None and said.trouble:
        return reasons.NODE_ERROR, said.trouble
    report = report_of(sides.target) if sides.target is not None else None
    waits = report is not None and report.state in ("Preparing", "Incoming")
    return (report.reason, report.message) if report is not None and waits else ("", "")


def _on_its_way(sides: Sides) -> GoesOn:
    return _remarked(sides, _stage(sides))


def _stage(sides: Sides) -> GoesOn:
    said, heard, target = sides.source_said, sides.target_said, sides.target
    assert target is not None, "one that is lost was told apart before"
    quiet = _not_answering(sides)
    if said is not None:
        return GoesOn("Running", *quiet)
    if heard is not None and heard.address:
        return GoesOn("TargetReady", *quiet, give_order=not sides.ordered and not quiet[0])
    if not target.spec.node_name:
        scheduled = next((one for one in target.status.conditions if one.type == "PodScheduled"), None)
        if scheduled is not None and scheduled.status == "False":
            return GoesOn("Scheduling", reasons.TARGET_UNSCHEDULABLE, scheduled.message)
        return GoesOn("Scheduling")
    return GoesOn("PreparingTarget", *quiet)


def _not_answering(sides: Sides) -> tuple[str, str]:
    if sides.source is None or answers(sides.source_node):
        return "", ""
    node = sides.source.spec.node_name
    return reasons.NODE_NOT_FENCED, f"source node {node} does not answer; nothing is decided until it is back or fenced"
