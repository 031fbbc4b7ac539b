"""What an importer pod tells its node, and what the node tells back. As with guests, the pod is all that they meet in."""

from __future__ import annotations

from typing import Literal

import msgspec

from herder.api.core import Pod
from herder.api.guest import SavedGuest
from herder.api.kinds.data_volume import HTTPSource
from herder.api.labels import IMPORT, IMPORT_CONDITION
from herder.api.views import View

ImportAction = Literal["http", "blank", "clone", "delete", "grow", "save"]


class ImportDefinition(View, frozen=True, kw_only=True):
    """Written by the controller into the pod, once."""

    action: ImportAction
    # The volume that is filled or grown, or whose content is removed: the name of the PersistentVolume.
    volume: str
    # How large the disk may be, in bytes; how large one that grows becomes.
    capacity: int = 0
    http: HTTPSource | None = None
    # The volume that is copied.
    source: str = ""
    preallocate: bool = False
    # Of one that grows: nobody fills its claim, so a disk that is not there yet is an empty one.
    unfilled: bool = False
    # Whose memory is saved: uid of the pod that it runs in.
    guest: str = ""
    # `simulated.herder.dev/…` annotations of the DataVolume, without the prefix.
    simulated: dict[str, str] = msgspec.field(default_factory=dict)


class ImportReport(View, frozen=True, kw_only=True):
    """Written by the agent into the pod's status."""

    done: int = 0
    # 0 while nobody knows.
    total: int = 0
    reason: str = ""
    message: str = ""
    # Of memory that is saved.
    saved: SavedGuest | None = None

    @property
    def percent(self) -> str:
        return f"{min(100.0, 100.0 * self.done / self.total):.1f}%" if self.total else "N/A"


def import_of(pod: Pod) -> ImportDefinition | None:
    """None for a pod that is no importer; raises msgspec's error where the annotation cannot be read."""
    text = pod.annotations.get(IMPORT)
    return msgspec.json.decode(text, type=ImportDefinition) if text else None


def import_report_of(pod: Pod) -> ImportReport | None:
    for condition in pod.status.conditions:
        if condition.type == IMPORT_CONDITION and condition.message:
            try:
                return msgspec.json.decode(condition.message, type=ImportReport)
            except msgspec.MsgspecError:
                return None
    return None
