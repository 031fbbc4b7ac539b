"""The past: one object changed many times, then asked for as it was."""

from __future__ import annotations

from tests.attacks.attack import CORE, EDITOR, Plan, Shot, attack, config_map, create, encoded

MAPS = f"{CORE}/configmaps"
LARGE = 1_000_000
TIMES = 120


def patched(name: str, times: int) -> list[Shot]:
    made = create(MAPS, config_map(name, data={"a": "x" * LARGE}))
    kind = "application/merge-patch+json"
    return [made, *(Shot("PATCH", f"{MAPS}/{name}", encoded({"data": {"n": str(n)}}), kind) for n in range(times))]


@attack("watch-history", EDITOR)
def watch_history(size: int) -> Plan:
    """Read to its end, left unread, and shown as a table."""
    old = f"{MAPS}?watch=true&timeoutSeconds=2&resourceVersion={{before}}"
    table = (("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"),)
    return Plan(
        [Shot("GET", old, enough=1 << 30), *[Shot("GET", old, enough=1)] * 8, Shot("GET", old, headers=table, enough=1 << 30)],
        patched("watched", TIMES),
    )


@attack("exact-lists", EDITOR)
def exact_lists(size: int) -> Plan:
    exact = f"{MAPS}?resourceVersionMatch=Exact&resourceVersion={{before}}"
    return Plan([*[Shot("GET", exact)] * 4, Shot("GET", f"{exact}&limit=1")], patched("listed", TIMES))


@attack("watches-of-large-objects", EDITOR)
def watches_of_large_objects(size: int) -> Plan:
    """Watchers that read nothing while the object changes."""
    watch = Shot("GET", f"{MAPS}?watch=true&timeoutSeconds=3", enough=1)
    changes = patched("crowded", 12)
    return Plan([*[watch] * 4, *changes[1:]], changes[:1])
