"""Start, stop, restart, pause: plain patches, as `herder` and kubectl send them."""

import pytest

from herder.api import labels
from tests.engines.resources import PODS
from tests.machines.herd import INSTANCES, Herd, Json, condition


async def test_start_and_stop_by_run_strategy(herd: Herd) -> None:
    await herd.make("Halted")
    await herd.shows("Stopped")
    await herd.patch("vm", {"spec": {"runStrategy": "Always"}})
    await herd.running()
    await herd.patch("vm", {"spec": {"runStrategy": "Halted"}})
    await herd.shows("Stopped", created=False, ready=False)
    await herd.gone(INSTANCES, "vm")
    await herd.no_pods()


@pytest.mark.parametrize("strategy", ["Manual", "RerunOnFailure", "Once"])
async def test_start_by_request_after_the_guest_has_shut_down(herd: Herd, strategy: str) -> None:
    await herd.make(strategy, simulated={"exits-after": "200ms"}, annotations={labels.START_REQUEST: "first"})
    first = await herd.phase("Succeeded")
    await herd.shows("Stopped", observedStartRequest="first")
    await herd.annotate("vm", labels.START_REQUEST, "second")
    second = await herd.phase("Succeeded", but=first["metadata"]["uid"])
    await herd.shows("Stopped", observedStartRequest="second", lastInstanceUID=second["metadata"]["uid"])


async def test_a_manual_machine_is_stopped_by_request_and_started_again(herd: Herd) -> None:
    await herd.make("Manual", annotations={labels.START_REQUEST: "1"})
    first = await herd.running()
    await herd.annotate("vm", labels.STOP_REQUEST, first["metadata"]["uid"])
    await herd.shows("Stopped", created=False)
    await herd.annotate("vm", labels.START_REQUEST, "2")
    # The old request to stop is about an instance that is gone.
    await herd.running(but=first["metadata"]["uid"])


@pytest.mark.parametrize("strategy", ["Always", "RerunOnFailure", "Manual", "Once"])
async def test_a_restart_replaces_the_instance_once(herd: Herd, strategy: str) -> None:
    await herd.make(strategy, annotations={labels.START_REQUEST: "1"})
    first = await herd.running()
    await herd.annotate("vm", labels.RESTART_REQUEST, first["metadata"]["uid"])
    second = await herd.running(but=first["metadata"]["uid"])
    await herd.gone(PODS, first["status"]["launcherPodName"])
    # Said again, it is still about the one that is gone.
    await herd.annotate("vm", labels.RESTART_REQUEST, first["metadata"]["uid"])
    await herd.annotate("vm", "example.com/touched", "1")
    machine = await herd.shows("Running", ready=True, lastInstanceUID=second["metadata"]["uid"])
    assert "startFailure" not in machine["status"]


async def test_pause_and_unpause(herd: Herd) -> None:
    await herd.make()
    first = await herd.running()
    await herd.annotate("vm", labels.PAUSE, "true", INSTANCES)
    paused = await herd.shows("Paused", ready=False)
    assert condition(paused, "Paused")["status"] == "True"
    instance = await herd.phase("Running")
    assert condition(instance, "Paused")["reason"] == "GuestPaused"
    assert condition(instance, "Ready")["status"] == "False"
    await herd.annotate("vm", labels.PAUSE, "false", INSTANCES)
    machine = await herd.shows("Running", ready=True)
    assert condition(machine, "Paused") == {}
    assert (await herd.running())["metadata"]["uid"] == first["metadata"]["uid"]


async def test_a_paused_guest_can_be_stopped(herd: Herd) -> None:
    await herd.make(terminationGracePeriodSeconds=0)
    await herd.running()
    await herd.annotate("vm", labels.PAUSE, "true", INSTANCES)
    await herd.shows("Paused")
    await herd.patch("vm", {"spec": {"runStrategy": "Halted"}})
    await herd.shows("Stopped", created=False)


async def test_a_guest_may_be_prepared_paused(herd: Herd) -> None:
    await herd.make(startStrategy="Paused")
    await herd.shows("Paused", ready=False)
    await herd.annotate("vm", labels.PAUSE, "false", INSTANCES)
    await herd.shows("Running", ready=True)


async def test_a_changed_template_is_used_after_a_restart_and_said_until_then(herd: Herd) -> None:
    await herd.make()
    first = await herd.running()
    await herd.patch("vm", {"spec": {"template": {"spec": {"domain": {"memory": {"guest": "128Mi"}}}}}})

    async def required() -> Json:
        found = condition(await herd.machine(), "RestartRequired")
        assert found.get("status") == "True"
        return found

    assert "restart the machine" in (await herd.eventually(required))["message"]
    assert (await herd.running())["metadata"]["uid"] == first["metadata"]["uid"]
    await herd.annotate("vm", labels.RESTART_REQUEST, first["metadata"]["uid"])
    second = await herd.running(but=first["metadata"]["uid"])
    assert second["status"]["memory"]["guestAtBoot"] == str(128 * 2**20)

    async def no_longer() -> bool:
        assert condition(await herd.machine(), "RestartRequired") == {}
        return True

    await herd.eventually(no_longer)


async def test_the_guest_gets_its_time_to_shut_down_and_no_more(herd: Herd) -> None:
    await herd.make(simulated={"ignores-power-button": "true"}, terminationGracePeriodSeconds=2)
    first = await herd.running()
    await herd.patch("vm", {"spec": {"runStrategy": "Halted"}})
    stopping = await herd.shows("Stopping")
    pod = next(pod for pod in await herd.pods())
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 2 + 15
    assert stopping["status"]["created"] is True
    await herd.shows("Stopped", created=False)
    await herd.gone(PODS, first["status"]["launcherPodName"])


async def test_a_crash_loop_ends_when_the_machine_is_halted_and_a_new_start_waits_for_nothing(herd: Herd) -> None:
    await herd.make(simulated={"fails-at": "boot"})
    await herd.shows("CrashLoopBackOff")
    await herd.patch("vm", {"spec": {"runStrategy": "Halted"}})
    stopped = await herd.shows("Stopped", created=False)
    assert "startFailure" not in stopped["status"]


async def test_who_is_asked_to_start_does_not_wait_for_old_failures(herd: Herd) -> None:
    await herd.make("RerunOnFailure", simulated={"fails-at": "boot"})
    first = await herd.shows("CrashLoopBackOff")
    await herd.patch("vm", {"spec": {"template": {"metadata": {"annotations": {labels.SIMULATED + "fails-at": None}}}}})
    await herd.annotate("vm", labels.START_REQUEST, "now")
    await herd.running(but=first["status"]["lastInstanceUID"])
