"""The transport to an engine in the same process: no sockets and no threads, so that a simulation can hold the time still.

Who asks is said by a certificate's user or by a token, and is checked as from outside; so are roles and admission.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

from herder.kube.errors import Unreachable, error_from
from herder.kube.transport import Call, Reply
from herder.server import status
from herder.server.request import Request, Response, Stream, Upgrade, User
from herder.server.router import Router


class InsideTransport:
    def __init__(self, router: Router, agent: str, *, user: User | None = None, token: str = "") -> None:
        self._router = router
        self._agent = agent
        self._user = user
        self._authorization = f"Bearer {token}" if token else None

    async def send(self, call: Call) -> Reply:
        try:
            async with asyncio.timeout(call.patience):
                answer = await self._answer(call)
                body = answer.body if isinstance(answer, Response) else b"".join([chunk async for chunk in answer.chunks()])
        except TimeoutError as error:
            raise Unreachable(f"{call.method} {call.path}: no answer within {call.patience} s") from error
        return Reply(answer.status if isinstance(answer, Response) else 200, body, tuple(answer.warnings))

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncGenerator[AsyncIterator[bytes]]:
        answer = await self._answer(call)
        if isinstance(answer, Response):
            if answer.status >= 400:
                raise error_from(answer.status, answer.body)
            answer = _as_stream(answer)
        chunks = answer.chunks()
        try:
            yield chunks
        finally:
            if isinstance(chunks, AsyncGenerator):
                await chunks.aclose()
            answer.close()

    async def close(self) -> None:
        pass

    async def _answer(self, call: Call) -> Response | Stream:
        headers = {"User-Agent": f"{self._agent}/1", "Accept": call.accept, "Content-Type": call.content_type}
        try:
            user = self._router.engine.access.identify(self._user, self._authorization)
            request = Request(
                method=call.method, path=call.path, query=dict(call.query), headers=headers, body=call.body, user=user
            )
            answer = await self._router.handle(request)
        except status.ApiError as error:
            return Response(error.code, error.body(), headers=error.headers)
        assert not isinstance(answer, Upgrade), "only over HTTP a connection becomes a WebSocket"
        return answer


def _as_stream(answer: Response) -> Stream:
    async def once() -> AsyncIterator[bytes]:
        yield answer.body

    return Stream(once)
