"""Which names a change leads to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from herder.kube.enqueue import ToKeys, controlled_by, enqueue, itself
from herder.kube.errors import Unreadable
from herder.kube.queue import Queue
from herder.kube.resources import MACHINES, NODES, Key
from tests.unit.kube.virtual import VirtualWorld, in_virtual_time


class Owner(msgspec.Struct, frozen=True):
    api_version: str
    kind: str
    name: str


class Stored(msgspec.Struct, frozen=True):
    key: Key
    controller: Owner | None = None
    view: Any = None


class Change(msgspec.Struct, frozen=True):
    key: Key
    old: Stored | None
    new: Stored | None


class Teller:
    def subscribe(self, handler: Callable[[Any], None]) -> None:
        self.tell = handler


def _names(to_keys: ToKeys, *changes: tuple[Stored | None, Stored | None]) -> list[Key]:
    async def scenario() -> list[Key]:
        queue, teller = Queue(VirtualWorld()), Teller()
        enqueue(teller, queue, to_keys)
        for old, new in changes:
            one = new or old
            assert one is not None
            teller.tell(Change(one.key, old, new))
        return [await queue.get() for _ in range(len(queue))]

    return in_virtual_time(scenario())


POD = Key("n", "pod")


def _owned(api_version: str, kind: str, name: str) -> Stored:
    return Stored(POD, Owner(api_version, kind, name))


def test_an_object_leads_to_itself_whether_it_comes_changes_or_goes() -> None:
    one, two = Stored(Key("n", "one")), Stored(Key("", "two"))
    assert _names(itself, (None, one), (two, two), (one, None)) == [one.key, two.key]


def test_a_child_leads_to_its_owner_of_that_kind_in_any_version() -> None:
    to_machine = controlled_by(MACHINES)
    ours, other = _owned("kubevirt.io/v1", "VirtualMachine", "vm"), _owned("apps/v1", "ReplicaSet", "set")
    assert _names(to_machine, (None, ours), (None, other), (None, Stored(POD))) == [Key("n", "vm")]
    assert _names(to_machine, (None, _owned("kubevirt.io/v1alpha3", "VirtualMachine", "vm"))) == [Key("n", "vm")]
    assert _names(to_machine, (None, _owned("example.com/v1", "VirtualMachine", "vm"))) == []


def test_an_owner_outside_namespaces_is_found_there() -> None:
    assert _names(controlled_by(NODES), (None, _owned("v1", "Node", "node-1"))) == [Key("", "node-1")]


def test_who_lost_a_child_looks_as_well_as_who_got_it() -> None:
    before, after = _owned("kubevirt.io/v1", "VirtualMachine", "old"), _owned("kubevirt.io/v1", "VirtualMachine", "new")
    assert _names(controlled_by(MACHINES), (before, after)) == [Key("n", "old"), Key("n", "new")]


def test_any_function_may_say_where_a_change_leads() -> None:
    def everywhere(_: Stored) -> Iterable[Key]:
        return (Key("", name) for name in "cab")

    assert _names(everywhere, (None, Stored(POD))) == [Key("", name) for name in "cab"]


def test_what_cannot_be_read_leads_nowhere_and_hurts_nobody() -> None:
    def look(stored: Stored) -> Iterable[Key]:
        if stored.view == "broken":
            raise Unreadable("not a pod")
        return (stored.key,)

    assert _names(look, (Stored(POD, view="broken"), Stored(POD)), (None, Stored(POD, view="broken"))) == [POD]
