"""Whoever is killed and comes back finds everything as it was: guests go on, and nothing is started twice."""

from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.engines.api import connect
from tests.engines.herd import run_herd
from tests.engines.install import install_on
from tests.engines.kubernetes import controller_manager_command, find_programs
from tests.engines.processes import Child
from tests.engines.resources import NAMESPACES
from tests.engines.restartable import Restartable, restartable
from tests.machines.herd import Herd, Json

GUESTS = 5


class Own:
    """An engine and a herd of the test's own."""

    def __init__(self, server: Restartable, herd: Herd, folder: Path) -> None:
        self.server = server
        self.herd = herd
        self.parts: dict[str, ExitStack] = {}
        self._folder = folder

    def start(self, part: str) -> None:
        self.parts[part] = ExitStack()
        self.parts[part].enter_context(run_herd(self.server.engine, self._folder, part))

    def kill(self, part: str) -> None:
        self.parts.pop(part).close()

    async def guests(self) -> dict[str, tuple[str, str]]:
        """Of each machine the identity of its instance, and of its pod."""
        found: dict[str, tuple[str, str]] = {}
        for number in range(GUESTS):
            instance = await self.herd.running(f"vm-{number}")
            found[f"vm-{number}"] = instance["metadata"]["uid"], next(iter(instance["status"]["activePods"]))
        return found


@pytest.fixture
async def own(request: pytest.FixtureRequest, tmp_path: Path, unique: Callable[..., str]) -> AsyncIterator[Own]:
    with restartable(request.param, tmp_path) as server:
        install_on(server.engine, judged=request.param == "embedded")
        manager = _controller_manager(server, tmp_path) if request.param == "kubernetes" else None
        async with connect(server.engine) as api:
            (await api.create(NAMESPACES, {"metadata": {"name": "herd"}})).ok  # noqa: B018
            made = Own(server, Herd(api, "herd", unique), tmp_path)
            try:
                for part in ("controllers", "nodes"):
                    made.start(part)
                for number in range(GUESTS):
                    await made.herd.make(name=f"vm-{number}", readinessProbe={"guestAgentPing": {}, "periodSeconds": 1})
                yield made
            finally:
                for part in list(made.parts):
                    made.kill(part)
                if manager is not None:
                    manager.stop()


def _controller_manager(server: Restartable, folder: Path) -> Child:
    """Who takes the taint from new nodes, on a real cluster."""
    program, *arguments = controller_manager_command(folder, server.engine)
    return Child([str(find_programs() / program), *arguments], folder / "controller-manager.log")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    chosen = metafunc.config.getoption("--engine")
    metafunc.parametrize("own", ["embedded", "kubernetes"] if chosen == "all" else [chosen], indirect=True)


async def test_guests_are_adopted_by_a_restarted_agent(own: Own) -> None:
    before = await own.guests()
    own.kill("nodes")
    own.start("nodes")
    assert await own.guests() == before
    await own.herd.patch("vm-0", {"spec": {"runStrategy": "Halted"}})
    await own.herd.shows("Stopped", "vm-0", created=False)


async def test_controllers_that_are_killed_go_on_where_they_were(own: Own) -> None:
    before = await own.guests()
    own.kill("controllers")
    await own.herd.patch("vm-1", {"spec": {"runStrategy": "Halted"}})
    own.start("controllers")
    await own.herd.shows("Stopped", "vm-1", created=False)
    await own.herd.patch("vm-1", {"spec": {"runStrategy": "Always"}})
    after = await own.guests()
    assert {name: one for name, one in after.items() if name != "vm-1"} == {
        name: one for name, one in before.items() if name != "vm-1"
    }
    assert after["vm-1"] != before["vm-1"]


async def test_an_api_server_that_is_restarted_under_everything_disturbs_no_guest(own: Own) -> None:
    before = await own.guests()
    own.server.kill()
    own.server.start()
    assert await own.guests() == before
    await own.herd.make(name="late")
    await own.herd.running("late")
    names: list[Json] = await own.herd.pods()
    assert len(names) == GUESTS + 1


async def test_everybody_killed_at_once_while_guests_start(own: Own) -> None:
    own.server.kill()
    for part in ("controllers", "nodes"):
        own.kill(part)
    own.server.start()
    for part in ("controllers", "nodes"):
        own.start(part)
    await own.guests()
    assert len(await own.herd.pods()) == GUESTS
