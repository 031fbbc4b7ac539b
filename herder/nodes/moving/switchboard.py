"""Links between agents of one process, which are simulated nodes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from herder.api import reasons
from herder.nodes.moving.link import Answering, Unreachable
from herder.nodes.moving.messages import Answer, Gone, Hello, Refusal, Request

SCHEME = "simulated:"
Go = Callable[[], Awaitable[Answer]]
# From node, to node, what: for tests, which cut, delay and lose.
Around = Callable[[str, str, Request, Go], Awaitable[Answer]]


class Switchboard:
    """All simulated nodes of a process. Its name is part of every address: another process' nodes cannot be reached."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.around: list[Around] = []
        self._open: dict[str, Answering] = {}

    def link(self, node: str) -> SwitchboardLink:
        return SwitchboardLink(self, node)

    def address(self, node: str) -> str:
        return f"{SCHEME}{self.name}/{node}"

    def plug(self, node: str, answering: Answering) -> None:
        self._open[node] = answering

    def unplug(self, node: str) -> None:
        self._open.pop(node, None)

    async def ask(self, source: str, address: str, request: Request) -> Answer:
        process, _, node = address.removeprefix(SCHEME).rpartition("/")
        if not address.startswith(SCHEME) or process != self.name:
            sentence = f"simulated nodes of different processes cannot move guests to each other: {address} is not of this process"
            return Refusal(reasons.RUNTIME_NOT_LIVE_MIGRATABLE, sentence) if isinstance(request, Hello) else Gone(sentence)

        async def arrive() -> Answer:
            if (answering := self._open.get(node)) is None:
                raise Unreachable(f"no agent answers at {address}")
            return await answering(request, source)

        go: Go = arrive
        for around in self.around:
            go = _wrapped(around, source, node, request, go)
        return await go()


class SwitchboardLink:
    def __init__(self, board: Switchboard, node: str) -> None:
        self._board = board
        self._node = node

    @property
    def address(self) -> str:
        return self._board.address(self._node)

    @property
    def closed(self) -> str:
        return ""

    async def open(self, answering: Answering) -> None:
        self._board.plug(self._node, answering)

    async def ask(self, address: str, node: str, request: Request) -> Answer:
        return await self._board.ask(self._node, address, request)

    async def close(self) -> None:
        self._board.unplug(self._node)


def _wrapped(around: Around, source: str, node: str, request: Request, go: Go) -> Go:
    return lambda: around(source, node, request, go)
