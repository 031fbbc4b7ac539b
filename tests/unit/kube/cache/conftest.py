"""One engine for the stories of a file, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from herder.kube.client import EVERYTHING, Selection
from tests.unit.kube.cache.rig import Rig, rig
from tests.unit.kube.cache.stories import Virtually
from tests.unit.server.inside import Inside, engine_inside

Story = Callable[[Rig], Coroutine[Any, Any, None]]
Play = Callable[..., None]


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Play]:
    """Tells a story to a fresh cache. Hours pass in it as fast as nothing happens."""
    virtually, stack = Virtually(), AsyncExitStack()
    inside = virtually(stack.enter_async_context(engine_inside(tmp_path_factory.mktemp("engine"))))
    yield lambda story, selection=EVERYTHING: virtually(_tell(inside, story, selection))
    virtually(stack.aclose())
    virtually.close()


async def _tell(inside: Inside, story: Story, selection: Selection) -> None:
    async with rig(inside, selection) as made:
        await story(made)
