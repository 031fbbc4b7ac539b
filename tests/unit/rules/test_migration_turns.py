"""Whose turn it is."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from herder.api import reasons
from herder.api.kinds import VirtualMachineInstanceMigration
from herder.rules.migration import COMING_IN, UNDER_WAY, Limits, Line
from tests.unit.rules.migrations import migration, view

LIMITS = Limits(cluster=3, outbound=2, inbound=1)
NODES = ("a", "b", "c")
PRIORITIES = ("system-critical", "user-triggered", "system-maintenance", None)


def one(
    name: str, phase: str = "Pending", *, source: str = "a", target: str = "", priority: str | None = None
) -> VirtualMachineInstanceMigration:
    document = migration("" if phase == "Pending" else phase, name=name, priority=priority)
    if phase != "Pending":
        document["status"] |= {"sourceNode": source, "targetNode": target}
    return view(document)


def line(*migrations: VirtualMachineInstanceMigration, leaves: str = "a") -> Line:
    made = Line(lambda name: leaves)
    for each in migrations:
        made.put(("shop", each.name), each)
    return made


def names(made: Line, limits: Limits = LIMITS) -> list[str]:
    return [name for _, name in made.next_up(limits)]


def test_the_most_urgent_go_first_then_the_oldest() -> None:
    waiting = [one(f"m-{number}", priority=priority) for number, priority in enumerate(reversed(PRIORITIES))]
    assert names(line(*waiting), Limits(9, 9, 9)) == ["m-3", "m-2", "m-1", "m-0"]


def test_no_more_than_may_leave_a_node() -> None:
    made = line(one("x", "Running"), one("y"), one("z"))
    assert names(made) == ["y"]
    assert made.why_waiting(("shop", "z"), "a", LIMITS)[0] == reasons.WAITING_FOR_CLUSTER_LIMIT
    full = line(one("w", "Running"), one("x", "Running"), one("y"))
    reason, message = full.why_waiting(("shop", "y"), "a", LIMITS)
    assert (reason, names(full)) == (reasons.WAITING_FOR_OUTBOUND_LIMIT, [])
    assert "node a" in message
    assert "parallelOutboundMigrationsPerNode: 2" in message


def test_one_that_cannot_begin_stands_in_nobodys_way() -> None:
    made = Line(lambda name: "" if name[1] == "m-0" else "a")
    for number in range(3):
        made.put(("shop", f"m-{number}"), one(f"m-{number}"))
    assert names(made) == ["m-1", "m-2"]


def test_one_that_can_leave_again_is_called_when_somebody_says_so() -> None:
    leaves = {"m-0": "", "m-1": "a"}
    made = Line(lambda name: leaves[name[1]])
    for name in leaves:
        made.put(("shop", name), one(name))
    assert names(made, Limits(1, 1, 1)) == ["m-1"]
    leaves["m-0"] = "b"
    made.look_again(("shop", "m-0"))
    assert names(made, Limits(1, 1, 1)) == ["m-0"]


def test_at_the_door_only_those_are_called_for_whom_there_is_room() -> None:
    made = line(one("x", "Running", target="b"), one("y", "Scheduled", target="b"), one("z", "Scheduled", target="c"))
    assert made.at_the_door(LIMITS) == [("shop", "z")]
    made.put(("shop", "x"), None)
    assert made.at_the_door(LIMITS) == [("shop", "y"), ("shop", "z")]


def test_no_more_than_may_come_to_a_node() -> None:
    made = line(one("x", "Running", target="b"))
    assert not made.may_come_in("b", LIMITS)
    assert made.may_come_in("c", LIMITS)
    assert made.full(LIMITS) == ("b",)
    assert "parallelInboundMigrationsPerNode: 1" in made.why_not_in("b", LIMITS)[1]


def test_one_that_is_over_makes_room() -> None:
    made = line(one("x", "Running", target="b"))
    made.put(("shop", "x"), one("x", "Succeeded"))
    assert made.may_come_in("b", LIMITS)
    assert made.under_way == 0


phases = st.sampled_from(["Pending", *UNDER_WAY, "Succeeded", "Failed"])
steps = st.lists(
    st.tuples(st.integers(0, 11), st.one_of(st.none(), st.tuples(phases, st.sampled_from(NODES), st.sampled_from(NODES)))),
    max_size=60,
)


@given(steps)
def test_the_count_is_what_is_there_however_it_came_about(taken: list[tuple[int, tuple[str, str, str] | None]]) -> None:
    leaves = {f"m-{number}": NODES[number % 3] for number in range(12)}
    made = Line(lambda name: leaves[name[1]])
    there: dict[str, VirtualMachineInstanceMigration] = {}
    for number, state in taken:
        name = f"m-{number}"
        made.put(("shop", name), None if state is None else one(name, state[0], source=state[1], target=state[2]))
        there.pop(name, None)
        if state is not None:
            there[name] = one(name, state[0], source=state[1], target=state[2])
    active = [each for each in there.values() if each.status and each.status.phase in UNDER_WAY]
    called = names(made)
    assert len(active) + len(called) <= max(LIMITS.cluster, len(active))
    for node in NODES:
        leaving = sum(bool(each.status) and each.status.source_node == node for each in active if each.status)
        assert leaving + sum(leaves[name] == node for name in called) <= max(LIMITS.outbound, leaving)
        coming = sum(each.status.target_node == node for each in active if each.status and each.status.phase in COMING_IN)
        assert made.may_come_in(node, LIMITS) == (coming < LIMITS.inbound)
    assert made.waiting == sum(not each.status for each in there.values())


moves = st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["", *NODES])), max_size=30)
ranks = st.lists(st.sampled_from(PRIORITIES), min_size=10, max_size=10)


@given(ranks, moves, st.sets(st.integers(0, 9), max_size=4))
def test_who_is_next_is_who_would_be_found_by_asking_everybody(
    ranked: list[str | None], moved: list[tuple[int, str]], under_way: set[int]
) -> None:
    leaves = {f"m-{number}": NODES[number % 3] for number in range(10)}
    made = Line(lambda name: leaves[name[1]])
    for number, priority in enumerate(ranked):
        phase = "Running" if number in under_way else "Pending"
        made.put(("shop", f"m-{number}"), one(f"m-{number}", phase, source=leaves[f"m-{number}"], priority=priority))
    out = Counter(leaves[f"m-{number}"] for number in under_way)
    for number, node in moved:
        leaves[f"m-{number}"] = node
        made.look_again(("shop", f"m-{number}"))
    wanted: list[str] = []
    for number in sorted(range(10), key=lambda number: (PRIORITIES.index(ranked[number]), number)):
        node = leaves[f"m-{number}"]
        if number not in under_way and node and len(under_way) + len(wanted) < LIMITS.cluster and out[node] < LIMITS.outbound:
            out[node] += 1
            wanted.append(f"m-{number}")
    assert names(made) == wanted
