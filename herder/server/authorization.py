"""Who may do what. For now: members of system:masters everything, everyone health and version, nobody else anything."""

from __future__ import annotations

from herder.server.request import MASTERS, Request, Target
from herder.server.served import Served
from herder.server.status import ApiError

# What a load balancer or a person without credentials may see.
PUBLIC_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version", "/version/"})


def authorize(request: Request, verb: str, target: Target | None, served: Served | None) -> None:
    if MASTERS in request.user.groups or request.path in PUBLIC_PATHS:
        return
    who = f'User "{request.user.name}"'
    if target is None:
        raise ApiError(403, "Forbidden", f'forbidden: {who} cannot {verb} path "{request.path}"', {})
    resource = served.resource.qualified if served else _unknown(target)
    place = f' in API group "{target.group}"'
    place += f' in the namespace "{target.namespace}"' if target.namespace else " at the cluster scope"
    plural = target.plural + (f"/{target.subresource}" if target.subresource else "")
    subject = f'{resource} "{target.name}"' if target.name else resource
    details = {
        "kind": target.plural,
        **({"name": target.name} if target.name else {}),
        **({"group": target.group} if target.group else {}),
    }
    raise ApiError(403, "Forbidden", f'{subject} is forbidden: {who} cannot {verb} resource "{plural}"{place}', details)


def _unknown(target: Target) -> str:
    return f"{target.plural}.{target.group}" if target.group else target.plural
