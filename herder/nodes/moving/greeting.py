"""Before a byte is sent: both agents know of each other, and both guests are of the same shape."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Protocol

from herder.api import reasons
from herder.api.guest import MigrationOrder
from herder.nodes.moving.link import Unreachable
from herder.nodes.moving.means import Means
from herder.nodes.moving.messages import Hello, Ready, Refusal
from herder.nodes.runtimes.base import Refused

# For the target's agent to be back, should it have been restarted just now.
PATIENCE = 30.0
FIRST_WAIT = 0.05
LONGEST_WAIT = 2.0


class Waiting(Protocol):
    @property
    def guest(self) -> str: ...

    def check_wanted(self) -> None:
        """Raises `Refused` where nobody wants it any more."""
        ...

    async def pause_for(self, seconds: float) -> None: ...


async def greet(means: Means, waiting: Waiting, order: MigrationOrder) -> Ready:
    """Raises `Refused` with the sentence that names what is wrong."""
    hello = Hello(order.migration, order.target_pod, means.runtime.shape(waiting.guest))
    clock = asyncio.get_running_loop().time
    end, wait = clock() + PATIENCE, FIRST_WAIT
    while True:
        waiting.check_wanted()
        try:
            answer = await means.link.ask(order.address, order.target_node, hello)
        except Unreachable as problem:
            if clock() >= end:
                sentence = f"the agent of node {order.target_node} does not answer at {order.address}: {problem}"
                raise Refused(reasons.TARGET_POD_FAILED, sentence) from None
            await waiting.pause_for(wait)
            wait = min(LONGEST_WAIT, 2 * wait)
            continue
        if isinstance(answer, Ready):
            return answer
        if isinstance(answer, Refusal):
            raise Refused(answer.reason, answer.message)
        raise Refused(reasons.TARGET_POD_FAILED, f"the target gave an answer that makes no sense: {type(answer).__name__}")


def difference(source: Mapping[str, str], target: Mapping[str, str]) -> str:
    """What the two sides do not have alike; empty where a guest of the one can go on in the other."""
    differ = [name for name in sorted(source.keys() | target.keys()) if source.get(name) != target.get(name)]
    return "; ".join(f"{name} is {_said(source, name)} at the source and {_said(target, name)} at the target" for name in differ)


def _said(shape: Mapping[str, str], name: str) -> str:
    return repr(shape[name]) if name in shape else "not there"
