"""What a job's reservation template says, merged over what follows from the pod: strategically, as `kubectl patch` does it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from herder.rules.plans import Document

# Lists of a pod's spec whose items are found by a key, as Kubernetes has them; all others are replaced as a whole.
KEYS: Final[Mapping[str, str]] = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "imagePullSecrets": "name",
    "ports": "containerPort",
    "topologySpreadConstraints": "topologyKey",
}


def merged_spec(made: Document, given: Document | None) -> Document:
    """Specs of reservations: a time that is given is in place of the one that was made, whichever of the two forms it has."""
    if not given:
        return made
    timed = {name: value for name, value in made.items() if name != "ttl" or not {"ttl", "expires"} & given.keys()}
    return merged(timed, given)


def merged(made: Any, given: Any, name: str = "") -> Any:
    """What is given wins; null takes away."""
    if isinstance(made, Mapping) and isinstance(given, Mapping):
        kept = {key: value for key, value in made.items() if key not in given}
        wins = {key: merged(made[key], value, key) if key in made else value for key, value in given.items() if value is not None}
        return {**kept, **wins}
    if isinstance(made, list) and isinstance(given, list) and name in KEYS:
        return _by_key(made, given, KEYS[name])
    return given


def _by_key(made: list[Any], given: list[Any], key: str) -> list[Any]:
    """In the order that it had; what is new comes last."""
    wanted = {one.get(key): one for one in given if isinstance(one, Mapping)}
    known = [merged(one, wanted.pop(one.get(key))) if one.get(key) in wanted else one for one in made]
    return [*known, *wanted.values()]
