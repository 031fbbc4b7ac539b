"""What a migration shows. Written whole each time, so what is not said again is gone."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from herder.api.core import Pod
from herder.api.kinds import VirtualMachineInstance
from herder.api.kinds.migration import VirtualMachineInstanceMigration
from herder.api.kinds.migration_state import MigrationProgress
from herder.rules.migration.handover import Failed, GoesOn, Moved, Sides, sides_of
from herder.rules.migration.phases import ORDER
from herder.rules.migration.snapshot import MigrationSnapshot, Prepared
from herder.rules.migration.target_pod import target_name
from herder.rules.plans import Document, moment, plain, text_of, without_nothing


def waiting(migration: VirtualMachineInstanceMigration, reason: str, message: str, now: float) -> Document:
    return _with(migration, "Pending", reason, message, now)


def begun(
    migration: VirtualMachineInstanceMigration, instance: VirtualMachineInstance, source: Pod, prepared: Prepared, now: float
) -> Document:
    """Its turn has come: from here on it keeps the settings that it has now."""
    uid = migration.uid
    target = target_name(instance, uid)
    return _with(migration, "Scheduling", "", "", now) | {
        "sourceNode": source.spec.node_name,
        "targetPod": target,
        "migrationPolicy": plain(prepared.policy),
        "effectiveSettings": plain(prepared.settings),
        "startTimestamp": text_of(moment(now)),
        "migrationState": without_nothing(
            {
                "migrationName": migration.name,
                "migrationUid": uid,
                "migrationPolicyName": prepared.policy.name or None,
                "migrationConfiguration": plain(prepared.settings),
                "sourceNode": source.spec.node_name,
                "sourcePod": source.name,
                "targetPod": target,
            }
        ),
    }


def under_way(snapshot: MigrationSnapshot, sides: Sides, stands: GoesOn, now: float) -> Document:
    migration = snapshot.migration
    document = _with(migration, stands.phase, stands.reason, stands.message, now)
    progress = _progress(sides)
    state: Document = {**document.get("migrationState", {})}
    if progress is not None:
        document["progress"] = plain(progress)
    _mark(state, sides, text_of(moment(now)))
    if "targetNode" in state:
        document["targetNode"] = state["targetNode"]
    if stands.cancel or sides.cancelled:
        state |= {"abortRequested": True, "abortStatus": "Aborting"}
    return document | {"migrationState": state | {"completed": False}}


def over(snapshot: MigrationSnapshot, stands: Failed | Moved, now: float) -> Document:
    migration = snapshot.migration
    sides = sides_of(snapshot, now)
    failed = isinstance(stands, Failed)
    reason, message = (stands.reason, stands.message) if isinstance(stands, Failed) else ("", "")
    document = _with(migration, "Failed" if failed else "Succeeded", reason, message, now)
    at = text_of(moment(now))
    document["endTimestamp"] = at
    shown = migration.status.progress if migration.status else None
    if (progress := _progress(sides) or shown) is not None:
        # Of one that succeeded the last numbers may not have come: that it is done is known.
        document["progress"] = plain(progress if failed else msgspec.structs.replace(progress, percent=100, remaining_bytes=0))
    if "migrationState" in document or not failed:
        state: Document = {**document.get("migrationState", {})}
        _mark(state, sides, at)
        if "targetNode" in state:
            document["targetNode"] = state["targetNode"]
        ended: Document = {"endTimestamp": at, "completed": True, "failed": failed}
        if isinstance(stands, Failed):
            ended["failureReason"] = f"{stands.reason}: {stands.message}"
        if migration.being_deleted:
            ended |= {"abortRequested": True, "abortStatus": "Succeeded" if failed else "Failed"}
        document["migrationState"] = {**state, **ended}
    return document


def _mark(state: Document, sides: Sides, at: str) -> None:
    """Moments, each said once; what was too short to be seen was reached with the next."""
    said, heard = sides.source_said, sides.target_said
    ran = heard is not None and heard.taken_over
    if sides.target is not None and sides.target.spec.node_name:
        state["targetNode"] = sides.target.spec.node_name
    if heard is not None and heard.address:
        state["targetNodeAddress"] = heard.address
    if heard is not None and heard.no_post_copy:
        state["postCopyUnavailable"] = heard.no_post_copy
    if ran or said is not None or (heard is not None and heard.address):
        state.setdefault("targetReadyTimestamp", at)
    if ran or said is not None:
        state.setdefault("startTimestamp", at)
    if said is not None and said.progress is not None and said.progress.mode is not None:
        state["mode"] = said.progress.mode
    if ran or sides.given_away:
        state.setdefault("handedOverTimestamp", at)


def _progress(sides: Sides) -> MigrationProgress | None:
    return sides.source_said.progress if sides.source_said is not None else None


def _with(migration: VirtualMachineInstanceMigration, phase: str, reason: str, message: str, now: float) -> Document:
    """As it was, with another phase and why. What only a phase has is carried on."""
    known = plain(migration.status) or {}
    # Conditions are not ours to say again: they would never go then.
    kept = {name: value for name, value in known.items() if name not in ("phase", "reason", "message", "conditions")}
    document: Document = {
        **kept,
        **without_nothing(
            {
                "observedGeneration": migration.metadata.generation,
                "phase": phase,
                "reason": reason or None,
                "message": message or None,
            }
        ),
    }
    document["phaseTransitionTimestamps"] = _reached(migration, kept.get("phaseTransitionTimestamps", ()), phase, now)
    return document


def _reached(migration: VirtualMachineInstanceMigration, known: Iterable[Document], phase: str, now: float) -> list[Document]:
    """Each phase once, in their order. One that was too short to be seen was reached with the next."""
    listed = list(known)
    passed: tuple[str, ...] = ORDER if phase == "Succeeded" else ORDER[: ORDER.index(phase)] if phase in ORDER else ("Pending",)
    made = migration.metadata.creation_timestamp
    for one in (*passed, phase):
        if all(entry["phase"] != one for entry in listed):
            at = made if one == "Pending" and made is not None else moment(now)
            listed.append({"phase": one, "phaseTransitionTimestamp": text_of(at)})
    return listed
