"""The pods that no node will have, and what each of them waits for. Nobody asks again and again: events wake them."""

from __future__ import annotations

import msgspec

from herder.kube.resources import Key
from herder.rules.placement import Event, Needs, Rule, Snapshot, What


class Waiter(msgspec.Struct, frozen=True, eq=False):
    key: Key
    needs: Needs
    # Those that said no. None at all: there was no node to ask about.
    rules: tuple[Rule, ...]


class Waiting:
    def __init__(self) -> None:
        self._waiters: dict[Key, Waiter] = {}
        # Only the rules that listen to an event are asked about it, and only about the pods that they refused.
        self._by_rule: dict[Rule, dict[Key, Waiter]] = {}
        self._for_any_node: dict[Key, Waiter] = {}

    def __len__(self) -> int:
        return len(self._waiters)

    def __contains__(self, key: Key) -> bool:
        return key in self._waiters

    def get(self, key: Key) -> Waiter | None:
        return self._waiters.get(key)

    def add(self, waiter: Waiter) -> None:
        self.remove(waiter.key)
        self._waiters[waiter.key] = waiter
        for rule in waiter.rules:
            self._by_rule.setdefault(rule, {})[waiter.key] = waiter
        if not waiter.rules:
            self._for_any_node[waiter.key] = waiter

    def remove(self, key: Key) -> Waiter | None:
        waiter = self._waiters.pop(key, None)
        if waiter is not None:
            self._for_any_node.pop(key, None)
            for rule in waiter.rules:
                self._by_rule[rule].pop(key, None)
        return waiter

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
