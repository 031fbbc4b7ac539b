"""What a decision is made from."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from herder.api.core import HorizontalPodAutoscaler, Pod


class Usage(msgspec.Struct, frozen=True):
    """What one pod used over the `window` seconds before `at`, in thousandths, by resource."""

    at: float
    window: float
    amounts: Mapping[str, int]


class Target(msgspec.Struct, frozen=True):
    """What is scaled, as its scale subresource shows it."""

    replicas: int
    selector: str = ""


class NoSelector(msgspec.Struct, frozen=True):
    """Why the pods of the target cannot be told from others: the condition, the event, and what each says."""

    reason: str
    message: str
    event: str
    event_message: str


class AutoscalerSnapshot(msgspec.Struct, frozen=True):
    autoscaler: HorizontalPodAutoscaler
    # Why the target's scale could not be read, or the target.
    target: Target | str
    pods: tuple[Pod, ...] | NoSelector = ()
    # By the name of the pod; or why nothing is known.
    usage: Mapping[str, Usage] | str = msgspec.field(default_factory=dict[str, Usage])
