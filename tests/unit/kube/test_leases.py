"""Leader election against the embedded engine, in virtual time: nobody ever works while another does."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from prometheus_client import CollectorRegistry

from herder.kube.client import Client
from herder.kube.errors import Conflict, NotLeading
from herder.kube.fenced import FencedTransport
from herder.kube.leases import LeaderElection, Settings
from herder.kube.resources import CONFIG_MAPS, LEASES, Key
from tests.unit.kube.engine import Line, Place, engine_in_virtual_time
from tests.unit.kube.virtual import VirtualWorld, in_virtual_time, samples, virtual_loop

SETTINGS = Settings()
LEASE = SETTINGS.lease
STEP = 0.1


class Candidate:
    """Works while it leads, and writes down from when to when."""

    def __init__(self, place: Place, world: VirtualWorld, name: str, terms: list[tuple[str, float, float]]) -> None:
        self.line: Line = place.line()
        self.client = Client(self.line, name)
        self.registry = CollectorRegistry()
        self.election = LeaderElection(self.client, world, name, SETTINGS, registry=self.registry)
        self._terms = terms
        self.name = name
        self.working = False
        self.takes_to_end = 0.0
        self.task = asyncio.create_task(self.election.run(self._lead))

    async def _lead(self) -> None:
        began = asyncio.get_running_loop().time()
        self.working = True
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(self.takes_to_end)
            self.working = False
            self._terms.append((self.name, began, asyncio.get_running_loop().time()))

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])

    def kill(self) -> None:
        """Nothing that it sends arrives any more."""
        self.line.cut = True


class Field:
    def __init__(self, place: Place, world: VirtualWorld) -> None:
        self.place, self.world = place, world
        self.client = place.client()
        self.terms: list[tuple[str, float, float]] = []
        self.candidates: list[Candidate] = []

    def enter(self, name: str, world: VirtualWorld | None = None) -> Candidate:
        self.candidates.append(Candidate(self.place, world or self.world, name, self.terms))
        return self.candidates[-1]

    def working(self) -> list[str]:
        return [one.name for one in self.candidates if one.working]

    async def until(self, *names: str, patience: float = 60) -> float:
        """When exactly these work; that never more than one does is checked all the time."""
        began = asyncio.get_running_loop().time()
        while self.working() != list(names):
            assert len(self.working()) <= 1
            assert asyncio.get_running_loop().time() < began + patience, f"{self.working()} work, not {names}"
            await asyncio.sleep(STEP)
        return asyncio.get_running_loop().time() - began

    async def hold(self, seconds: float) -> None:
        until = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < until:
            assert len(self.working()) <= 1
            await asyncio.sleep(STEP)


@asynccontextmanager
async def field() -> AsyncGenerator[Field]:
    world = VirtualWorld()
    async with engine_in_virtual_time(world) as place:
        made = Field(place, world)
        try:
            yield made
        finally:
            for one in made.candidates:
                one.line.cut = one.line.deaf = False
                await one.stop()
        ended = sorted(made.terms, key=lambda term: term[1])
        assert all(before[2] <= after[1] for before, after in itertools.pairwise(ended)), ended


def on_a_field(scenario: Callable[[Field], Awaitable[None]]) -> None:
    async def run() -> None:
        async with field() as made:
            await scenario(made)

    in_virtual_time(run())


@pytest.mark.slow
def test_one_of_two_leads_and_the_lease_says_so() -> None:
    async def scenario(field: Field) -> None:
        first, second = field.enter("first"), field.enter("second")
        await field.until("first")
        await field.hold(100)
        assert field.working() == ["first"]
        spec = (await field.client.get(LEASES, LEASE)).spec
        assert (spec.holder_identity, spec.lease_duration_seconds, spec.lease_transitions) == ("first", 15, 0)
        assert spec.acquire_time and spec.renew_time and spec.renew_time > spec.acquire_time
        assert (first.election.leads(), second.election.leads()) == (True, False)
        assert second.election.leader == "first"
        assert samples(first.registry, "leader_election_master_status") == {(str(LEASE),): 1}
        assert samples(second.registry, "leader_election_master_status") == {(str(LEASE),): 0}

    on_a_field(scenario)


@pytest.mark.slow
def test_a_clean_stop_hands_over_at_once() -> None:
    async def scenario(field: Field) -> None:
        first, _ = field.enter("first"), field.enter("second")
        await field.until("first")
        await field.hold(5)
        await first.stop()
        assert await field.until("second") < 2 * 2.2
        spec = (await field.client.get(LEASES, LEASE)).spec
        assert (spec.holder_identity, spec.lease_transitions) == ("second", 1)

    on_a_field(scenario)


@pytest.mark.slow
def test_a_stop_in_the_middle_of_a_renewal_hands_over_at_once() -> None:
    async def scenario(field: Field) -> None:
        first, _ = field.enter("first"), field.enter("second")
        await field.until("first")
        first.line.deaf = True
        before = (await field.client.get(LEASES, LEASE)).spec.renew_time
        await field.hold(SETTINGS.retry_period + STEP)
        assert (await field.client.get(LEASES, LEASE)).spec.renew_time != before
        first.line.deaf = False
        await first.stop()
        assert (await field.client.get(LEASES, LEASE)).spec.holder_identity is None
        await field.until("second")

    on_a_field(scenario)


@pytest.mark.slow
def test_the_work_has_ended_before_the_lease_is_given_back() -> None:
    async def scenario(field: Field) -> None:
        first, _ = field.enter("first"), field.enter("second")
        await field.until("first")
        first.takes_to_end = 3.0
        stopping = asyncio.create_task(first.stop())
        await field.hold(2.9)
        assert field.working() == ["first"]
        await stopping
        await field.until("second")

    on_a_field(scenario)


@pytest.mark.slow
def test_a_leader_that_cannot_renew_has_stopped_before_another_begins() -> None:
    async def scenario(field: Field) -> None:
        first, _ = field.enter("first"), field.enter("second")
        await field.until("first")
        await field.hold(20)
        first.takes_to_end = 2.0
        first.kill()
        assert await field.until() <= 10 + 2 + 0.1
        assert await field.until("second") > 0
        assert samples(first.registry, "herder_leader_elections_total")[(str(LEASE), "lost")] == 1
        # Back again, it stands by.
        first.line.cut = False
        await field.hold(60)
        assert field.working() == ["second"]

    on_a_field(scenario)


@pytest.mark.slow
def test_a_dead_leader_is_replaced_when_its_lease_has_run_out() -> None:
    async def scenario(field: Field) -> None:
        first, _ = field.enter("first"), field.enter("second")
        await field.until("first")
        first.kill()
        assert 10 < await field.until("second") < 15 + 2 * 2.2 + 0.1

    on_a_field(scenario)


@pytest.mark.slow
def test_renewals_whose_answers_are_lost_cost_the_lead_and_never_double_it() -> None:
    async def scenario(field: Field) -> None:
        first, _ = field.enter("first"), field.enter("second")
        await field.until("first")
        first.line.deaf = True
        await field.hold(60)
        first.line.deaf = False
        await field.hold(60)
        assert len(field.working()) == 1

    on_a_field(scenario)


@pytest.mark.slow
def test_a_server_that_is_away_for_less_than_the_deadline_changes_nothing() -> None:
    async def scenario(field: Field) -> None:
        first, second = field.enter("first"), field.enter("second")
        await field.until("first")
        for _ in range(5):
            first.line.cut = second.line.cut = True
            await field.hold(5)
            first.line.cut = second.line.cut = False
            await field.hold(5)
        assert field.terms == []

    on_a_field(scenario)


@pytest.mark.slow
@pytest.mark.parametrize("jump", [-3600.0, -2.0, 7.0, 3600.0])
def test_a_clock_that_is_set_makes_nobody_lead_beside_another(jump: float) -> None:
    async def scenario(field: Field) -> None:
        other = VirtualWorld()
        first, second = field.enter("first"), field.enter("second", other)
        await field.until("first")
        await field.hold(7)
        for world in (field.world, other):
            world.skew += jump
            await field.hold(40)
        assert field.working() == ["first"]
        assert first.election.leads()
        assert not second.election.leads()
        assert field.terms == []

    on_a_field(scenario)


@pytest.mark.slow
def test_a_renewal_is_seen_even_where_the_clock_stands_still() -> None:
    async def scenario(field: Field) -> None:
        class Stopped(VirtualWorld):
            def now(self) -> float:
                return 1_750_000_000.0

        field.enter("first", Stopped())
        field.enter("second")
        await field.until("first")
        await field.hold(60)
        assert field.terms == []

    on_a_field(scenario)


@pytest.mark.slow
def test_a_stopped_process_finds_out_before_it_writes() -> None:
    """It wakes after a minute in the middle of its work, before anything told it that its term is over."""

    async def scenario(field: Field) -> None:
        first = field.enter("first")
        fenced = Client(FencedTransport(first.line, first.election.leads), "first")
        await field.until("first")
        await fenced.create(CONFIG_MAPS, {"metadata": {"name": "before", "namespace": "default"}})
        virtual_loop().pass_over(60)
        assert first.working
        with pytest.raises(NotLeading):
            await fenced.create(CONFIG_MAPS, {"metadata": {"name": "after", "namespace": "default"}})
        assert await field.client.find(CONFIG_MAPS, Key("default", "after")) is None
        # Reading hurts nobody.
        await fenced.get(CONFIG_MAPS, Key("default", "before"))
        await field.hold(1)
        # That term is over; nobody else was there, so it begins another, from the start.
        assert len(field.terms) == 1
        assert field.working() == ["first"]

    on_a_field(scenario)


@pytest.mark.slow
def test_a_machine_that_slept_writes_nothing_until_it_has_renewed() -> None:
    """The loop's time stands still while a machine sleeps; only its clock tells."""

    async def scenario(field: Field) -> None:
        first = field.enter("first")
        await field.until("first")
        field.world.skew += 3600
        assert not first.election.leads()
        await field.hold(3)
        assert first.election.leads()

    on_a_field(scenario)


@pytest.mark.slow
def test_a_lease_that_was_deleted_is_made_anew_by_its_leader() -> None:
    async def scenario(field: Field) -> None:
        field.enter("first")
        await field.until("first")
        await field.client.delete(LEASES, LEASE)
        await field.hold(5)
        assert (await field.client.get(LEASES, LEASE)).spec.holder_identity == "first"
        assert field.terms == []

    on_a_field(scenario)


@pytest.mark.slow
def test_a_lease_of_another_elector_is_respected_for_as_long_as_it_says() -> None:
    """As client-go writes it; this one promises to renew only once a minute."""

    async def scenario(field: Field) -> None:
        spec = {
            "holderIdentity": "machine_6a3b",
            "leaseDurationSeconds": 60,
            "acquireTime": "2020-01-01T00:00:00.000000Z",
            "renewTime": "2020-01-01T00:00:00.000000Z",
            "leaseTransitions": 4,
        }
        await field.client.create(LEASES, {"metadata": {"name": LEASE.name, "namespace": LEASE.namespace}, "spec": spec})
        field.enter("first")
        await field.hold(59)
        assert field.working() == []
        # Times in it do not count, only that it does not change.
        assert await field.until("first") < 6
        taken = (await field.client.get(LEASES, LEASE)).spec
        assert (taken.holder_identity, taken.lease_duration_seconds, taken.lease_transitions) == ("first", 15, 5)

    on_a_field(scenario)


@pytest.mark.slow
def test_a_lease_taken_from_under_a_leader_ends_its_work_at_its_next_renewal() -> None:
    async def scenario(field: Field) -> None:
        field.enter("first")
        await field.until("first")
        await field.client.patch(LEASES, LEASE, {"spec": {"holderIdentity": "usurper"}})
        assert await field.until() < 2.1

    on_a_field(scenario)


@pytest.mark.slow
def test_of_two_who_try_at_once_one_gets_a_conflict() -> None:
    async def scenario(field: Field) -> None:
        one = field.enter("first")
        await field.until("first")
        before = await field.client.get(LEASES, LEASE)
        await field.hold(3)
        stale = {"metadata": {"resourceVersion": before.metadata.resource_version}, "spec": {"holderIdentity": "late"}}
        with pytest.raises(Conflict):
            await field.client.patch(LEASES, LEASE, stale)
        # Every write of ours names what it was decided on.
        assert all(b"resourceVersion" in call.body for call in one.line.writes() if call.method == "PATCH")

    on_a_field(scenario)


@pytest.mark.slow
def test_work_that_ends_by_itself_gives_the_lease_back_and_says_how_it_ended() -> None:
    async def run() -> None:
        world = VirtualWorld()
        async with engine_in_virtual_time(world) as place:

            async def broken() -> None:
                await asyncio.sleep(1)
                raise ValueError("broken")

            with pytest.raises(ValueError, match="broken"):
                await LeaderElection(place.client(), world, "one", SETTINGS).run(broken)
            assert (await place.client().get(LEASES, LEASE)).spec.holder_identity is None

    in_virtual_time(run())


@pytest.mark.slow
def test_work_that_does_not_end_is_reported_before_others_may_begin() -> None:
    async def run() -> None:
        world = VirtualWorld()
        async with engine_in_virtual_time(world) as place:
            line, released = place.line(), asyncio.Event()
            reported: list[float] = []

            async def stubborn() -> None:
                while not released.is_set():
                    try:
                        await released.wait()
                    except asyncio.CancelledError:
                        continue

            def stuck() -> None:
                reported.append(asyncio.get_running_loop().time())
                released.set()

            task = asyncio.create_task(LeaderElection(Client(line, "x"), world, "one", SETTINGS, stuck=stuck).run(stubborn))
            await asyncio.sleep(1)
            line.cut = True
            await asyncio.sleep(60)
            task.cancel()
            await asyncio.wait([task])
            assert reported and reported[0] < 15

    in_virtual_time(run())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"duration": 0}, "the lease duration is 0 s"),
        ({"duration": 10}, "the renew deadline is 10 s; less than the lease duration of 10 s is right"),
        ({"retry_period": 9.0}, "the retry period is 9 s; less than 8.33333 s is right"),
    ],
)
def test_settings_that_could_make_two_leaders_are_refused(settings: dict[str, float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Settings(**settings)  # pyright: ignore[reportArgumentType]
