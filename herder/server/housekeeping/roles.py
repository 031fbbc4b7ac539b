"""The roles that come with the engine, made at start; and roles that gather the rules of others, kept up to date."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

from herder.api import account, simulated_account
from herder.api.crds import PART_OF, PRODUCT
from herder.api.roles import roles as our_roles
from herder.api.selectors import selector_from_object
from herder.server.access.comparing import TooManyPieces, missing
from herder.server.access.defaults import AUTO_UPDATE, cluster_role_bindings, cluster_roles
from herder.server.access.rbac import CLUSTER_ROLES, GROUP
from herder.server.access.rules import Rule, read_rules
from herder.server.engine import Engine
from herder.server.housekeeping.worker import Worker
from herder.server.request import ENGINE
from herder.server.served import Served
from herder.server.sorted_json import encode_sorted
from herder.server.status import ApiError
from herder.server.store import Change
from herder.server.store.records import key_of
from herder.server.writes import HOUSEKEEPING, Intent

Document = dict[str, Any]
PLACES = {
    "ClusterRole": (GROUP, "v1", "clusterroles"),
    "ClusterRoleBinding": (GROUP, "v1", "clusterrolebindings"),
    "Role": (GROUP, "v1", "roles"),
    "RoleBinding": (GROUP, "v1", "rolebindings"),
    "ServiceAccount": ("", "v1", "serviceaccounts"),
}
AGGREGATION = Intent("clusterrole-aggregation-controller", user=ENGINE)


async def ensure_roles(engine: Engine) -> None:
    """What is missing is made. Of what is there only what was taken away is put back, and not even that where people say so."""
    accounts = [*account.documents(), *account.embedded_documents(), *simulated_account.documents()]
    own = {role["metadata"]["name"] for role in (*our_roles(), *accounts)}
    # All at once: the disk is waited for once.
    wanted = (*cluster_roles(), *cluster_role_bindings(), *accounts)
    await asyncio.gather(*(_ensure(engine, engine.served(*PLACES[one["kind"]]), one, own) for one in wanted))


async def _ensure(engine: Engine, served: Served, wanted: Document, own: set[str]) -> None:
    name = wanted["metadata"]["name"]
    key = key_of(wanted["metadata"].get("namespace", ""), name)
    current = engine.store.get(served.table, key)
    if current is None:
        await engine.writes.create(served, wanted, HOUSEKEEPING)
    elif _may_update(current.document()) and (name not in own or _is_ours(current.document())):
        change = _replaced if name in own and "rules" in wanted else _completed
        await engine.writes.update(served, key, lambda old: change(old, wanted), HOUSEKEEPING)


def _may_update(document: Document) -> bool:
    return (document["metadata"].get("annotations") or {}).get(AUTO_UPDATE) != "false"


def _is_ours(document: Document) -> bool:
    """One that somebody made by the same name before it came with the engine stays theirs."""
    return (document["metadata"].get("labels") or {}).get(PART_OF) == PRODUCT


def _metadata(old: Document, wanted: Document) -> Document:
    merged = dict(old["metadata"])
    for part in ("labels", "annotations"):
        merged[part] = {**(merged.get(part) or {}), **(wanted["metadata"].get(part) or {})}
    return merged


def _replaced(old: Document, wanted: Document) -> Document:
    """Our own roles follow the version of the program."""
    return {**old, "metadata": _metadata(old, wanted), "rules": wanted["rules"]}


def _completed(old: Document, wanted: Document) -> Document:
    new = {**old, "metadata": _metadata(old, wanted)}
    if "subjects" in wanted:
        present = old.get("subjects") or []
        new["subjects"] = [*present, *(one for one in wanted["subjects"] if one not in present)]
    elif wanted.get("rules"):
        present = old.get("rules") or []
        lacking = _lacking(read_rules(present), read_rules(wanted["rules"]))
        new["rules"] = [*present, *(rule.document() for rule in lacking)]
    return new


def _lacking(present: tuple[Rule, ...], wanted: tuple[Rule, ...]) -> Sequence[Rule]:
    try:
        return missing(present, wanted, told=sys.maxsize).pieces
    except TooManyPieces:
        return wanted  # twice does no harm


class Aggregation:
    """A ClusterRole with an aggregationRule has the rules of all that its selectors find, and none of its own."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.worker = Worker[str]("aggregation", self._reconcile)
        engine.store.listen(CLUSTER_ROLES, self._on_change)
        self._look()

    def _on_change(self, change: Change) -> None:
        self._look()

    def _look(self) -> None:
        """Any role may be found by any selector, and there are few that gather."""
        for record in self._engine.store.scan(CLUSTER_ROLES):
            if b'"aggregationRule"' in record.raw:
                self.worker.add(record.name)

    async def gather(self) -> None:
        """Before anybody asks: those that people know, each of which is part of the next."""
        for name in ("view", "edit", "admin"):
            await self._reconcile(name)

    async def _reconcile(self, name: str) -> None:
        record = self._engine.store.get(CLUSTER_ROLES, name)
        if record is None:
            return
        document = record.document()
        selectors = (document.get("aggregationRule") or {}).get("clusterRoleSelectors")
        if not selectors:
            return
        rules = self._gathered(name, selectors)
        if rules == (document.get("rules") or []):
            return
        served = self._engine.served(GROUP, "v1", "clusterroles")
        try:
            await self._engine.writes.update(served, name, lambda old: {**old, "rules": rules}, AGGREGATION)
        except ApiError as error:
            if error.code != 404:
                raise

    def _gathered(self, name: str, selectors: list[Document]) -> list[Document]:
        found: dict[bytes, Document] = {}
        for selector in selectors:
            matches = selector_from_object(selector).matches
            for record in self._engine.store.scan(CLUSTER_ROLES):
                if record.name != name and matches(record.labels):
                    found |= {encode_sorted(rule): rule for rule in record.document().get("rules") or ()}
        return list(found.values())
