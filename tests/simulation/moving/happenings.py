"""What may befall a migration at each of its steps."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable

from herder.kube.client import Client
from herder.kube.errors import KubeError
from herder.kube.resources import PODS, Key
from tests.simulation.moving.orders import SOURCE, TARGET
from tests.simulation.moving.scenario import World

SERVER_AWAY = 5.0
LINKS_CUT = 10.0
AWAY = 3.0


def source_agent_dies(world: World) -> None:
    world.source.machine.crash("killed", AWAY)


def target_agent_dies(world: World) -> None:
    world.target.machine.crash("killed", AWAY)


def both_agents_die(world: World) -> None:
    source_agent_dies(world)
    target_agent_dies(world)


def source_guest_dies(world: World) -> None:
    for uid in world.source.guests():
        world.source.kill(uid)


def target_guest_dies(world: World) -> None:
    for uid in world.target.guests():
        world.target.kill(uid)


def source_node_loses_power(world: World) -> None:
    world.source.power_off()


def target_node_loses_power(world: World) -> None:
    world.target.power_off()


def api_server_dies(world: World) -> None:
    world.simulation.api.crash("killed", SERVER_AWAY)


def api_server_and_source_agent_die(world: World) -> None:
    """The server is away for longer: what the agent has to do when it is back must not wait for it."""
    world.simulation.api.crash("killed", 4 * SERVER_AWAY)
    source_agent_dies(world)


def api_server_and_target_agent_die(world: World) -> None:
    world.simulation.api.crash("killed", 4 * SERVER_AWAY)
    target_agent_dies(world)


def controller_dies(world: World) -> None:
    if world.controller is not None:
        world.controller.crash("killed", AWAY)


def links_are_cut(world: World) -> None:
    world.links_cut_until = world.simulation.loop.time() + LINKS_CUT


def links_are_cut_for_good(world: World) -> None:
    world.links_cut_until = float("inf")


def copy_breaks_off(world: World) -> None:
    world.source.cut_copies()


def it_is_cancelled(world: World) -> None:
    world.wanted.cancelled = True


def source_pod_is_deleted(world: World) -> None:
    _by_a_person(world, lambda client: client.delete(PODS, SOURCE))


def target_pod_is_deleted(world: World) -> None:
    _by_a_person(world, lambda client: client.delete(PODS, TARGET))


def owner_pauses_it(world: World) -> None:
    for key in (SOURCE, TARGET):
        _by_a_person(world, lambda client, key=key: _paused(client, key))


async def _paused(client: Client, key: Key) -> None:
    await client.patch(PODS, key, {"metadata": {"annotations": {"herder.dev/paused": "true"}}})


def _by_a_person(world: World, step: Callable[[Client], Awaitable[object]]) -> None:
    async def act() -> None:
        with contextlib.suppress(KubeError):
            await step(world.person)

    world.simulation.machines["person"].spawn(act())


# None of these harms a guest: it has to run in the end.
HARMLESS = (
    *(source_agent_dies, target_agent_dies, both_agents_die, api_server_dies, controller_dies),
    *(api_server_and_source_agent_die, api_server_and_target_agent_die),
    *(links_are_cut, links_are_cut_for_good, copy_breaks_off, it_is_cancelled),
)
ALL = (
    *(source_agent_dies, target_agent_dies, both_agents_die, source_guest_dies, target_guest_dies),
    *(source_node_loses_power, target_node_loses_power, api_server_dies, controller_dies),
    *(api_server_and_source_agent_die, api_server_and_target_agent_die),
    *(links_are_cut, links_are_cut_for_good, copy_breaks_off, it_is_cancelled, source_pod_is_deleted, target_pod_is_deleted),
    owner_pauses_it,
)
