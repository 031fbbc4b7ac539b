"""Who has to go when there are too many."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from herder.app.file_shares import MOST_NODE_WAITS, share_out
from herder.net.crowd import Crowd, Limits, Visitor, limits_of
from herder.server.http import MOST_CONNECTIONS

FEW = Limits(strangers=4, per_address=3, known=6, per_share=3, reserved=1)


class Place:
    """A crowd, the clock above it, and those that were closed."""

    def __init__(self, limits: Limits = FEW) -> None:
        self.now = 0.0
        self.crowd = Crowd(limits, lambda: self.now)
        self.closed: list[Visitor] = []

    def comes(self, address: str = "10.0.0.1") -> Visitor:
        self.now += 1
        visitor, leaves = self.crowd.arrive(address, lambda: None)
        self.closed += [leaves] if leaves is not None else []
        return visitor

    def says(self, visitor: Visitor, share: str, *, privileged: bool = False) -> str:
        problem, leaves = self.crowd.recognise(visitor, share, privileged=privileged)
        self.closed += [leaves] if leaves is not None else []
        return problem

    def known(self, share: str, *, busy: bool, privileged: bool = False) -> Visitor:
        visitor = self.comes()
        if busy:
            self.crowd.begin(visitor)
        assert not self.says(visitor, share, privileged=privileged)
        return visitor


def test_the_stranger_who_was_silent_for_longest_leaves_for_one_who_comes() -> None:
    place = Place()
    first, second, *_ = [place.comes(f"10.0.0.{number}") for number in range(4)]
    assert not place.closed
    place.comes("10.0.0.9")
    place.comes("10.0.0.9")
    assert place.closed == [first, second]
    assert place.crowd.strangers == 4


def test_of_one_address_there_are_only_so_many_and_it_loses_its_own() -> None:
    place = Place()
    elsewhere = place.comes("10.0.0.2")
    first, *_ = [place.comes("10.0.0.1") for _ in range(3)]
    place.comes("10.0.0.1")
    assert place.closed == [first]
    assert elsewhere not in place.closed


def test_who_has_said_who_it_is_loses_nothing_to_silent_strangers_of_the_same_address() -> None:
    place = Place()
    admin = place.known("admin", busy=False)
    for _ in range(1000):
        place.comes()
    assert admin not in place.closed
    newcomer = place.comes()
    assert not place.says(newcomer, "admin")


def test_a_stranger_who_asks_for_something_goes_after_one_who_is_silent() -> None:
    place = Place()
    asks = place.comes("10.0.0.1")
    silent = place.comes("10.0.0.2")
    place.now += 1
    place.crowd.begin(asks)
    place.crowd.end(asks)
    for number in range(3):
        place.comes(f"10.0.0.{number + 3}")
    assert place.closed == [silent]


def test_who_wants_more_than_its_share_loses_an_own_connection_that_is_not_in_use_or_is_refused() -> None:
    place = Place()
    idle, *_ = place.known("anna", busy=False), place.known("anna", busy=True), place.known("anna", busy=True)
    place.known("anna", busy=True)
    assert place.closed == [idle]
    late = place.comes()
    assert place.says(late, "anna") == "3 connections of anna are in use, and there may be 3"
    assert late.share is None
    assert not place.says(late, "bert")


def test_when_all_places_are_in_use_those_who_have_to_get_in_still_do() -> None:
    place = Place()
    for share in ("anna", "anna", "anna", "bert", "bert"):
        place.known(share, busy=True)
    assert place.says(place.comes(), "carl") == "5 connections are in use, and there may be no more"
    assert not place.says(place.comes(), "admin", privileged=True)


def test_one_that_is_in_use_again_is_not_taken_for_idle() -> None:
    place = Place()
    used, idle = place.known("anna", busy=False), place.known("anna", busy=False)
    place.crowd.begin(used)
    place.known("anna", busy=False)
    place.known("anna", busy=False)
    assert place.closed == [idle]


def test_strangers_who_ask_for_nothing_are_found_after_a_while() -> None:
    place = Place()
    silent, asks = place.comes(), place.comes()
    place.crowd.begin(asks)
    late = place.comes()
    assert place.crowd.silent_since(place.now - 0.5) == [silent]
    assert place.crowd.silent_since(place.now) == [silent, late]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 30), st.integers(0, 3)), max_size=200))
def test_whatever_happens_the_numbers_are_those_of_who_is_there(steps: list[tuple[int, int, int]]) -> None:
    place = Place()
    here: list[Visitor] = []
    for what, which, who in steps:
        visitor = here[which % len(here)] if here else None
        if what == 0 or visitor is None:
            here.append(place.comes(f"10.0.0.{who}"))
        elif what == 1:
            place.says(visitor, f"user-{who}", privileged=who == 0)
        elif what == 2:
            place.crowd.begin(visitor)
        elif what == 3 and visitor.busy:
            place.crowd.end(visitor)
        elif what == 4:
            place.crowd.leave(visitor)
            here.remove(visitor)
        elif what == 5 and (spared := place.crowd.someone_to_spare()) is not None:
            here.remove(spared)
        for gone in place.closed:
            here.remove(gone)
        place.closed.clear()
        assert place.crowd.known == sum(one.share is not None for one in here)
        assert place.crowd.strangers == sum(one.share is None for one in here)
        assert place.crowd.strangers <= FEW.strangers
        assert place.crowd.known <= FEW.known


@given(st.integers(0, 2_000_000), st.integers(0, 2000))
def test_the_files_of_a_process_are_enough_for_all_that_they_are_shared_out_to(files: int, own: int) -> None:
    shares = share_out(files, own)
    limits = limits_of(shares.clients)
    assert limits.strangers + limits.known <= MOST_CONNECTIONS
    assert shares.node_waits[0] <= shares.node_waits[1] <= MOST_NODE_WAITS
    if files >= 1024 and own <= 256:
        assert limits.strangers + limits.known + shares.node_waits[1] + own < files
