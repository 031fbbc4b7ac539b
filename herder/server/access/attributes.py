"""What a request wants to do, in the words of access rules; and the refusal in the words that people know."""

from __future__ import annotations

import msgspec

from herder.api.field_selectors import parse_field_selector
from herder.api.names import path_segment
from herder.server.request import Request, Target, User
from herder.server.status import ApiError

VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
# A refusal may be shown in a browser: what a client sent must not become markup there.
_HARMLESS = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class Attributes(msgspec.Struct, frozen=True, gc=False):
    """An action on a resource; on a path where there is no resource."""

    verb: str
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    # The one node that the field selector of a list leaves.
    node: str = ""


def verb_of(request: Request, target: Target) -> str:
    verb = VERBS.get(request.method, "")
    if not target.name:
        if verb == "get":
            return "watch" if request.flag("watch") and request.method == "GET" else "list"
        if verb == "delete":
            return "deletecollection"
    return verb


def attributes_of(request: Request, target: Target | None, verb: str = "") -> Attributes:
    if target is None:
        return Attributes(request.method.lower(), request.path)
    verb = verb or verb_of(request, target)
    name, node = target.name, ""
    if not name and verb in ("list", "watch"):
        name, node = selected(request.query.get("fieldSelector"))
    # Reading a namespace is something that happens within it: whoever has rights there may be given that one, too.
    namespace = target.name if target.plural == "namespaces" else target.namespace
    return Attributes(verb, "", target.group, target.plural, target.subresource, namespace, name, node)


def selected(text: str | None) -> tuple[str, str]:
    """A list of one name is allowed to whoever may list that name; a list of one node's pods to that node."""
    if not text:
        return "", ""
    try:
        selector = parse_field_selector(text)
    except ValueError:
        return "", ""
    name = selector.exact_value("metadata.name")
    return name if name and not path_segment(name) else "", selector.exact_value("spec.nodeName") or ""


def forbidden(user: User, what: Attributes, reason: str = "") -> ApiError:
    sentence = _sentence(user, what).translate(_HARMLESS)
    sentence += f": {reason}" if reason else ""
    if what.path:
        return ApiError(403, "Forbidden", f"forbidden: {sentence}", {})
    qualified = f"{what.resource}.{what.group}" if what.group else what.resource
    subject = f'{qualified} "{what.name}"' if what.name else qualified
    details = {"name": what.name, "group": what.group, "kind": what.resource}
    shown = {field: value for field, value in details.items() if value}
    return ApiError(403, "Forbidden", f"{subject} is forbidden: {sentence}", shown)


def _sentence(user: User, what: Attributes) -> str:
    if what.path:
        return f'User "{user.name}" cannot {what.verb} path "{what.path}"'
    resource = f"{what.resource}/{what.subresource}" if what.subresource else what.resource
    place = f'in the namespace "{what.namespace}"' if what.namespace else "at the cluster scope"
    return f'User "{user.name}" cannot {what.verb} resource "{resource}" in API group "{what.group}" {place}'
