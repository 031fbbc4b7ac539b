"""Probes as a person sees them: the condition Ready, and what becomes of a guest that does not live."""

from tests.machines.herd import Herd, Json, condition

PING: Json = {"guestAgentPing": {}, "periodSeconds": 1}


async def test_a_guest_is_ready_when_its_readiness_probe_passes(herd: Herd) -> None:
    await herd.make(simulated={"ready-after": "3s"}, readinessProbe=PING)
    instance = await herd.phase("Running")
    waiting = condition(instance, "Ready")
    assert waiting["status"] == "False"
    machine = await herd.shows("Running")
    assert machine["status"]["ready"] is False
    ready = await herd.running()
    assert ready["metadata"]["uid"] == instance["metadata"]["uid"]


async def test_a_guest_that_stops_to_live_is_ended_and_started_again(herd: Herd) -> None:
    await herd.make(simulated={"dies-after": "3s"}, livenessProbe={**PING, "failureThreshold": 1})
    machine = await herd.shows("CrashLoopBackOff")
    failure = machine["status"]["startFailure"]
    assert failure["reason"] == "LivenessProbeFailed"
    assert (failure["consecutiveFailCount"], failure["consecutiveCrashCount"]) == (0, 1)
    assert "the liveness probe failed" in failure["message"]


async def test_a_guest_that_never_lives_has_failed_to_start(herd: Herd) -> None:
    await herd.make("Manual", simulated={"dies-after": "0s"}, livenessProbe=PING, annotations={"herder.dev/start-requested": "1"})
    instance = await herd.phase("Running")
    assert condition(instance, "Alive")["reason"] == "LivenessProbePending"
    failed = await herd.phase("Failed")
    assert failed["status"]["reason"] == "LivenessProbeNeverPassed"
    machine = await herd.shows("Stopped", reason="LivenessProbeNeverPassed")
    assert machine["status"]["startFailure"]["consecutiveFailCount"] == 1


async def test_a_guest_that_crashes_before_its_first_liveness_probe_has_failed_to_start(herd: Herd) -> None:
    await herd.make(simulated={"crashes-after": "300ms"}, livenessProbe={**PING, "initialDelaySeconds": 60})
    machine = await herd.shows("CrashLoopBackOff", reason="GuestCrashed")
    failure = machine["status"]["startFailure"]
    assert (failure["consecutiveFailCount"], failure["consecutiveCrashCount"]) == (1, 0)


async def test_an_early_crash_without_a_liveness_probe_is_told_and_no_failure_to_start(herd: Herd) -> None:
    await herd.make(simulated={"crashes-after": "300ms"})
    machine = await herd.shows("CrashLoopBackOff", reason="GuestCrashed")
    failure = machine["status"]["startFailure"]
    assert (failure["consecutiveFailCount"], failure["consecutiveCrashCount"]) == (0, 1)
    assert "so no pool heals it" in await herd.told("VirtualMachine", "CrashedEarly")


async def test_a_guest_that_passes_both_runs_on(herd: Herd) -> None:
    await herd.make(readinessProbe=PING, livenessProbe=PING)
    instance = await herd.running()

    async def alive() -> bool:
        found = await herd.instance()
        assert found is not None
        assert condition(found, "Alive")["status"] == "True"
        return found["metadata"]["uid"] == instance["metadata"]["uid"]

    await herd.eventually(alive)
