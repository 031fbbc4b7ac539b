"""What an attack is: requests of one class of client-controlled size, by somebody who is allowed little."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

JSON = "application/json"
NAMESPACE = "attacked"
CORE = f"/api/v1/namespaces/{NAMESPACE}"
RBAC = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}"
# As large as a body may be, less a little for what is around it.
WHOLE = 3 * 1024 * 1024 - 4096

# Who attacks: anybody with a name; `edit` in one namespace; `admin` of one namespace; the administrator of the cluster.
ANYONE, EDITOR, OWNER, ADMINISTRATOR = "anyone", "editor", "owner", "administrator"


@dataclass(frozen=True)
class Shot:
    """One request. `enough`: of a stream, how many bytes are read before it is left."""

    method: str
    path: str
    body: bytes = b""
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    enough: int = 0
    who: str = ""


@dataclass
class Plan:
    """`prepare` is sent once and not measured; each of `shots` is."""

    shots: list[Shot]
    prepare: list[Shot] = field(default_factory=list[Shot])
    # What is waited for before the first shot: a kind that a definition among the preparations brings.
    served: str = ""


@dataclass(frozen=True)
class Attack:
    """`make` builds the plan for bodies of up to so many bytes."""

    name: str
    who: str
    make: Callable[[int], Plan]


ATTACKS: dict[str, Attack] = {}


def attack(name: str, who: str) -> Callable[[Callable[[int], Plan]], Callable[[int], Plan]]:
    def register(make: Callable[[int], Plan]) -> Callable[[int], Plan]:
        ATTACKS[name] = Attack(name, who, make)
        return make

    return register


def encoded(document: object) -> bytes:
    return msgspec.json.encode(document)


def create(path: str, document: object, query: str = "") -> Shot:
    return Shot("POST", path + query, document if isinstance(document, bytes) else encoded(document))


def config_map(name: str, **more: object) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **more}


def dry(path: str) -> str:
    return f"{path}?dryRun=All"
