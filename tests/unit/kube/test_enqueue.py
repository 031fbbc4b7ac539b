"""Which names a change leads to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from herder.kube.cache import Change, Owner, Stored
from herder.kube.enqueue import ToKeys, controlled_by, enqueue, itself
from herder.kube.errors import Unreadable
from herder.kube.queue import Queue
from herder.kube.resources import MACHINES, NODES, Key
from tests.unit.kube.virtual import VirtualWorld, in_virtual_time

Held = Stored[Any]


class Teller:
    def subscribe(self, handler: Callable[[Any], None]) -> None:
        self.tell = handler


def _names(to_keys: ToKeys, *changes: tuple[Held | None, Held | None]) -> list[Key]:
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


def _no_view(key: Key, raw: bytes) -> Any:
    raise Unreadable(f"{key}: {raw.decode()}")


def _stored(key: Key, *owners: Owner, read: Callable[[Key, bytes], Any] = lambda key, _: key) -> Held:
    return Stored(key, "u", 1, b"", {}, owners, "", False, read)


def _owned(api_version: str, kind: str, name: str) -> Held:
    return _stored(POD, Owner("u", api_version, kind, name, controller=True))


def test_an_object_leads_to_itself_whether_it_comes_changes_or_goes() -> None:
    one, two = _stored(Key("n", "one")), _stored(Key("", "two"))
    assert _names(itself, (None, one), (two, two), (one, None)) == [one.key, two.key]


def test_a_child_leads_to_its_owner_of_that_kind_in_any_version() -> None:
    to_machine = controlled_by(MACHINES)
    ours, other = _owned("kubevirt.io/v1", "VirtualMachine", "vm"), _owned("apps/v1", "ReplicaSet", "set")
    assert _names(to_machine, (None, ours), (None, other), (None, _stored(POD))) == [Key("n", "vm")]
    assert _names(to_machine, (None, _owned("kubevirt.io/v1alpha3", "VirtualMachine", "vm"))) == [Key("n", "vm")]
    assert _names(to_machine, (None, _owned("example.com/v1", "VirtualMachine", "vm"))) == []


def test_an_owner_outside_namespaces_is_found_there() -> None:
    assert _names(controlled_by(NODES), (None, _owned("v1", "Node", "node-1"))) == [Key("", "node-1")]


def test_who_lost_a_child_looks_as_well_as_who_got_it() -> None:
    before, after = _owned("kubevirt.io/v1", "VirtualMachine", "old"), _owned("kubevirt.io/v1", "VirtualMachine", "new")
    assert _names(controlled_by(MACHINES), (before, after)) == [Key("n", "old"), Key("n", "new")]


def test_any_function_may_say_where_a_change_leads() -> None:
    def everywhere(_: Held) -> Iterable[Key]:
        return (Key("", name) for name in "cab")

    assert _names(everywhere, (None, _stored(POD))) == [Key("", name) for name in "cab"]


def test_what_cannot_be_read_leads_nowhere_and_hurts_nobody() -> None:
    def look(stored: Held) -> Iterable[Key]:
        return (stored.view,)

    broken = _stored(POD, read=_no_view)
    assert _names(look, (broken, _stored(POD)), (None, broken)) == [POD]
