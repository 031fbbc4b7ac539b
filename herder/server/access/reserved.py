"""Keeps annotations that nodes obey to those who may give orders (herder/api/reserved_annotations.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from herder.api.account import ACCOUNT, SYSTEM_NAMESPACE
from herder.api.reserved_annotations import CONTROLLERS, changed_annotations, problem
from herder.server.access.attributes import Attributes
from herder.server.request import User
from herder.server.served import Served
from herder.server.status import forbidden

Document = dict[str, Any]
PODS = "pods"
ORDERS = Attributes("impersonate", resource="serviceaccounts", namespace=SYSTEM_NAMESPACE, name=ACCOUNT)


class ReservedAnnotations:
    def __init__(self, allows: Callable[[User, Attributes], bool]) -> None:
        self._allows = allows

    def check_write(self, served: Served, new: Document, old: Document | None, user: User) -> None:
        """By any way: the pod itself, its status, or a binding, whose annotations become the pod's."""
        changed = changed_annotations(new, old) if served.table == PODS else ()
        why = problem(changed, new, user.name == CONTROLLERS or self._allows(user, ORDERS)) if changed else ""
        if why:
            raise forbidden(served.resource, (new.get("metadata") or {}).get("name", ""), why)
