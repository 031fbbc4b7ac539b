"""From a request to the verb that answers it. The one way in, for TLS, the unix socket and simulations alike."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from herder.api.duration import parse_duration
from herder.server import status
from herder.server.access.access import PUBLIC_PATHS
from herder.server.access.attributes import verb_of
from herder.server.access.reviews import review
from herder.server.access.token_requests import create_token
from herder.server.engine import Engine
from herder.server.informing import Information
from herder.server.presenting import accepted, check_accepted, refusal
from herder.server.request import Answer, Request, Response, Target, parse_target
from herder.server.served import Served
from herder.server.verbs.attaching import attach, refuse_exec, refuse_port_forward
from herder.server.verbs.binding import bind, bind_named_in_body
from herder.server.verbs.eviction import evict
from herder.server.verbs.get import get
from herder.server.verbs.listing import list_objects
from herder.server.verbs.logs import read_log
from herder.server.verbs.patch import patch
from herder.server.verbs.resource_metrics import get_measured, list_measured
from herder.server.verbs.scale import get_scale, put_scale
from herder.server.verbs.watch import watch
from herder.server.verbs.writing import create, delete, delete_collection, update
from herder.server.warnings import warning_headers

Verb = Callable[[Engine, Served, Target, Request], Awaitable[Answer]]

# By the verb, as access rules know it.
ON_ONE: dict[str, Verb] = {"get": get, "update": update, "patch": patch, "delete": delete}
ON_MANY: dict[str, Verb] = {"list": list_objects, "watch": watch, "create": create, "deletecollection": delete_collection}
ON_STATUS: dict[str, Verb] = {"get": get, "update": update, "patch": patch}
ON_SUBRESOURCES: dict[str, dict[str, Verb]] = {
    "scale": {"get": get_scale, "update": put_scale, "patch": put_scale},
    "token": {"create": create_token},
    "binding": {"create": bind},
    "eviction": {"create": evict},
    "log": {"get": read_log},
    "attach": {"get": attach, "create": attach},
    "exec": {"get": refuse_exec, "create": refuse_exec},
    "portforward": {"get": refuse_port_forward, "create": refuse_port_forward},
}
ON_ONE_MEASURED: dict[str, Verb] = {"get": get_measured}
ON_MANY_MEASURED: dict[str, Verb] = {"list": list_measured}
ON_REVIEWS: dict[str, Verb] = {"create": review}
# Kinds that are only an address to post to.
ON_ADDRESSES: dict[str, dict[str, Verb]] = {"bindings": {"create": bind_named_in_body}}


UPGRADED = ("attach", "exec", "portforward")
NEVER_TABLES = ("binding", "eviction", "finalize", "log", "token")
WAITS_FOR_NODE = ("log", "attach")
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
            answer = refusal(request, error)
        if isinstance(answer, Response):
            self.information.metrics.count(request.verb, request.resource, answer.status, time.perf_counter() - began)
        if request.warnings:
            answer.warnings = warning_headers(request.warnings)
        return answer

    async def _limited(self, request: Request) -> Answer:
        """More than so many at once would only wait for each other: better to say so. Health is always told, our own processes are
        always heard, and who waits for a node keeps nobody else waiting (fairness.py counts those)."""
        if request.internal or _waits_for_node(request.path):
            return await self._route(request)
        if self._in_flight >= self.most_in_flight and request.path not in PUBLIC_PATHS:
            raise status.too_many_requests("too many requests at once, please try again later", 1)
        self._in_flight += 1
        try:
            return await self._route(request)
        finally:
            self._in_flight -= 1

    async def _route(self, request: Request) -> Answer:
        access = self.engine.access
        target = parse_target(request.path)
        if "timeout" in request.query:
            _check_timeout(request, target)
        request.user = access.impersonated(request.user, request.headers)
        if target is None:
            access.authorize(request, None)
            if self.upkeep is not None and request.path.startswith("/herder/"):
                return await self.upkeep(request)
            return await self.information.answer(request)
        served = self.engine.registry.find(target.group, target.version, target.plural)
        name = verb_of(request, target)
        request.verb, request.resource = name, served.table if served else ""
        access.authorize(request, target)
        if served is None or not _fits(target, served):
            raise status.no_such_path(self._served_instead(target))
        verb = _verb(request, target, served)
        if name in ("create", "deletecollection") and served.resource.namespaced and not target.namespace:
            raise status.method_not_allowed()
        if verb is None or (not target.subresource and not served.allows(name)):
            raise status.method_not_allowed()
        _negotiate(request, target, served)
        if served.deprecation:
            request.warnings.append(served.deprecation)
        return await verb(self.engine, served, target, request)

    def _served_instead(self, target: Target) -> str:
        """In words, where it is the version that is not served: kubectl tries older ones when a newer one is refused."""
        found = self.engine.registry.by_table(f"{target.plural}.{target.group}")
        if found is None or found.resource.version == target.version:
            return ""
        return f"{target.plural} are served as {found.resource.group_version}, and not as {target.group}/{target.version}"


def _check_timeout(request: Request, target: Target | None) -> None:
    """Nothing takes so long that it would be cut off, except what lasts for as long as it likes, and is not asked."""
    lasting = target is not None and (target.subresource in (*UPGRADED, "log") or verb_of(request, target) == "watch")
    if (text := request.query["timeout"]) and not lasting:
        try:
            parse_duration(text)
        except ValueError as error:
            raise status.bad_request(f"invalid timeout specified in the request URL - {error}") from None


def _negotiate(request: Request, target: Target, served: Served) -> None:
    """Refuses what could not be shown as the client wants it. A connection that becomes another one shows nothing."""
    subresource, resource = target.subresource, served.resource
    if subresource in UPGRADED:
        return
    request.tables = resource.is_stored and subresource not in NEVER_TABLES
    if request.verb in ("delete", "watch") or subresource in ("log", *resource.actions) or served.table in ON_ADDRESSES:
        accepted(request)  # neither an object nor a list, as a rule
    else:
        check_accepted(request, served, many=request.verb in ("list", "deletecollection"))


def _verb(request: Request, target: Target, served: Served) -> Verb | None:
    """What carries it out; None where the method does not exist there."""
    if request.method == "HEAD" and (target.subresource or served.resource.builtin):
        return None
    if target.subresource:
        return ON_SUBRESOURCES.get(target.subresource, ON_STATUS).get(request.verb)
    if served.resource.measured:
        return (ON_ONE_MEASURED if target.name else ON_MANY_MEASURED).get(request.verb)
    if target.name:
        return ON_ONE.get(request.verb)
    if served.resource.review:
        return ON_REVIEWS.get(request.verb)
    return ON_ADDRESSES.get(served.table, ON_MANY).get(request.verb)


def _waits_for_node(path: str) -> bool:
    if not path.endswith(WAITS_FOR_NODE):
        return False
    target = parse_target(path)
    return target is not None and target.plural == "pods" and target.subresource in WAITS_FOR_NODE


def _fits(target: Target, served: Served) -> bool:
    """Does the path make sense for this kind? Cluster-wide kinds have no namespace; not every kind has every subresource."""
    resource = served.resource
    if target.namespace and not resource.namespaced:
        return False
    if target.name and resource.namespaced and not target.namespace:
        return False
    if not resource.is_stored and (target.name or (resource.namespaced and not target.namespace)):
        return False
    if target.subresource in resource.actions or target.subresource in resource.connects:
        return True
    allowed = {
        "": True,
        "status": resource.status,
        "scale": resource.scale is not None,
        "finalize": resource.finalize,
        "token": resource.token,
    }
    return allowed.get(target.subresource, False)
