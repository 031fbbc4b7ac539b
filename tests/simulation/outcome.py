"""What a run came to, without what may differ from run to run: ids, versions and times."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import msgspec

from herder.api import labels
from tests.simulation.comparing import places_that_differ
from tests.simulation.faults import FOREIGN
from tests.simulation.server import PASSING, ApiServer

Json = dict[str, Any]
# Which phases were seen on the way is chance, too: who looks late sees fewer.
_CHANCE = frozenset(
    {
        *("resourceVersion", "uid", "creationTimestamp", "managedFields", "phaseTransitionTimestamps"),
        # A grant that went through the API server, because somebody was late.
        labels.RESUME,
        # Numbers are of the moment in which somebody looked; of one that has succeeded the last may not have come.
        *("bytesPerSecond", "dirtyBytesPerSecond", "estimatedSecondsLeft", "transferredBytes", "downtimeMs"),
        # So is the time that a job has run before it was paused.
        "runningSeconds",
        # Whether somebody saw a machine Ready, and no longer so, on the way.
        "lastReady",
    }
)
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# Names that end in the beginning of an owner's uid.
_NAMED_AFTER = re.compile(r"\b((?:virt-launcher-[a-z0-9-]+?|importer|pvc)-)[0-9a-f]{8}(?:-[0-9a-f]{8})?\b")
# Pods of ReplicaSets: their names are of the pods that were there before them.
_GENERATED = re.compile(r"\b(web-(?:[b-z0-9]{6,10}-)?)[b-z0-9]{5}\b")
# How long a simulated guest has run, which is all that is in its memory.
_MEMORY = re.compile(r'(\\"ran\\":)[\d.e+-]+')
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


class Outcome(msgspec.Struct, frozen=True):
    # By kind and name, normalised.
    objects: dict[str, Json]
    made: Counter[str]
    gone: Counter[str]
    # What the controllers wrote, in order.
    writes: list[str]
    # What is wrong whatever the other runs say.
    problems: list[str]
    # What was done to whom: starts, deaths, faults and logs; all calls, too, where the run is traced.
    trace: list[str] = []
    # How many of the writes only prepared what the run is about.
    prepared: int = 0


def stored_objects(server: ApiServer, but_for: frozenset[str] = frozenset()) -> dict[str, bytes]:
    """All that is in the store, but for what comes and goes all the time."""
    assert server.running is not None, "the server should have come back"
    store = server.running.engine.store
    found = {f"{table} {one.key}": one.raw for table in sorted(store.kinds()) if table not in PASSING for one in store.scan(table)}
    return {name: raw for name, raw in found.items() if name not in but_for}


def normalised(raw: bytes) -> Json:
    document = _normal(msgspec.json.decode(raw))
    if document["kind"] == "ReplicaSet":
        # In how many steps it came to its size is chance: who looks late takes fewer.
        document["metadata"].pop("generation", None)
        document.get("status", {}).pop("observedGeneration", None)
    if document["kind"] == "PodMigrationJob" and document.get("status", {}).get("reason") == "MissingPod":
        # Whether its pod was gone, or just going, when somebody looked.
        document["status"].pop("message", None)
    if document["kind"] == "PodMigrationJob" and document.get("status", {}).get("strategy") == "Placement":
        # It ends when its pod has its place: whether the reservation had told that, too, when somebody looked.
        status = document["status"]
        status.pop("status", None)
        status["conditions"] = [one for one in status.get("conditions") or () if one["type"] != "ReservationBound"]
    return document


def compared(left: dict[str, bytes]) -> dict[str, Json]:
    """By name without ids. Of several that are called alike then, as pods of a ReplicaSet, the first by what it says: whose name
    comes last is chance."""
    found: dict[str, Json] = {}
    texts: dict[str, bytes] = {}
    for name, raw in left.items():
        document = normalised(raw)
        text = msgspec.json.encode(document, order="deterministic")
        if text < texts.get(named(name), b"~"):
            found[named(name)], texts[named(name)] = document, text
    return found


def named(text: str) -> str:
    """Without ids: they differ from run to run."""
    return _GENERATED.sub(r"\1<pod>", _NAMED_AFTER.sub(r"\1<uid>", _UID.sub("<uid>", text)))


def _normal(value: Any) -> Any:
    if isinstance(value, dict):
        return {named(name): _normal(inner) for name, inner in value.items() if name not in _CHANCE and not _is_foreign(inner)}
    if isinstance(value, list):
        return [_normal(one) for one in value if not _is_foreign([one])]
    if not isinstance(value, str):
        return value
    return _TIME.sub("<time>", _MEMORY.sub(r"\1<seconds>", named(value)))


def _is_foreign(value: Any) -> bool:
    """What somebody else wrote, and nothing beside it."""
    return isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict) and value[0].get("type") == FOREIGN


def unobserved(objects: dict[str, Json], tables: frozenset[str]) -> list[str]:
    """Every status says which spec it is about, and in the end that is the latest."""
    found: list[str] = []
    for name, one in objects.items():
        if name.split()[0] not in tables or one["metadata"].get("deletionTimestamp"):
            continue
        seen, latest = (one.get("status") or {}).get("observedGeneration"), one["metadata"].get("generation")
        if seen != latest:
            found.append(f"{name}: status.observedGeneration is {seen}, but the spec is of generation {latest}")
    return found


def differences(clean: Outcome, broken: Outcome) -> list[str]:
    found = list(broken.problems)
    for name in sorted(clean.objects.keys() | broken.objects.keys()):
        found += [f"{name}{where}" for where in places_that_differ(clean.objects.get(name), broken.objects.get(name))]
    for what, one, other in (("made", clean.made, broken.made), ("deleted", clean.gone, broken.gone)):
        for name in sorted(one.keys() | other.keys()):
            if one[name] != other[name]:
                found.append(f"{name} was {what} {other[name]} times, without the fault {one[name]} times")
    return found
