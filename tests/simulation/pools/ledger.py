"""What must never happen to a pool, looked at with every change of an object."""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api import labels
from herder.server.store import Change
from tests.simulation.pools.scenario import KEY
from tests.simulation.simulation import Simulation

Json = dict[str, Any]
# That somebody is ready, or is not any more, for less than this may not have been heard of yet.
HEARD_AFTER = 1.0


class Ledger:
    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        # As last stored, by name: machines, instances and disks of the namespace, and the pool.
        self._stored: dict[str, dict[str, Json]] = {}
        self._unready_since: dict[str, float] = {}
        self._ready_since: dict[str, float] = {}
        # Nodes that do not answer, and since when.
        self._silent_since: dict[str, float] = {}
        # Instances that people asked to restart, and machines that they changed: that is not the pool's doing.
        self.by_hand: set[str] = set()
        self.wrong: list[str] = []
        self.restarts = 0
        self.healed = 0
        simulation.server.listeners.append(self._changed)

    def _of(self, table: str) -> dict[str, Json]:
        return self._stored.setdefault(table, {})

    def _changed(self, change: Change) -> None:
        table = change.table.partition(".")[0]
        if table not in ("virtualmachines", "virtualmachineinstances", "virtualmachinepools", "datavolumes", "nodes"):
            return
        after: Json = msgspec.json.decode(change.record.raw)
        name: str = after["metadata"]["name"]
        before = self._of(table).get(name)
        if change.kind == "DELETED":
            self._of(table).pop(name, None)
            if table == "datavolumes":
                self._disk_gone(name, before or after)
        else:
            self._of(table)[name] = after
        if table == "virtualmachineinstances":
            self._note_ready(name, None if change.kind == "DELETED" else after)
        if table == "virtualmachines" and before is not None and change.kind != "DELETED":
            self._machine_changed(name, before, after)
        if table == "nodes":
            self._note_answer(name, None if change.kind == "DELETED" else after)

    def _note_answer(self, name: str, node: Json | None) -> None:
        conditions = node.get("status", {}).get("conditions", []) if node is not None else []
        if any(one["type"] == "Ready" and one["status"] == "Unknown" for one in conditions):
            self._silent_since.setdefault(name, self._simulation.loop.time())
        else:
            self._silent_since.pop(name, None)

    def _note_ready(self, name: str, instance: Json | None) -> None:
        if instance is not None and _is_ready(instance):
            self._unready_since.pop(name, None)
            self._ready_since.setdefault(name, self._simulation.loop.time())
        else:
            self._ready_since.pop(name, None)
            self._unready_since.setdefault(name, self._simulation.loop.time())

    def _disk_gone(self, name: str, disk: Json) -> None:
        owners = disk["metadata"].get("ownerReferences") or []
        pools = {one["metadata"]["uid"] for one in self._of("virtualmachinepools").values()}
        if any(owner["uid"] in pools for owner in owners) and not any(owner.get("controller") for owner in owners):
            self._say(f"{name}, which was preserved, is lost")

    def _machine_changed(self, name: str, before: Json, after: Json) -> None:
        asked = _annotation(after, labels.RESTART_REQUEST)
        instance = self._of("virtualmachineinstances").get(name)
        if asked != _annotation(before, labels.RESTART_REQUEST) and instance is not None and instance["metadata"]["uid"] == asked:
            self._restarted(name, instance)
        if _goes(after) and not _goes(before):
            self._deleted(name, after)
        if not _owners(before) and _controllers(after):
            self._say(f"{name} was of no pool, and nobody offered it to one")
        elif not _owners(before) and not _owners(after) and name not in self.by_hand and _ours(before) != _ours(after):
            self._say(f"{name} is of no pool, and was touched: {_ours(before)}, {_ours(after)}")

    def _restarted(self, name: str, instance: Json) -> None:
        if instance["metadata"]["uid"] in self.by_hand:
            return
        self.restarts += 1
        pool = self._of("virtualmachinepools").get(KEY.name)
        if pool is None or not _is_ready(instance) or not _is_of(self._of("virtualmachines")[name], pool):
            return
        now = self._simulation.loop.time()
        if self._ready_since.get(name, now) > now - HEARD_AFTER:
            return
        others = [other for other, one in self._of("virtualmachines").items() if other != name and _is_of(one, pool)]
        missed = [one for one in others if self._unready_since.get(one, now) < now - HEARD_AFTER or self._goes_down(one)]
        # Of more than are wanted the first to go are those that nobody misses: they do not count.
        if len(missed) > max(0, len(others) + 1 - pool["spec"]["replicas"]):
            self._say(f"{name} was ready and is restarted while {missed} are unavailable")

    def _goes_down(self, name: str) -> bool:
        """It was asked to restart, which the pool wrote itself and knows."""
        instance = self._of("virtualmachineinstances").get(name)
        asked = _annotation(self._of("virtualmachines")[name], labels.RESTART_REQUEST)
        return instance is not None and instance["metadata"]["uid"] == asked and asked not in self.by_hand

    def _deleted(self, name: str, machine: Json) -> None:
        pool = self._of("virtualmachinepools").get(KEY.name)
        if pool is None or not _is_of(machine, pool):
            return
        if _is_healed(name, machine, pool):
            self._healed(name, machine)

    def _healed(self, name: str, machine: Json) -> None:
        self.healed += 1
        ready = machine.get("status", {}).get("readyRevision")
        revision = machine["metadata"].get("labels", {}).get(labels.POOL_REVISION)
        if ready and ready != revision:
            self._say(f"{name} was ready on {ready}, has {revision}, and was wiped")
        instance = self._of("virtualmachineinstances").get(name, {})
        if _controllers(instance) != {machine["metadata"]["uid"]} or instance.get("status", {}).get("phase") in (
            "Succeeded",
            "Failed",
        ):
            return
        node = instance.get("status", {}).get("nodeName", "")
        now = self._simulation.loop.time()
        if self._silent_since.get(node, now) < now - HEARD_AFTER:
            self._say(f"{name} was wiped while {node} did not answer")

    def _say(self, what: str) -> None:
        self.wrong.append(f"at {self._simulation.loop.time():.3f} s: {what}")
        self._simulation.trace.add("ledger", what)


def _is_ready(instance: Json) -> bool:
    conditions = instance.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _is_of(machine: Json, pool: Json) -> bool:
    owners = machine["metadata"].get("ownerReferences") or []
    return any(owner["uid"] == pool["metadata"]["uid"] and owner.get("controller") for owner in owners)


def _is_healed(name: str, machine: Json, pool: Json) -> bool:
    """It is written down before it is done. Who was made again has the time of its own healing, and not of another."""
    records = {one["name"]: one.get("lastHealedTime", "") for one in pool.get("status", {}).get("healing", [])}
    return records.get(name, "") > machine["metadata"]["creationTimestamp"]


def _controllers(thing: Json) -> set[str]:
    return {owner["uid"] for owner in thing.get("metadata", {}).get("ownerReferences") or [] if owner.get("controller")}


def _owners(machine: Json) -> set[str]:
    """Also who does not control it: then the pool is asked to take it."""
    return {owner["uid"] for owner in machine["metadata"].get("ownerReferences") or []}


def _ours(machine: Json) -> Json:
    """What a pool writes."""
    metadata = machine["metadata"]
    return {
        "spec": machine["spec"],
        "labels": metadata.get("labels"),
        "updated": _annotation(machine, labels.POOL_UPDATED),
        "goes": _goes(machine),
    }


def _goes(machine: Json) -> bool:
    return bool(machine["metadata"].get("deletionTimestamp"))


def _annotation(thing: Json, name: str) -> str:
    return (thing["metadata"].get("annotations") or {}).get(name, "")
