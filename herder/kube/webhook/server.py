"""The webhook's HTTP server. Whoever can reach the port may ask, and may learn by it whether an instance, a migration or a policy
of a certain name is there: only the API server should reach it (docs/webhook.md)."""

from __future__ import annotations

import asyncio
import hmac
import socket
import ssl
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import structlog
from aiohttp import web

from herder.kube.webhook.deciding import mutate, restrict, validate
from herder.kube.webhook.metrics import Metrics, Result
from herder.kube.webhook.reviews import Answer, BadReview, Question, read_review, write_answer
from herder.kube.webhook.rules import Advice, Evictions, Rule
from herder.net.bad_requests import server_log
from herder.net.crowd import Limits, limits_of
from herder.net.files import file_limit
from herder.net.listener import Listener
from herder.pki.authority import Pair

log = structlog.get_logger()
# An API server takes bodies of 3 MiB; a review holds the object twice.
BODY_LIMIT = 8 * 1024 * 1024
READ_PATIENCE = 10.0
STOP_PATIENCE = 2.0
# For the next review on a connection; API servers keep theirs for as long.
HEAD_PATIENCE = 90.0
MOST_CONNECTIONS = 1000


class Refused(Exception):
    """Not a review that can be answered: the code and a sentence."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


class ReviewServer:
    def __init__(
        self,
        rules: Sequence[Rule],
        metrics: Metrics,
        evictions: Evictions | None = None,
        limits: Limits | None = None,
        advice: Sequence[Advice] = (),
    ) -> None:
        self._rules = rules
        self._advice = advice
        self._evictions = evictions
        self._words: tuple[str, ...] = ()
        self._metrics = metrics
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        # An API server shows nothing of itself here: whoever is connected is a stranger, and who asks goes before who is silent.
        room = min(MOST_CONNECTIONS, file_limit() // 4)
        self._listener = Listener(limits or limits_of(room, strangers=room), self._context)
        self._runner: web.AppRunner | None = None

    @property
    def connections(self) -> int:
        return self._listener.crowd.known + self._listener.crowd.strangers

    def know(self, words: tuple[str, ...]) -> None:
        """Questions about evictions are answered only under these."""
        self._words = words

    def show(self, pair: Pair) -> None:
        """From the next handshake on. Connections that are open stay as they are."""
        # Python reads certificates from files only; the folder is ours alone, and gone at once.
        with tempfile.TemporaryDirectory(prefix="herder-webhook-") as folder:
            file = Path(folder) / "serving.pem"
            file.touch(mode=0o600)
            file.write_bytes(pair.key + pair.certificate)
            self._context.load_cert_chain(file)

    async def start(self, host: str, port: int) -> int:
        """Returns the port: 0 takes a free one."""
        app = web.Application(client_max_size=BODY_LIMIT, middlewares=[self._listener.middleware])
        app.router.add_post("/validate", self._validate)
        app.router.add_post("/mutate", self._mutate)
        app.router.add_post("/restrict", self._restrict)
        app.router.add_post("/evict/{word}", self._evict)
        app.router.add_get("/healthz", _healthy)
        self._runner = web.AppRunner(
            app, access_log=None, logger=server_log(), shutdown_timeout=STOP_PATIENCE, keepalive_timeout=HEAD_PATIENCE
        )
        await self._runner.setup()
        assert self._runner.server is not None
        listener = _listening(host, port)
        self._listener.start(listener, self._runner.server)
        return listener.getsockname()[1]

    async def stop(self) -> None:
        self._listener.close()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _validate(self, request: web.Request) -> web.Response:
        return await self._answer(request, lambda question: validate(question, self._rules, self._advice))

    async def _mutate(self, request: web.Request) -> web.Response:
        return await self._answer(request, _mutated)

    async def _restrict(self, request: web.Request) -> web.Response:
        return await self._answer(request, restrict)

    async def _evict(self, request: web.Request) -> web.Response:
        """Its answer may move a guest: not for whoever happens to reach the port."""
        word = request.match_info["word"]
        if self._evictions is None or not any(hmac.compare_digest(word.encode(), one.encode()) for one in self._words):
            return self._unreadable(404, "nobody is asked here")
        return await self._answer(request, self._evictions)

    async def _answer(self, request: web.Request, decide: Callable[[Question], Awaitable[Answer]]) -> web.Response:
        try:
            question = read_review(await _body(request))
        except BadReview as error:
            return self._unreadable(400, str(error))
        except Refused as error:
            return self._unreadable(error.code, str(error))
        try:
            answer = await decide(question)
            written = write_answer(question.uid, answer)
        except Exception:
            # Whatever it is, the API server is answered, and people are told where to look.
            log.exception("a review failed", uid=question.uid, resource=question.resource.resource, name=question.name)
            self._metrics.count(question, "failed")
            return web.Response(status=500, text="the webhook met a bug of its own; the log of herder controllers says more")
        self._metrics.count(question, _result_of(answer))
        return web.Response(body=written, content_type="application/json")

    def _unreadable(self, code: int, sentence: str) -> web.Response:
        self._metrics.count(None, "unreadable")
        return web.Response(status=code, text=sentence)


def _listening(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    return listener


async def _mutated(question: Question) -> Answer:
    return mutate(question)


async def _healthy(_: web.Request) -> web.Response:
    return web.Response(text="ok")


async def _body(request: web.Request) -> bytes:
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise Refused(415, "compressed bodies are not read; send it as it is")
    try:
        async with asyncio.timeout(READ_PATIENCE):
            return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise Refused(413, f"the body is larger than {BODY_LIMIT} bytes") from None
    except TimeoutError:
        raise Refused(408, f"the body did not come within {READ_PATIENCE:.0f} seconds") from None
    except web.RequestPayloadError as error:
        raise Refused(400, f"the body cannot be read: {error}") from None


def _result_of(answer: Answer) -> Result:
    if answer.refusal is not None:
        return "refused"
    return "changed" if answer.patch else "allowed"
