"""Requests that go where they were sent, and nowhere else: whoever answers does not choose whom we ask next."""

from __future__ import annotations

from types import SimpleNamespace

import aiohttp


class Redirected(aiohttp.ClientError):
    """The other side wanted us to go elsewhere."""

    def __init__(self, status: int) -> None:
        super().__init__(f"it answered {status}, which leads elsewhere, and that is never followed")
        self.status = status


def never_followed() -> aiohttp.TraceConfig:
    """For sessions that open WebSockets: aiohttp follows redirects there, and has no other way to be told not to."""
    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(_refuse)
    return trace


async def _refuse(_: aiohttp.ClientSession, __: SimpleNamespace, params: aiohttp.TraceRequestRedirectParams) -> None:
    params.response.close()
    raise Redirected(params.response.status)
