"""The ConfigMap herder-config: what is in use of it at this moment, for all controllers; and what people are told of it, once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from herder.api import reasons
from herder.api.account import SYSTEM_NAMESPACE
from herder.api.core import ConfigMap
from herder.kube.cache import Caches, Change, view_of
from herder.kube.client import Selection
from herder.kube.controller import DONE, Result, Work
from herder.kube.enqueue import enqueue
from herder.kube.kit import Kit
from herder.kube.resources import CONFIG_MAPS, Key
from herder.rules.herder_config import (
    BUILT_IN,
    JOBS,
    NAME,
    POOLS,
    Configuration,
    InUse,
    JobsConfig,
    JobsConfiguration,
    PoolsConfiguration,
    news,
    next_in_use,
)

C = TypeVar("C", bound=Configuration)
# That one, and not all that there are.
ONE = Selection(namespace=SYSTEM_NAMESPACE, fields=f"metadata.name={NAME}")
WHERE = Key(SYSTEM_NAMESPACE, NAME)


class HerderConfig:
    """Made when a term begins, as all that follows a cache: each has then seen the same, and the same is in use for all of them."""

    def __init__(self, caches: Caches) -> None:
        self.cache = caches.of(CONFIG_MAPS, ONE)
        self.in_use = BUILT_IN
        # Parsed once, and not at each look.
        self._jobs = JobsConfig()
        self._handlers: list[tuple[str, Callable[[], None]]] = []
        self.cache.subscribe(self._changed)

    def pools(self) -> PoolsConfiguration:
        return self._of(POOLS, PoolsConfiguration)

    def jobs(self) -> JobsConfig:
        return self._jobs

    def subscribe(self, handler: Callable[[], None], file: str = "") -> None:
        """Called when what is in use has changed, of this file (POOLS) or of any: not for what is refused, or says the same."""
        self._handlers.append((file, handler))

    def _of(self, file: str, kind: type[C]) -> C:
        value = self.in_use.values[file]
        assert isinstance(value, kind)
        return value

    def _changed(self, change: Change[ConfigMap]) -> None:
        config_map = view_of(change.new)
        if change.key != WHERE or (config_map is None and change.new is not None):
            return  # one that cannot be read says nothing, and the last good one stays
        before, self.in_use = self.in_use, next_in_use(self.in_use, config_map)
        changed = {file for file, value in self.in_use.values.items() if value != before.values[file]}
        if JOBS in changed:
            self._jobs = self._of(JOBS, JobsConfiguration).parsed()
        for file, handler in self._handlers:
            if file in changed or (changed and not file):
                handler()


class ConfigurationEvents:
    """Tells on the ConfigMap what is wrong with it: once for what is written there, however often it is looked at."""

    name = "configuration"

    def __init__(self, kit: Kit) -> None:
        self._recorder = kit.recorder
        self._config = HerderConfig(kit.caches)
        # What the last look found: None before the first, at which what is right is no news.
        self._seen: InUse | None = None
        self._told: set[tuple[str, str, str]] = set()

    @classmethod
    def start(cls, kit: Kit) -> Work:
        self, queue = cls(kit), kit.queue(cls.name)
        # Also where there is none: what comes later is news.
        queue.add(WHERE)
        enqueue(self._config.cache, queue)
        return kit.work(self, queue, of=self._config.cache)

    async def reconcile(self, key: Key) -> Result:
        in_use, config_map = self._config.in_use, self._config.cache.get(key)
        if config_map is not None:
            self._tell(config_map, in_use)
        self._seen = in_use
        return DONE

    def _tell(self, config_map: ConfigMap, in_use: InUse) -> None:
        for sentence in news(self._seen, in_use) if self._seen is not None else ():
            self._recorder.normal(config_map, reasons.CONFIGURATION_IN_USE, sentence)
        refused = {(config_map.uid, file, refusal.written): refusal.sentence for file, refusal in in_use.refused.items()}
        for what, sentence in refused.items():
            if what not in self._told:
                self._recorder.warning(config_map, reasons.CONFIGURATION_REFUSED, sentence)
        self._told = set(refused)
