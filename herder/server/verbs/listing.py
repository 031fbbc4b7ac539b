"""GET of a collection: selectors, pages from one consistent snapshot, resourceVersion semantics."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import msgspec

from herder.api.problems import Problem, forbidden, not_supported
from herder.server import status
from herder.server.engine import Engine
from herder.server.presenting import in_turns, many
from herder.server.request import Answer, Request, Target
from herder.server.revisions import parse_revision, wait_for_revision
from herder.server.selection import Selection, selection_of
from herder.server.served import Served
from herder.server.store import CompactedError, Record

MATCHES = ("Exact", "NotOlderThan", "")


class Continue(msgspec.Struct, rename={"revision": "rv"}):
    """Where the next page starts, and of which snapshot. The same shape as kube-apiserver's own token."""

    v: str
    revision: int
    start: str

    def token(self) -> str:
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")


class Page(msgspec.Struct):
    """What is read: from which snapshot (None: the newest), behind which key, how many (None: all)."""

    revision: int | None = None
    after: str = ""
    limit: int | None = None


TOKEN_VERSION = "meta.k8s.io/v1"


def parse_token(text: str) -> Continue:
    try:
        token = msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=Continue)
    except (ValueError, msgspec.MsgspecError):
        raise status.bad_request("continue key is not valid: it must be the token of the page before, unchanged") from None
    if token.v != TOKEN_VERSION or token.revision == 0:
        raise status.bad_request(f"continue key is not valid: server does not recognize this encoded version {token.v!r}")
    return token


async def page_of(engine: Engine, request: Request) -> Page:
    limit = max(0, request.number("limit") or 0) or None
    request.number("timeoutSeconds")  # nothing takes so long, and yet it has to be a number
    match = _match(request)
    revision = parse_revision(request.query.get("resourceVersion"))
    if text := request.query.get("continue"):
        if revision not in (None, 0):
            raise status.bad_request("specifying resource version is not allowed when using continue")
        token = parse_token(text)
        return Page(None if token.revision < 0 else token.revision, token.start.rstrip("\0"), limit)
    if revision:
        await wait_for_revision(engine, revision)
    exact = revision if match == "Exact" or (revision and limit and not match) else None
    return Page(exact, "", limit)


def _match(request: Request) -> str:
    match = request.query.get("resourceVersionMatch", "")
    revision = request.query.get("resourceVersion", "")
    problems: list[Problem] = []
    if "sendInitialEvents" in request.query:
        problems.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if match and not revision:
        problems.append(forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided"))
    if match and request.query.get("continue"):
        problems.append(forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided"))
    if match not in MATCHES:
        problems.append(not_supported("resourceVersionMatch", match, MATCHES))
    if match == "Exact" and revision == "0":
        problems.append(forbidden("resourceVersionMatch", 'resourceVersionMatch "Exact" is forbidden for resourceVersion "0"'))
    if problems:
        raise status.invalid_options("ListOptions", problems)
    return match


async def list_objects(engine: Engine, served: Served, target: Target, request: Request) -> Answer:
    found, metadata = await read_page(engine, served, target, request)
    return await many(request, served, found, metadata, engine.world.now())


async def read_page(engine: Engine, served: Served, target: Target, request: Request) -> tuple[list[Record], dict[str, Any]]:
    """What the query selects, and the metadata of the list."""
    selection = selection_of(request, target, served)
    page = await page_of(engine, request)
    try:
        shown = page.revision if page.revision is not None else engine.store.revision
        found, more = await _read(engine, served, selection, page)
    except CompactedError as error:
        raise _expired(error, page) from None
    metadata: dict[str, Any] = {"resourceVersion": str(shown)}
    if more:
        metadata["continue"] = Continue(TOKEN_VERSION, shown, found[-1].key + "\0").token()
        if not selection.selective:
            metadata["remainingItemCount"] = more
    return found, metadata


async def _read(engine: Engine, served: Served, selection: Selection, page: Page) -> tuple[list[Record], int]:
    """The records, and how many come behind them; of a selection only whether there are any."""
    matches = selection.matches if selection.selective else None
    if page.revision is not None:
        snapshot = await engine.store.scan_at(served.table, page.revision, selection.prefix, page.after)
        return await snapshot.read(matches, page.limit)
    records = _current(engine, served, selection, page)
    if matches is not None:
        return await _matching(list(records), matches, page.limit)
    found = list(islice(records, page.limit))
    return found, 0 if page.limit is None or len(found) < page.limit else sum(1 for _ in records)


async def _matching(records: list[Record], matches: Callable[[Record], bool], limit: int | None) -> tuple[list[Record], int]:
    found: list[Record] = []
    async for record in in_turns(records):
        if matches(record):
            if len(found) == limit:
                return found, 1
            found.append(record)
    return found, 0


def _current(engine: Engine, served: Served, selection: Selection, page: Page) -> Iterator[Record]:
    if selection.name is None or not selection.prefix:
        return engine.store.scan(served.table, selection.prefix, page.after)
    record = engine.store.get(served.table, selection.prefix + selection.name)
    return iter((record,) if record is not None and record.key > page.after else ())


def _expired(error: CompactedError, page: Page) -> status.ApiError:
    if not page.after:
        return status.expired(f"The resourceVersion for the provided list is too old: {error.asked} ({error.oldest})")
    again = Continue(TOKEN_VERSION, -1, page.after + "\0").token()
    return status.expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without the "
        "continue parameter, or use the continue token in this response to retrieve the remainder of the results, which then "
        "come from the newest state.",
        again,
    )
