"""What follows when a guest ends: its run strategy decides, whichever way it ended."""

import pytest

from tests.engines.resources import PODS
from tests.machines.herd import INSTANCES, Herd, Json

# The next instance of one that ends so would end in the same way: it is not the guest that ends these.
BY_OTHERS = ("pod killed", "pod deleted", "instance deleted")


async def _end(herd: Herd, how: str, instance: Json) -> None:
    pod = instance["status"]["launcherPodName"]
    if how == "pod killed":
        await herd.delete(pod, PODS, {"gracePeriodSeconds": 0})
    elif how == "pod deleted":
        await herd.delete(pod, PODS)
    elif how == "instance deleted":
        await herd.delete("vm", INSTANCES)


@pytest.mark.parametrize("how", BY_OTHERS)
@pytest.mark.parametrize("strategy", ["Always", "RerunOnFailure"])
async def test_a_machine_whose_guest_was_taken_away_runs_again(herd: Herd, strategy: str, how: str) -> None:
    await herd.make(strategy)
    first = await herd.running()
    await _end(herd, how, first)
    second = await herd.running(but=first["metadata"]["uid"])
    assert [pod["metadata"]["name"] for pod in await herd.pods()] == [second["status"]["launcherPodName"]]
    assert "startFailure" not in (await herd.machine())["status"]


@pytest.mark.parametrize("how", ["pod killed", "pod deleted"])
@pytest.mark.parametrize("strategy", ["Manual", "Once"])
async def test_a_machine_that_is_not_to_run_again_stays_off_when_its_pod_is_taken_away(herd: Herd, strategy: str, how: str) -> None:
    await herd.make(strategy, annotations={"herder.dev/start-requested": "1"})
    first = await herd.running()
    await _end(herd, how, first)
    ended = await herd.phase("Failed")
    assert ended["metadata"]["uid"] == first["metadata"]["uid"]
    assert ended["status"]["reason"] == "PodGone"
    stopped = await herd.shows("Stopped", ready=False)
    assert stopped["status"]["reason"] == "PodGone"


@pytest.mark.parametrize("strategy", ["Manual", "Once"])
async def test_a_machine_that_is_not_to_run_again_stays_off_when_its_instance_is_deleted(herd: Herd, strategy: str) -> None:
    await herd.make(strategy, annotations={"herder.dev/start-requested": "1"})
    await herd.running()
    await herd.delete("vm", INSTANCES)
    await herd.gone(INSTANCES, "vm")
    await herd.shows("Stopped", created=False)
    await herd.no_pods()


@pytest.mark.parametrize("strategy", ["RerunOnFailure", "Manual", "Once"])
async def test_a_guest_that_shuts_itself_down_stays_off(herd: Herd, strategy: str) -> None:
    await herd.make(strategy, simulated={"exits-after": "200ms"}, annotations={"herder.dev/start-requested": "1"})
    ended = await herd.phase("Succeeded")
    assert ended["status"]["reason"] == "GuestShutDown"
    machine = await herd.shows("Stopped", created=True, ready=False)
    assert machine["status"]["lastInstanceUID"] == ended["metadata"]["uid"]
    assert "startFailure" not in machine["status"]


async def test_a_guest_that_shuts_itself_down_is_started_again_at_once_where_it_is_always_to_run(herd: Herd) -> None:
    """And after a while where it does nothing else."""
    await herd.make("Always", simulated={"exits-after": "200ms"})
    machine = await herd.shows("CrashLoopBackOff", ready=False)
    failure = machine["status"]["startFailure"]
    # Twice: after the first time it did not wait.
    assert (failure["consecutiveCrashCount"], failure["consecutiveFailCount"], failure["reason"]) == (2, 0, "GuestShutDown")
    assert failure["lastFailedVMIUID"] == machine["status"]["lastInstanceUID"]
    assert failure["retryAfterTimestamp"] in machine["status"]["message"]


@pytest.mark.parametrize("strategy", ["Always", "RerunOnFailure"])
async def test_a_guest_that_crashes_soon_is_started_again_after_a_while(herd: Herd, strategy: str) -> None:
    await herd.make(strategy, simulated={"crashes-after": "200ms"})
    machine = await herd.shows("CrashLoopBackOff", ready=False)
    failure = machine["status"]["startFailure"]
    assert (failure["consecutiveCrashCount"], failure["consecutiveFailCount"], failure["reason"]) == (1, 0, "GuestCrashed")
    assert failure["retryAfterTimestamp"] in machine["status"]["message"]
    assert "it crashed, as it was told to" in machine["status"]["message"]


@pytest.mark.parametrize("strategy", ["Manual", "Once"])
async def test_a_guest_that_crashes_stays_off_where_nobody_asked_for_more(herd: Herd, strategy: str) -> None:
    await herd.make(strategy, simulated={"crashes-after": "200ms"}, annotations={"herder.dev/start-requested": "1"})
    assert (await herd.phase("Failed"))["status"]["reason"] == "GuestCrashed"
    machine = await herd.shows("Stopped", ready=False)
    assert machine["status"]["message"] == "it crashed, as it was told to"


async def test_halted_machines_have_no_instance(herd: Herd) -> None:
    await herd.make("Halted")
    await herd.shows("Stopped", created=False, ready=False, runStrategy="Halted")
    assert await herd.instance() is None
    assert await herd.pods() == []


async def test_a_manual_machine_waits_to_be_started(herd: Herd) -> None:
    await herd.make("Manual")
    await herd.shows("Stopped", created=False)
    assert await herd.instance() is None


async def test_once_is_once(herd: Herd) -> None:
    await herd.make("Once", simulated={"exits-after": "200ms"})
    ended = await herd.phase("Succeeded")
    await herd.delete("vm", INSTANCES)
    await herd.gone(INSTANCES, "vm")
    await herd.shows("Stopped", created=False, lastInstanceUID=ended["metadata"]["uid"])
    assert await herd.instance() is None


@pytest.mark.parametrize("step", ["start", "boot"])
async def test_failures_to_start_are_counted_and_waited_out(herd: Herd, step: str) -> None:
    await herd.make("Always", simulated={"fails-at": step})
    machine = await herd.shows("CrashLoopBackOff")
    failure = machine["status"]["startFailure"]
    assert (failure["consecutiveFailCount"], failure["consecutiveCrashCount"]) == (1, 0)
    assert failure["lastFailedVMIUID"] == machine["status"]["lastInstanceUID"]
    assert failure["firstFailureTimestamp"] < failure["retryAfterTimestamp"]

    async def again() -> Json:
        status = (await herd.machine())["status"]
        assert status["startFailure"]["consecutiveFailCount"] == 2, status
        return status["startFailure"]

    second = await herd.eventually(again)
    assert second["firstFailureTimestamp"] == failure["firstFailureTimestamp"]
    assert second["lastFailedVMIUID"] != failure["lastFailedVMIUID"]


async def test_running_true_and_false_are_always_and_halted(herd: Herd) -> None:
    await herd.make("Halted")
    await herd.shows("Stopped")
    await herd.patch("vm", {"spec": {"runStrategy": None, "running": True}})
    first = await herd.running()
    await herd.patch("vm", {"spec": {"running": False}})
    await herd.shows("Stopped", created=False)
    assert first["metadata"]["name"] == "vm"
