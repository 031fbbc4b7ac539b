"""Which pods belong to which autoscaler's target, and to no other one's."""

from __future__ import annotations

from herder.api import reasons
from herder.api.core import Pod
from herder.api.selector_text import parse_selector
from herder.kube.cache import Cache, Change
from herder.kube.resources import Key
from herder.rules.autoscaling import NoSelector
from herder.rules.matching.selector_index import SelectorIndex

# Whoever scales the same pods most often has all of them: so many are asked whose they are.
ASKED = 100


class TargetPods:
    def __init__(self, pods: Cache[Pod]) -> None:
        self._pods = pods
        self._index: SelectorIndex[Key, Key] = SelectorIndex()
        pods.subscribe(self._pod_changed)

    def _pod_changed(self, change: Change[Pod]) -> None:
        if change.new is None:
            self._index.remove_labels(change.key)
        else:
            self._index.set_labels(change.key, change.key.namespace, change.new.labels)

    def forget(self, autoscaler: Key) -> None:
        self._index.remove_selector(autoscaler)

    def of(self, autoscaler: Key, selector: str) -> tuple[Pod, ...] | NoSelector:
        """By name. `selector`: what the target's scale says of its pods."""
        if not selector:
            missing = "the HPA target's scale is missing a selector"
            return NoSelector(reasons.INVALID_SELECTOR, missing, reasons.SELECTOR_REQUIRED, "selector is required")
        try:
            parsed = parse_selector(selector)
        except ValueError as error:
            message = f"couldn't convert selector into a corresponding internal selector object: {error}"
            return NoSelector(reasons.INVALID_SELECTOR, message, reasons.INVALID_SELECTOR, message)
        self._index.set_selector(autoscaler, autoscaler.namespace, parsed)
        found = self._index.objects_of(autoscaler)
        several = self._several(found)
        if several:
            message = f"pods by selector {selector} are controlled by multiple HPAs: [{' '.join(map(str, several))}]"
            return NoSelector(reasons.AMBIGUOUS_SELECTOR, message, reasons.AMBIGUOUS_SELECTOR, message)
        views = (self._pods.get(key) for key in found)
        return tuple(pod for pod in views if pod is not None)

    def _several(self, pods: list[Key]) -> list[Key]:
        """The autoscalers of the first pod that has more than one."""
        for key in pods[:ASKED]:
            stored = self._pods.stored(key)
            several = self._index.selectors_of(key.namespace, stored.labels) if stored is not None else []
            if len(several) > 1:
                return several[:ASKED]
        return []
