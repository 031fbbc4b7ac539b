"""How far a rollout is, from what the pool shows, for who waits for it."""

from __future__ import annotations

from typing import Literal

import msgspec

from herder.api import reasons
from herder.api.kinds import VirtualMachinePool
from herder.rules.plans import find
from herder.rules.pools.rollout import proactive, strategy_of


class RolloutStanding(msgspec.Struct, frozen=True):
    # held: it does not go on by itself.
    state: Literal["done", "going", "held"]
    text: str
    percent: int = 0


def rollout_standing(pool: VirtualMachinePool) -> RolloutStanding:
    status = pool.status
    if status is None or (status.observed_generation or 0) < (pool.metadata.generation or 0):
        return RolloutStanding("going", "the controllers have not looked at the latest change yet")
    updated, replicas = status.updated_replicas or 0, status.replicas or 0
    # Not the whole until it is complete: who has the revision may still have to become available.
    percent = min(99, 100 * updated // max(1, pool.spec.replicas))
    progressing = find(status.conditions, reasons.PROGRESSING)
    reason = (progressing.reason if progressing is not None else None) or ""
    message = (progressing.message if progressing is not None else None) or "the controllers have not said how far it is"
    if reason == reasons.ROLLOUT_COMPLETE:
        have = "has" if replicas == 1 else "have"
        return RolloutStanding("done", f"rollout of {status.update_revision} is complete: {replicas} of {replicas} {have} it", 100)
    held = _held(pool, reason, message)
    if held:
        return RolloutStanding("held", held, percent)
    if reason == reasons.ROLLOUT_LIMITED and not status.unavailable_replicas:
        return RolloutStanding("done", f"as far as it may go: {message}", percent)
    missing = f"; {status.unavailable_replicas} not available" if status.unavailable_replicas else ""
    return RolloutStanding("going", f"{message}{missing}", percent)


def after_failure(pool: VirtualMachinePool) -> str:
    """What to type where a template does not work: to go back takes an earlier one."""
    name, status = pool.name, pool.status
    progressing = find(status.conditions if status else None, reasons.PROGRESSING)
    complete, wanted = (status.current_revision, status.update_revision) if status else (None, None)
    if (complete and complete != wanted) or (progressing is not None and progressing.reason == reasons.ROLLED_BACK):
        return f"`herder pool rollout undo {name}` goes back"
    return (
        f"`herder pool status {name}` says why; no earlier template was ever complete: `kubectl edit vmpool {name}` mends this one"
    )


def _held(pool: VirtualMachinePool, reason: str, message: str) -> str:
    """Why it stands still, and what lets it go on; empty while it goes on."""
    name = pool.name
    if pool.spec.paused:
        return f"spec.paused of pool {name} is true: nothing is rolled out until it is false"
    if reason in (reasons.PROGRESS_DEADLINE_EXCEEDED, reasons.ROLLED_BACK):
        return f"the rollout of pool {name} failed: {message}; {after_failure(pool)}"
    if strategy_of(pool) == "Proactive" and proactive(pool).paused:
        return f"the rollout of pool {name} is paused: {message}; `herder pool rollout resume {name}` lets it go on"
    if strategy_of(pool) == "Unmanaged":
        return f"updateStrategy of pool {name} is unmanaged: {message}; `herder pool rollout replace VM` updates one machine"
    if strategy_of(pool) == "Opportunistic":
        return f"updateStrategy of pool {name} is opportunistic: {message}; each gets it at its next start, `herder restart VM`"
    return ""
