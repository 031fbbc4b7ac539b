"""The pods and reservations that no node will have, and what each of them waits for. Nobody asks again and again: events wake
them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from herder.kube.resources import Key
from herder.rules.placement import Event, Needs, Rule, Snapshot, What
from herder.rules.reservations.owners import MANY_LABELS, OwnerKey, is_label_key


class Waiter(msgspec.Struct, frozen=True, eq=False):
    key: Key
    needs: Needs
    # Those that said no. None at all: there was no node to ask about.
    rules: tuple[Rule, ...]
    # Of a pod: under which reservations that are for it would be found.
    owner_keys: tuple[OwnerKey, ...] = ()


class Waiting:
    def __init__(self) -> None:
        self._waiters: dict[Key, Waiter] = {}
        # Of these: reservations have no namespace.
        self.pods = 0
        # Only the rules that listen to an event are asked about it, and only about the pods that they refused.
        self._by_rule: dict[Rule, dict[Key, Waiter]] = {}
        self._for_any_node: dict[Key, Waiter] = {}
        self._by_owner: dict[OwnerKey, dict[Key, Waiter]] = {}

    def __len__(self) -> int:
        return len(self._waiters)

    def __contains__(self, key: Key) -> bool:
        return key in self._waiters

    def get(self, key: Key) -> Waiter | None:
        return self._waiters.get(key)

    def add(self, waiter: Waiter) -> None:
        self.remove(waiter.key)
        self._waiters[waiter.key] = waiter
        self.pods += bool(waiter.key.namespace)
        for rule in waiter.rules:
            self._by_rule.setdefault(rule, {})[waiter.key] = waiter
        if not waiter.rules:
            self._for_any_node[waiter.key] = waiter
        for owner in waiter.owner_keys:
            self._by_owner.setdefault(owner, {})[waiter.key] = waiter

    def remove(self, key: Key) -> Waiter | None:
        waiter = self._waiters.pop(key, None)
        if waiter is not None:
            self.pods -= bool(key.namespace)
            self._for_any_node.pop(key, None)
            for rule in waiter.rules:
                self._by_rule[rule].pop(key, None)
            for owner in waiter.owner_keys:
                here = self._by_owner[owner]
                here.pop(key, None)
                if not here:
                    del self._by_owner[owner]
        return waiter

    def for_owners(self, owners: Iterable[OwnerKey]) -> list[Waiter]:
        """Those that a reservation for these owners may be for. They stay."""
        keys = [*owners]
        if any(is_label_key(key) for key in keys):
            keys.append(MANY_LABELS)
        return list({waiter.key: waiter for key in keys for waiter in self._by_owner.get(key, {}).values()}.values())

    def woken_by(self, event: Event, snapshot: Snapshot) -> list[Waiter]:
        """Taken out, in the order in which they came."""
        woken: dict[Key, Waiter] = dict(self._for_any_node) if event.what is What.NODE_CAME else {}
        for rule, waiters in self._by_rule.items():
            if waiters and event.what in rule.listens:
                woken |= {
                    key: waiter
                    for key, waiter in waiters.items()
                    if key not in woken and rule.unblocked_by(waiter.needs, event, snapshot)
                }
        for key in woken:
            self.remove(key)
        return list(woken.values())
