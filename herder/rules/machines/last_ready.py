"""When a machine was Ready before, and on which revision: one that worked and lost its node is not one that never worked."""

from __future__ import annotations

from herder.api import labels, reasons
from herder.api.kinds import VirtualMachine, VirtualMachineInstance
from herder.api.kinds.machine import LastReady
from herder.rules.plans import Document, find, moment, text_of, without_nothing


def last_ready(machine: VirtualMachine, instance: VirtualMachineInstance | None, *, ready: bool, now: float) -> Document | None:
    """The last time that is over; None of a machine that has always been Ready, or never."""
    status = machine.status
    before = find(status.conditions if status else None, reasons.READY)
    if ready or status is None or before is None or before.status != "True":
        return _document(status.last_ready) if status and status.last_ready else None
    # Of another instance than the one that was Ready nobody knows any more what that one was made from.
    same = instance is not None and instance.uid == status.last_instance_uid
    revision = instance.labels.get(labels.POOL_REVISION) if same and instance is not None else None
    return _document(LastReady(revision=revision, since=before.last_transition_time, until=moment(now)))


def _document(last: LastReady) -> Document:
    return without_nothing(
        {
            "revision": last.revision,
            "since": text_of(last.since) if last.since else None,
            "until": text_of(last.until) if last.until else None,
        }
    )
