"""What people ask of a pool and its machines: the patch, or the sentence that says why not and what would be right."""

from collections.abc import Callable
from itertools import permutations

import msgspec
import pytest

from herder.api import labels
from herder.rules.machines.wishes import Impossible
from herder.rules.pools import wishes
from herder.rules.pools.plan import plan_pool
from tests.unit.rules.pools.objects import NEW, NOW, OLD, OWNER, Json, instance, machine, member, pool, snapshot, template, written

THREE = [member(machine(f"web-{n}"), instance(f"web-{n}")) for n in (1, 2, 3)]
BACKUP = {"apiVersion": "v1", "kind": "ConfigMap", "name": "b", "uid": "b-1"}


def refused(ask: Callable[[], object]) -> str:
    with pytest.raises(Impossible) as raised:
        ask()
    return str(raised.value)


def test_detaching_takes_the_pools_reference_and_leaves_all_others() -> None:
    wish = wishes.detach(machine(owners=[BACKUP, OWNER]))
    metadata = {"uid": "uid-web-1", "resourceVersion": "3", "ownerReferences": [BACKUP]}
    assert wish.patch == {"metadata": metadata}, "a list that somebody changed meanwhile is not written over"
    assert "is of no pool" in refused(lambda: wishes.detach(machine(owners=[BACKUP])))


def test_attaching_puts_a_reference_that_the_pool_completes_in_place_of_a_stale_one() -> None:
    stale = {**OWNER, "uid": "pool-0", "controller": False}
    wish = wishes.attach(machine(owners=[BACKUP, stale]), pool(), 2)
    reference = {key: OWNER[key] for key in ("apiVersion", "kind", "name", "uid")}
    assert wish.patch is not None and wish.patch["metadata"]["ownerReferences"] == [BACKUP, reference]
    assert wish.said == "attached to pool web"
    assert "has 3 of 3: one too many" in wishes.attach(machine(owners=[]), pool(), 3).said
    assert wishes.attach(machine(), pool(), 3).patch is None


@pytest.mark.parametrize(
    ("owners", "name", "sentence"),
    [
        ([{**OWNER, "name": "db", "uid": "pool-2"}], "web-1", "is controlled by VirtualMachinePool db; take that reference away"),
        ([{**OWNER, "uid": "pool-0"}], "web-1", "another than the pool web of now"),
        ([], "web-x", "is not named web-<n>"),
        ([], "web-07", "is not named web-<n>"),
    ],
)
def test_what_cannot_be_attached_is_said(owners: list[Json], name: str, sentence: str) -> None:
    assert sentence in refused(lambda: wishes.attach(machine(name, owners=owners), pool(), 2))


def test_a_protected_machine_is_so_until_it_is_undone() -> None:
    wish = wishes.protect(machine(remove_requested="uid-web-1", scale_in="first"), undo=False)
    assert wish.patch == {"metadata": {"uid": "uid-web-1", "annotations": {labels.SCALE_IN: "never", labels.REMOVE_REQUEST: None}}}
    assert wishes.protect(machine(scale_in="never"), undo=False).patch is None
    assert wishes.protect(machine(), undo=True).patch is None
    assert "is of no pool" in refused(lambda: wishes.protect(machine(owners=[]), undo=False))


def test_one_is_said_as_one() -> None:
    assert "has 0 of 1 machine, and would" in wishes.still_growing(pool(1), [])


def test_who_is_removed_is_marked_by_its_identity() -> None:
    wish = wishes.remove(machine(), pool(), THREE)
    marks = {labels.SCALE_IN: "first", labels.REMOVE_REQUEST: "uid-web-1"}
    assert wish.patch == {"metadata": {"uid": "uid-web-1", "annotations": marks}}
    copied = member(machine("web-2", remove_requested="uid-web-1"))
    assert not copied.remove_requested, "a mark that was copied to another machine says nothing"


@pytest.mark.parametrize(
    ("spec", "marks", "sentence"),
    [
        (
            {"scaleInStrategy": {"unmanaged": {}}},
            {},
            "unmanaged, so nothing is taken by itself; lower replicas, and delete web-1",
        ),
        ({"scaleInStrategy": {"opportunistic": {}}}, {}, "takes no machine that runs; `herder stop web-1` first"),
        ({"paused": True}, {}, "spec.paused of pool web is true, so it would stay; set it to false first"),
        ({}, {"scale_in": "never"}, "is protected; `herder pool protect --undo web-1`"),
        ({"replicas": 5}, {}, "has 3 of 5 machines, and would make another instead"),
    ],
)
def test_what_cannot_be_removed_is_said(spec: Json, marks: Json, sentence: str) -> None:
    marked = machine(**marks)
    members = [member(marked, instance()), *THREE[1:]]
    found = pool(spec.get("replicas", 3), None, **{name: value for name, value in spec.items() if name != "replicas"})
    assert sentence in refused(lambda: wishes.remove(marked, found, members))


class Shop:
    """A pool of five whose controller looks whenever it may."""

    def __init__(self) -> None:
        self.replicas = 5
        self.machines = {f"web-{n}": machine(f"web-{n}") for n in range(1, 5)} | {"web-5": machine("web-5", scale_in="first")}

    def look(self) -> None:
        document = written(self.replicas, {"currentRevision": OLD.name, "updateRevision": OLD.name})
        for gone in plan_pool(snapshot(document, list(self.machines.values())), NOW).remove:
            del self.machines[gone.name]

    def mark(self, name: str) -> None:
        if name in self.machines:
            self.machines[name] = machine(name, scale_in="first", remove_requested=f"uid-{name}")

    def lower(self, name: str) -> None:
        members = [member(one, instance(one.name)) for one in self.machines.values()]
        replicas = wishes.lowered(pool(self.replicas), members)
        if name in self.machines and wishes.is_full(pool(self.replicas), members) and replicas is not None:
            self.replicas = replicas

    def scale(self, by: int) -> None:
        self.replicas += by


@pytest.mark.parametrize("scaled", [0, -1])
def test_whoever_is_at_it_at_the_same_time_those_that_were_asked_for_go_and_nobody_else(scaled: int) -> None:
    """Two people remove one machine each, and an autoscaler lowers replicas, in every order; web-5 was marked `first` long ago."""
    steps = ["mark web-2", "lower web-2", "mark web-3", "lower web-3", *(["scale"] if scaled else [])]
    pairs = [(f"mark {name}", f"lower {name}") for name in ("web-2", "web-3")]
    orders = [one for one in permutations(steps) if all(one.index(mark) < one.index(lower) for mark, lower in pairs)]
    for order in orders:
        for looking in (True, False):
            shop = Shop()
            for step in order:
                act, _, name = step.partition(" ")
                shop.scale(scaled) if act == "scale" else getattr(shop, act)(name)
                if looking:
                    shop.look()
            shop.look()
            assert {"web-2", "web-3"}.isdisjoint(shop.machines), order
            assert {"web-1", "web-4"} <= shop.machines.keys(), order
            assert len(shop.machines) >= 3 + scaled, order
            if not scaled:
                assert shop.machines.keys() == {"web-1", "web-4", "web-5"}, order
                assert shop.replicas == 3


def test_who_asks_twice_lowers_once() -> None:
    members = [member(machine("web-1", remove_requested="uid-web-1", scale_in="first"), instance()), *THREE[1:]]
    assert wishes.lowered(pool(3), members) == 2
    assert wishes.lowered(pool(2), members) is None
    assert wishes.remove(machine("web-1", remove_requested="uid-web-1", scale_in="first"), pool(2), members).patch is None


def test_a_machine_is_updated_before_its_turn_by_naming_the_revision() -> None:
    wish = wishes.replace(machine(), pool(), member(machine(), instance()), NEW)
    assert wish.patch == {"metadata": {"uid": "uid-web-1", "annotations": {labels.UPDATE_REQUEST: NEW.name}}}
    assert "has revision" in wishes.replace(machine(), pool(), member(machine(), instance()), OLD).said
    for good, advice in (
        (None, "`kubectl edit vmpool web` mends this one"),
        (OLD.name, "`herder pool rollout undo web` goes back"),
    ):
        failed = pool(3, {"failedRevision": NEW.name, "updateRevision": NEW.name, "currentRevision": good})
        said = refused(lambda failed=failed: wishes.replace(machine(), failed, member(machine(), instance()), NEW))
        assert "failed, so nobody else gets it" in said and advice in said
    held = pool(paused=True)
    assert "spec.paused" in refused(lambda: wishes.replace(machine(), held, member(machine(), instance()), NEW))


@pytest.mark.parametrize("strategy", ["unmanaged", "opportunistic"])
def test_where_nothing_is_rolled_out_it_is_neither_held_nor_repeated(strategy: str) -> None:
    left_alone = pool(updateStrategy={strategy: {}})
    for undo in (False, True):
        said = refused(lambda undo=undo: wishes.pause(left_alone, undo=undo))
        assert said.startswith(f"updateStrategy of pool web is {strategy}, so nothing is rolled out by itself; `spec.paused`")
    said = refused(lambda: wishes.restart(left_alone, NOW))
    assert said.startswith(f"updateStrategy of pool web is {strategy}, so nothing is restarted by itself; `herder restart VM`")


def test_a_rollout_is_paused_resumed_and_repeated() -> None:
    paused = {"proactive": {"paused": True}}
    assert wishes.pause(pool(), undo=False).patch == {"metadata": {"uid": "pool-1"}, "spec": {"updateStrategy": paused}}
    assert wishes.pause(pool(), undo=True).patch is None
    assert wishes.pause(pool(updateStrategy=paused), undo=False).patch is None
    back = wishes.pause(pool(updateStrategy=paused), undo=True).patch
    assert back is not None and back["spec"]["updateStrategy"]["proactive"] == {"paused": None}
    again = wishes.restart(pool(), NOW).patch
    assert again is not None
    metadata = again["spec"]["template"]["spec"]["template"]["metadata"]
    assert metadata == {"annotations": {labels.RESTARTED_AT: "2025-06-15T15:06:40Z"}}
    assert "`herder pool rollout resume web` first" in refused(lambda: wishes.restart(pool(updateStrategy=paused), NOW))


def test_undo_takes_the_latest_other_template_or_the_one_that_is_named() -> None:
    known = [msgspec.structs.replace(one, number=number) for number, one in ((4, OLD), (5, NEW))]
    document = written(memory="96Mi")
    chosen = wishes.undo(pool(), document, known, None)
    assert chosen is not None and chosen.name == OLD.name
    assert wishes.undo(pool(), document, known, 5) is None, "it is that one already"
    assert "has no revision 3; there are: 4, 5" in refused(lambda: wishes.undo(pool(), document, known, 3))
    assert "has no other revision; `kubectl edit vmpool web`" in refused(lambda: wishes.undo(pool(), document, known[1:], None))


def test_an_earlier_template_replaces_the_whole_one_of_a_pool_that_nobody_changed_since() -> None:
    document = written(memory="96Mi", nameGeneration={"appendPostfixToSecretReferences": True})
    assert wishes.back_to(pool(), document, OLD) == [
        {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"},
        {"op": "replace", "path": "/metadata/uid", "value": "pool-1"},
        {"op": "replace", "path": "/spec/template", "value": template()},
        {"op": "remove", "path": "/spec/nameGeneration"},
    ]


@pytest.mark.parametrize(
    ("name", "pools", "sentence"),
    [
        ("web-9", ["web"], "; did you mean web-1? `herder pool status web` lists those of pool web"),
        ("wbe-1", [], "; did you mean web-1? `herder pool status web` lists those of pool web"),
        ("db-7", ["db", "web"], "; `herder pool status db` lists those of pool db"),
        ("nosuch", ["web"], "; `kubectl get vm -n shop` lists those that there are"),
    ],
)
def test_of_a_machine_that_is_not_there_is_said_which_may_be_meant_and_what_lists_them(
    name: str, pools: list[str], sentence: str
) -> None:
    assert wishes.no_machine("shop", name, [machine("web-1")], pools) == (
        f"there is no VirtualMachine {name!r} in namespace 'shop'{sentence}"
    )
