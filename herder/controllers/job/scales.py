"""How many replicas controllers of somebody else's want, read through their scale subresource.

Whoever makes pods names their controllers, as many and of whatever kind they like. So nothing is read that nobody asked about, each
answer is used for a while, namespaces take turns, and there is an end to how many are kept of each namespace and read in a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from heapq import nsmallest

import msgspec

from herder.api.backoff import doubled
from herder.kube.bucket import Bucket, Rate
from herder.kube.controller import DONE, Later, Result, Work
from herder.kube.discovery import Discovery
from herder.kube.errors import KubeError, NotFound
from herder.kube.kit import Kit
from herder.kube.resources import Key
from herder.rules.jobs.workload import Controller, NoScale, Scale

# An answer is used for so many seconds; then it is asked for again if somebody still wants it, and used a while longer meanwhile.
FRESH = 30.0
USABLE = 120.0
# One that could not be read is tried again, ever more slowly.
FIRST_RETRY, LONGEST_RETRY = 5.0, 300.0
# Of one namespace: how many are known, and read before others have their turn.
MOST_KNOWN = 500
AT_ONCE = 5
REST = 1.0
PATIENCE = 5.0
WORKERS = 4
# Of all namespaces together.
READS = Rate(burst=50, per_second=50.0)

Answer = Scale | NoScale
Asked = tuple[str, Controller]


class _Known(msgspec.Struct):
    """What is known of one controller. `answer` is the last one that said something, of the time `read`."""

    wanted: float
    answer: Answer | None = None
    read: float = 0.0
    due: float = 0.0
    failures: int = 0
    problem: str = ""


class Scales:
    name = "workload-scales"

    def __init__(self, kit: Kit, discovery: Discovery, changed: Callable[[str, Controller], None]) -> None:
        """`changed` is told of each answer that is another one than before."""
        self._client = kit.client
        self._discovery = discovery
        self._changed = changed
        self._clock = asyncio.get_running_loop().time
        self._queue = kit.queue(self.name)
        self._bucket = Bucket(READS, self._clock())
        # By namespace: dicts, so that the order does not depend on hashes.
        self._known: dict[str, dict[Controller, _Known]] = {}
        self._rests_until: dict[str, float] = {}
        # Names in the queue are those of namespaces: of each, one is read at a time.
        self.work: Work = kit.work(self, self._queue, WORKERS)

    def get(self, namespace: str, controller: Controller) -> Answer:
        """At once, as far as it is known. Whatever has to be read is read soon, and `changed` is told."""
        now = self._clock()
        known = self._known.setdefault(namespace, {})
        entry = known.get(controller)
        if entry is None:
            if len(known) >= MOST_KNOWN and not self._make_room(known, now):
                few = f"more than {MOST_KNOWN} controllers of namespace {namespace} would have to be asked for their scale"
                return NoScale("Unknown", few)
            entry = known[controller] = _Known(wanted=now, due=now)
        entry.wanted = now
        if entry.due <= now:
            self._queue.add(Key("", namespace))
        return _shown(entry, controller, now)

    async def read(self, namespace: str, controller: Controller) -> Answer:
        """As it is at this moment: before something is done that cannot be undone."""
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._read(namespace, controller)
        except (KubeError, TimeoutError) as error:
            return NoScale("Unknown", _why(controller, error))

    async def reconcile(self, key: Key) -> Result:
        """Reads what is due of one namespace, a few at a time; then it rests, however often somebody asks meanwhile."""
        rest = self._rests_until.get(key.name, 0.0) - self._clock()
        if rest > 0:
            return Later(rest)
        known = self._known.get(key.name, {})
        # Who has waited longest first: else those that are read again and again would keep the others from their turn.
        due = (controller for controller, entry in known.items() if self._is_due(entry))
        for controller in nsmallest(AT_ONCE, due, key=lambda controller: known[controller].due):
            await asyncio.sleep(self._bucket.reserve(self._clock()))
            entry = known.get(controller)
            if entry is not None:
                await self._refresh(key.name, controller, entry)
        self._rests_until[key.name] = self._clock() + REST
        self._forget(key.name)
        if any(self._is_due(entry) for entry in known.values()):
            return Later(REST)
        if not known:
            return DONE
        # Then what nobody asks about any more is forgotten.
        soonest = min((entry.due - self._clock() for entry in known.values() if entry.failures), default=USABLE)
        return Later(max(REST, soonest))

    def _is_due(self, entry: _Known) -> bool:
        """And asked for since then: what nobody asks about any more is not read again. One that failed is tried again by itself, as
        long as it is kept: somebody waits for it."""
        return entry.due <= self._clock() and (entry.failures > 0 or entry.wanted >= entry.due)

    async def _refresh(self, namespace: str, controller: Controller, entry: _Known) -> None:
        before = _shown(entry, controller, self._clock())
        answer = await self.read(namespace, controller)
        now = self._clock()
        if isinstance(answer, NoScale) and answer.why == "Unknown":
            entry.due = now + doubled(FIRST_RETRY, LONGEST_RETRY, entry.failures)
            entry.failures, entry.problem = entry.failures + 1, answer.message
        else:
            entry.answer, entry.read, entry.due, entry.failures, entry.problem = answer, now, now + FRESH, 0, ""
        if _shown(entry, controller, now) != before:
            self._changed(namespace, controller)

    async def _read(self, namespace: str, controller: Controller) -> Answer:
        if not controller.name:
            return NoScale("Missing", f"{controller.kind} without a name")
        group, _, version = controller.api_version.rpartition("/")
        served = await self._discovery.find(group, version, controller.kind)
        if served is None:
            # Nobody could make a pod in the place of this one; or the server has only just begun, and will say so soon.
            return NoScale("Unknown", f"no kind {controller.kind} of {controller.api_version} is served")
        if not served.scalable or not served.resource.namespaced:
            # One outside of namespaces may have pods in all of them: of its number nothing follows for this one.
            return NoScale("NoScale")
        try:
            scale = await self._client.get(served.resource, Key(namespace, controller.name), subresource="scale")
        except NotFound as error:
            if error.details.get("name") == controller.name:
                return NoScale("Missing", f"{controller.kind} {controller.name} is not there")
            # It is the kind that is not there any more, and not the object.
            self._discovery.forget(group)
            raise
        return Scale(scale.uid, scale.spec.replicas)

    def _make_room(self, known: dict[Controller, _Known], now: float) -> bool:
        for controller in [controller for controller, entry in known.items() if now - entry.wanted >= USABLE]:
            del known[controller]
        return len(known) < MOST_KNOWN

    def _forget(self, namespace: str) -> None:
        known = self._known.get(namespace, {})
        self._make_room(known, self._clock())
        if not known:
            self._known.pop(namespace, None)
            self._rests_until.pop(namespace, None)


def _shown(entry: _Known, controller: Controller, now: float) -> Answer:
    if entry.answer is not None and now - entry.read < USABLE:
        return entry.answer
    return NoScale("Unknown", entry.problem or f"the scale of {controller.kind} {controller.name} has not been read yet")


def _why(controller: Controller, error: BaseException) -> str:
    said = str(error) or f"no answer within {PATIENCE:.0f} s"
    return f"the scale of {controller.kind} {controller.name} cannot be read: {said}"
