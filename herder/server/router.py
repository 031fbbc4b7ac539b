"""From a request to the verb that answers it. The one way in, for TLS, the unix socket and simulations alike."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from herder.server import status
from herder.server.authorization import PUBLIC_PATHS, authorize
from herder.server.engine import Engine
from herder.server.informing import Information
from herder.server.presenting import accepted
from herder.server.request import Answer, Request, Response, Target, parse_target
from herder.server.served import Served
from herder.server.verbs.binding import bind, bind_named_in_body
from herder.server.verbs.eviction import evict
from herder.server.verbs.get import get
from herder.server.verbs.listing import list_objects
from herder.server.verbs.patch import patch
from herder.server.verbs.scale import get_scale, put_scale
from herder.server.verbs.watch import watch
from herder.server.verbs.writing import create, delete, delete_collection, update

Verb = Callable[[Engine, Served, Target, Request], Awaitable[Answer]]

ON_ONE: dict[str, tuple[str, Verb]] = {
    "GET": ("get", get),
    "HEAD": ("get", get),
    "PUT": ("update", update),
    "PATCH": ("patch", patch),
    "DELETE": ("delete", delete),
}
ON_MANY: dict[str, tuple[str, Verb]] = {
    "GET": ("list", list_objects),
    "HEAD": ("list", list_objects),
    "POST": ("create", create),
    "DELETE": ("deletecollection", delete_collection),
}
ON_STATUS: dict[str, tuple[str, Verb]] = {"GET": ("get", get), "PUT": ("update", update), "PATCH": ("patch", patch)}
ON_SCALE: dict[str, tuple[str, Verb]] = {"GET": ("get", get_scale), "PUT": ("update", put_scale), "PATCH": ("patch", put_scale)}
ON_ACTIONS: dict[str, dict[str, tuple[str, Verb]]] = {
    "binding": {"POST": ("create", bind)},
    "eviction": {"POST": ("create", evict)},
}
# Kinds that are only an address to post to.
ON_ADDRESSES: dict[str, dict[str, tuple[str, Verb]]] = {"bindings": {"POST": ("create", bind_named_in_body)}}


# Watches do not count: they are answered at once, and then only stream.
MOST_IN_FLIGHT = 1000


class Router:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.information = Information(engine)
        self.most_in_flight = MOST_IN_FLIGHT
        self._in_flight = 0
        # What only the engine's own programs may ask, under /herder/.
        self.upkeep: Callable[[Request], Awaitable[Answer]] | None = None

    async def handle(self, request: Request) -> Answer:
        """Never raises for what a client did wrong: that is an answer, too."""
        began = time.perf_counter()
        try:
            answer = await self._limited(request)
        except status.ApiError as error:
            answer = Response(error.code, error.body(), headers=error.headers)
        if isinstance(answer, Response):
            self.information.metrics.count(request.verb, request.resource, answer.status, time.perf_counter() - began)
        if request.warnings:
            answer.warnings = [_warning(text) for text in request.warnings]
        return answer

    async def _limited(self, request: Request) -> Answer:
        """More than so many at once would only wait for each other: better to say so. Health is always told."""
        if self._in_flight >= self.most_in_flight and request.path not in PUBLIC_PATHS:
            raise status.too_many_requests("too many requests at once, please try again later", 1)
        self._in_flight += 1
        try:
            return await self._route(request)
        finally:
            self._in_flight -= 1

    async def _route(self, request: Request) -> Answer:
        target = parse_target(request.path)
        if target is None:
            authorize(request, request.method.lower(), None, None)
            if self.upkeep is not None and request.path.startswith("/herder/"):
                return await self.upkeep(request)
            return await self.information.answer(request)
        served = self.engine.registry.find(target.group, target.version, target.plural)
        name, verb = _verb(request, target, served)
        request.verb, request.resource = name, served.table if served else ""
        authorize(request, name, target, served)
        if served is None or not _fits(target, served):
            raise status.no_such_path()
        if name == "create" and served.resource.namespaced and not target.namespace:
            raise status.method_not_allowed()
        if verb is None or (not target.subresource and not served.allows(name)):
            raise status.method_not_allowed()
        # Before anything is done: what was done could not be told.
        accepted(request)
        if served.deprecation:
            request.warnings.append(served.deprecation)
        return await verb(self.engine, served, target, request)


def _verb(request: Request, target: Target, served: Served | None) -> tuple[str, Verb | None]:
    """The verb's name, as access rules know it, and what carries it out (None: this method does not exist there)."""
    if request.method == "GET" and request.flag("watch") and not target.name:
        return "watch", watch
    if target.subresource == "scale":
        table = ON_SCALE
    elif target.subresource:
        table = ON_ACTIONS.get(target.subresource, ON_STATUS)
    elif served is not None and served.table in ON_ADDRESSES:
        table = ON_ADDRESSES[served.table]
    else:
        table = ON_ONE if target.name else ON_MANY
    return table.get(request.method) or (request.method.lower(), None)


def _fits(target: Target, served: Served) -> bool:
    """Does the path make sense for this kind? Cluster-wide kinds have no namespace; not every kind has every subresource."""
    resource = served.resource
    if target.namespace and not resource.namespaced:
        return False
    if target.name and resource.namespaced and not target.namespace:
        return False
    if not resource.is_stored and (target.name or (resource.namespaced and not target.namespace)):
        return False
    if target.subresource in resource.actions:
        return True
    allowed = {"": True, "status": resource.status, "scale": resource.scale is not None, "finalize": resource.finalize}
    return allowed.get(target.subresource, False)


def _warning(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'299 - "{escaped}"'
