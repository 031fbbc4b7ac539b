"""Simulated nodes with different processors behave as real ones."""

import msgspec
import pytest

from herder.api.guest import GuestDefinition
from herder.api.world import RealWorld
from herder.nodes.runtimes.base import HostCPU, Order, Refused
from herder.nodes.runtimes.simulated import SimulatedRuntime

NEW = HostCPU("Skylake-Server", "Intel", ("avx512f",), ("aes", "avx512f"), ("Haswell", "Skylake-Server"))
OLD = HostCPU("Haswell", "Intel", ("aes",), ("aes",), ("Haswell",))


def order(uid: str, **definition: object) -> Order:
    document = {"instance": {"namespace": "default", "name": "web", "uid": "u"}, "spec": {"domain": {}}, **definition}
    return Order(uid, msgspec.convert(document, GuestDefinition), {})


async def _started(cpu: HostCPU) -> dict[str, object]:
    runtime = SimulatedRuntime("here", RealWorld(), cpu=cpu)
    await runtime.start(order("source"))
    status = runtime.status("source")
    assert status is not None and status.started is not None
    await runtime.remove("source")
    return msgspec.to_builtins(status.started)


async def test_a_guest_is_recorded_with_the_host_model_and_what_it_requires() -> None:
    cpu = (await _started(NEW))["cpu"]
    assert isinstance(cpu, dict)
    assert (cpu["model"], list(cpu["features"])) == ("Skylake-Server", [{"name": "avx512f", "policy": "require"}])


async def test_a_guest_comes_only_to_a_node_that_has_what_it_was_started_with() -> None:
    old, new = SimulatedRuntime("old", RealWorld(), cpu=OLD), SimulatedRuntime("new", RealWorld(), cpu=NEW)
    with pytest.raises(Refused, match="was started with model Skylake-Server, avx512f, which node old lacks"):
        await old.prepare_incoming(order("a", incoming=await _started(NEW)), "m")
    assert await new.prepare_incoming(order("b", incoming=await _started(OLD)), "m")


async def test_a_node_that_is_relabelled_starts_guests_with_its_new_processor() -> None:
    runtime = SimulatedRuntime("here", RealWorld(), cpu=OLD)
    runtime.have(None)
    assert runtime.description.cpu == OLD
    runtime.have(NEW)
    await runtime.start(order("guest"))
    status = runtime.status("guest")
    assert status is not None and status.started is not None and status.started.cpu is not None
    assert status.started.cpu.model == "Skylake-Server"
    await runtime.remove("guest")
