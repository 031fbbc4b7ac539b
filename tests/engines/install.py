"""Our kinds on an engine of which nothing else is asked yet."""

import asyncio
import threading

from herder.api import node_role
from tests.behaviour.our_kinds import install_crds, install_definitions
from tests.engines.api import Api, connect
from tests.engines.engine import Engine
from tests.engines.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES


def install_on(engine: Engine, *, judged: bool = True) -> None:
    """In a thread of its own: whoever asks may have an event loop that runs. `judged`: somebody asks our rules there."""
    failures: list[BaseException] = []

    def work() -> None:
        try:
            asyncio.run(_install(engine, judged))
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if failures:
        raise RuntimeError(f"our kinds could not be installed: {failures[0]}") from failures[0]


async def _install(engine: Engine, judged: bool) -> None:
    async with connect(engine) as api:
        await (install_crds if judged else install_definitions)(api)
        if engine.name == "kubernetes":
            await _let_nodes_read(api)


async def _let_nodes_read(api: Api) -> None:
    """As `herder install` does. The embedded engine knows by itself what a node has to read."""
    for resource, document in zip((CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS), node_role.documents(), strict=True):
        (await api.create(resource, document)).ok  # noqa: B018
