"""Leader election over a Lease, by the same rules as client-go: of all who ask, in whatever language, one leads.

- Who holds the Lease renews it. The others look at it, and note by their own clock when it last changed: clocks of two machines
  are never compared. One that has not changed for its whole duration may be taken.
- Every write names the resourceVersion that it was decided on, so of two who try at once one gets a conflict.
- A leader that cannot renew ends its work before anybody else may begin: it counts from the moment at which its last good renewal
  was sent, and has given up by the renew deadline, which is before the Lease can run out for others.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import msgspec
import structlog
from prometheus_client import CollectorRegistry

from herder.api.core.nodes import Lease, LeaseSpec
from herder.api.world import World, micro_timestamp
from herder.kube.client import Client, Document
from herder.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from herder.kube.metrics import ELECTION_RESULTS, metrics_of
from herder.kube.resources import LEASES, Key

log = structlog.get_logger()
# client-go's: retries come after one to 2.2 retry periods, so that those who start together drift apart.
JITTER = 1.2
RELEASE_PATIENCE = 3.0
MICROSECOND = 1e-6
Lead = Callable[[], Awaitable[None]]


class Settings(msgspec.Struct, frozen=True):
    lease: Key = Key("kube-system", "herder-controllers")
    duration: int = 15
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if self.duration < 1:
            raise ValueError(f"the lease duration is {self.duration} s; at least 1 s is right")
        if not 0 < self.renew_deadline < self.duration:
            raise ValueError(
                f"the renew deadline is {self.renew_deadline:g} s; less than the lease duration of {self.duration} s is right, "
                "or a leader would still work when another begins"
            )
        if not 0 < self.retry_period * JITTER < self.renew_deadline:
            raise ValueError(
                f"the retry period is {self.retry_period:g} s; less than {self.renew_deadline / JITTER:g} s is right, "
                f"or a single failure would lose the lead before the renew deadline of {self.renew_deadline:g} s"
            )


class LeaderElection:
    def __init__(
        self,
        client: Client,
        world: World,
        identity: str,
        settings: Settings | None = None,
        *,
        registry: CollectorRegistry | None = None,
        stuck: Callable[[], None] | None = None,
    ) -> None:
        """`identity` must be nobody else's. `stuck` is called when the work did not end although it was told to and others may
        soon begin: whoever can end the process should do it there."""
        self._client = client
        self._world = world
        self._identity = identity
        self._settings = settings or Settings()
        self._stuck = stuck
        self._clock = asyncio.get_running_loop().time
        self._lease: Lease | None = None
        self._changed = 0.0
        self._renewed = _Moment(float("-inf"), float("-inf"))
        self._written = 0.0
        self._working = False
        # Set when the API server has answered for the first time, whoever leads.
        self.heard = asyncio.Event()
        metrics = metrics_of(registry)
        name = str(self._settings.lease)
        self._leading = metrics.leading.labels(name)
        self._results = {result: metrics.elections.labels(name, result) for result in ELECTION_RESULTS}

    @property
    def identity(self) -> str:
        return self._identity

    @property
    def leader(self) -> str:
        """Who led when we last looked; empty for nobody."""
        return (self._lease.spec.holder_identity or "") if self._lease else ""

    def leads(self) -> bool:
        """Whether we may act at this very moment. To be asked before every write: a process that was stopped, or a machine that
        slept, finds out here. Time counts that passed by either clock: the loop's stands still while a machine sleeps, and a
        clock that is set only forward can only make us more careful, until the next renewal."""
        now = self._now()
        passed = max(now.loop - self._renewed.loop, now.wall - self._renewed.wall)
        return self.leader == self._identity and passed < self._settings.renew_deadline

    def overdue(self) -> bool:
        """Whether work still goes on although others may have begun."""
        return self._working and self._clock() >= self._renewed.loop + self._settings.duration

    async def run(self, lead: Lead) -> None:
        """Stands by, leads, stands by again, for ever: `lead` is called for each term, and cancelled at its end. Returns, or
        raises, when `lead` does so by itself. Cancelled, it ends the work first and then gives the lead to the next at once."""
        while True:
            await self._acquire()
            log.info("leads from now on", lease=str(self._settings.lease), identity=self._identity)
            self._working = True
            self._leading.set(1)
            self._results["acquired"].inc()
            if await self._term(lead):
                return
            self._results["lost"].inc()
            log.warning("does not lead any more", lease=str(self._settings.lease), leader=self.leader)

    async def _term(self, lead: Lead) -> bool:
        """One time as the leader; whether the work came to an end by itself."""
        work = asyncio.ensure_future(lead())
        renewing = asyncio.create_task(self._renew())
        try:
            await asyncio.wait([work, renewing], return_when=asyncio.FIRST_COMPLETED)
        finally:
            ours, finished = not renewing.done(), work.done()
            await self._end(renewing)
            # Only once the work has ended may the next begin.
            await self._end_work(work)
            self._working = False
            self._leading.set(0)
            if ours:
                await self._release()
        if finished:
            work.result()
        return finished

    async def _end_work(self, work: asyncio.Future[None]) -> None:
        margin = self._settings.duration - self._settings.renew_deadline
        work.cancel()
        done, _ = await asyncio.wait([work], timeout=margin * 0.8)
        if not done:
            log.error("the work does not end although others may soon begin", lease=str(self._settings.lease))
            if self._stuck is not None:
                self._stuck()
            await asyncio.wait([work])

    async def _end(self, task: asyncio.Task[None]) -> None:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled() and (error := task.exception()):
            log.error("renewing the lease failed", exc_info=error)

    async def _acquire(self) -> None:
        self._lease = None
        while not await self._attempt():
            period = self._settings.retry_period
            await asyncio.sleep(period + period * JITTER * self._world.random())

    async def _renew(self) -> None:
        """Returns when we lead no more: somebody else holds the lease, or the deadline has passed without a renewal."""
        with contextlib.suppress(TimeoutError):
            while True:
                async with asyncio.timeout_at(self._renewed.loop + self._settings.renew_deadline):
                    await asyncio.sleep(self._settings.retry_period)
                    while not await self._attempt():
                        if self.leader != self._identity:
                            return
                        await asyncio.sleep(self._settings.retry_period)

    async def _attempt(self) -> bool:
        """Takes or renews the lease if that is right; whether it is ours now. What goes wrong is tried again by the callers."""
        try:
            # Half of the deadline: one request that hangs must leave time for another.
            async with asyncio.timeout(self._settings.renew_deadline / 2):
                return await self._take_or_renew()
        except (KubeError, TimeoutError) as error:
            log.warning("the lease could not be written, will try again", lease=str(self._settings.lease), error=_said(error))
            return False

    async def _take_or_renew(self) -> bool:
        if self._lease is not None and self.leader == self._identity:
            with contextlib.suppress(Conflict, NotFound):
                await self._write(self._lease, self._renewal())
                return True
        lease = await self._client.find(LEASES, self._settings.lease)
        self.heard.set()
        if lease is None:
            return await self._create()
        self._observe(lease)
        if self.leader == self._identity:
            await self._write(lease, self._renewal())
            return True
        if self.leader and self._clock() < self._changed + (lease.spec.lease_duration_seconds or self._settings.duration):
            return False
        with contextlib.suppress(Conflict):
            await self._write(lease, self._taking(lease.spec))
            return True
        return False

    def _observe(self, lease: Lease) -> None:
        """What counts is when we saw it change, not the times that are written in it."""
        if self._lease is None or self._lease.spec != lease.spec:
            self._changed = self._clock()
        self._lease = lease

    async def _create(self) -> bool:
        namespace, name = self._settings.lease
        sent = self._now()
        spec = {**self._renewal(), "leaseTransitions": 0}
        spec["acquireTime"] = spec["renewTime"]
        try:
            self._lease = await self._client.create(LEASES, {"metadata": {"name": name, "namespace": namespace}, "spec": spec})
        except AlreadyExists:
            return False
        self._renewed = sent
        return True

    async def _write(self, lease: Lease, spec: Document) -> None:
        sent = self._now()
        metadata = {"uid": lease.uid, "resourceVersion": lease.metadata.resource_version}
        self._observe(await self._client.patch(LEASES, self._settings.lease, {"metadata": metadata, "spec": spec}))
        self._renewed = sent

    def _renewal(self) -> Document:
        # Never the same time twice, whatever is done to the clock: a renewal that changes nothing is one that nobody sees.
        self._written = max(self._world.now(), self._written + 2 * MICROSECOND)
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": self._settings.duration,
            "renewTime": micro_timestamp(self._written),
        }

    def _taking(self, before: LeaseSpec) -> Document:
        renewal = self._renewal()
        return {**renewal, "acquireTime": renewal["renewTime"], "leaseTransitions": (before.lease_transitions or 0) + 1}

    async def _release(self) -> None:
        """Without a holder the next one need not wait. If it cannot be said, the lease runs out by itself."""
        lease, self._lease = self._lease, None
        self._results["released"].inc()
        try:
            async with asyncio.timeout(RELEASE_PATIENCE):
                while lease is not None and lease.spec.holder_identity == self._identity:
                    with contextlib.suppress(Conflict):
                        return await self._give_back(lease)
                    # A renewal that was under way when we stopped has arrived all the same.
                    lease = await self._client.find(LEASES, self._settings.lease)
        except (KubeError, TimeoutError) as error:
            log.warning("the lease could not be given back, it will run out", lease=str(self._settings.lease), error=_said(error))

    async def _give_back(self, lease: Lease) -> None:
        now = micro_timestamp(self._world.now())
        metadata = {"uid": lease.uid, "resourceVersion": lease.metadata.resource_version}
        spec = {"holderIdentity": None, "leaseDurationSeconds": 1, "renewTime": now, "acquireTime": now}
        await self._client.patch(LEASES, self._settings.lease, {"metadata": metadata, "spec": spec})

    def _now(self) -> _Moment:
        return _Moment(self._clock(), self._world.now())


class _Moment(msgspec.Struct, frozen=True):
    loop: float
    wall: float


def _said(error: BaseException) -> str:
    return str(error) or "no answer in time"
