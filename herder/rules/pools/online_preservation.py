"""Whose memory is saved before it is taken (seed 003, state preservation Online): a machine that runs is suspended first, and goes
once its memory is in its claim. Who cannot be saved is not taken, and another is chosen; who does not run has nothing to save.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from herder.api import labels
from herder.rules.pools.member import Member
from herder.rules.pools.selection.inputs import NodeState

# take: it can go now. save: it is to be suspended. saving: that is under way. fails: it was tried, and is called off.
# stays: it is not taken now.
Stage = Literal["take", "save", "saving", "fails", "stays"]


class Progress(msgspec.Struct, frozen=True):
    """How far a machine is on its way out, and what keeps it."""

    stage: Stage
    why: str = ""
    # When it is worth another look.
    retry: float | None = None


def progress(member: Member, node: NodeState | None, now: float) -> Progress:
    if member.suspension is not None:
        return _suspended(member)
    if not member.running or member.restarting or member.ending:
        return Progress("take")
    if member.unsavable:
        return Progress("stays", member.unsavable)
    if node is not None and not node.answers:
        return Progress("stays", f"its node {member.node} does not answer")
    if node is not None and node.labels.get(labels.SAVE_MEMORY) != "true":
        return Progress("stays", f"its node {member.node} cannot save memory")
    failure = member.save_failure
    if failure is not None and (retry := failure.until(now)) > now:
        return Progress("stays", failure.message, retry)
    return Progress("save")


def _suspended(member: Member) -> Progress:
    suspension = member.suspension
    assert suspension is not None, "looked at before"
    if member.is_asleep or (member.halted and suspension.problem):
        return Progress("take")
    if not suspension.problem:
        return Progress("saving")
    return Progress("fails" if suspension.by_pool else "stays", suspension.problem)
