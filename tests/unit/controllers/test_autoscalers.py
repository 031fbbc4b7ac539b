"""Autoscalers of the embedded engine: they follow what pods use, through the API like anybody, and leave people their way."""

import asyncio
from typing import Any

import msgspec

from herder.kube.errors import Invalid
from herder.kube.resources import AUTOSCALERS, POOLS, REPLICA_SETS, Key
from herder.kube.transport import Call, Reply
from tests.unit.controllers.autoscaled import AT_ONCE, WEB, Stage, play

Json = dict[str, Any]
LOOKS = 15.0


def test_a_set_follows_its_load_out_and_in() -> None:
    async def story(stage: Stage) -> None:
        stage.load = 0.5
        await stage.make(1, behavior=AT_ONCE)
        await asyncio.sleep(120)
        assert await stage.replicas() == 1
        stage.load = 2.0
        await asyncio.sleep(300)
        # Each uses half of the processor that it asks for.
        assert await stage.replicas() == 4
        status = await stage.status()
        (metric,) = status["currentMetrics"]
        assert (status["currentReplicas"], status["desiredReplicas"]) == (4, 4)
        assert metric["resource"]["current"] == {"averageUtilization": 50, "averageValue": "500m"}
        assert await stage.condition("ScalingActive") == ("True", "ValidMetricFound")
        assert await stage.condition("ScalingLimited") == ("False", "DesiredWithinRange")
        stage.load = 0.4
        await asyncio.sleep(300)
        assert await stage.replicas() == 1
        assert (await stage.status())["lastScaleTime"]

    play(story)


def test_on_the_way_down_the_highest_recommendation_of_the_last_five_minutes_holds() -> None:
    async def story(stage: Stage) -> None:
        stage.load = 2.0
        await stage.make(4)
        await asyncio.sleep(120)
        stage.load = 0.4
        await asyncio.sleep(240)
        assert await stage.replicas() == 4
        assert await stage.condition("AbleToScale") == ("True", "ScaleDownStabilized")
        await asyncio.sleep(180)
        assert await stage.replicas() == 1

    play(story)


def test_what_a_person_scales_is_the_number_that_is_gone_on_from() -> None:
    async def story(stage: Stage) -> None:
        stage.load = 1.0
        await stage.make(2, maxReplicas=5, behavior=AT_ONCE)
        await asyncio.sleep(120)
        await stage.scale(0)
        await asyncio.sleep(120)
        assert await stage.replicas() == 0
        assert await stage.condition("ScalingActive") == ("False", "ScalingDisabled")
        await stage.scale(7)
        await asyncio.sleep(LOOKS + 1)
        assert await stage.replicas() == 5
        await asyncio.sleep(240)
        assert await stage.replicas() == 2

    play(story)


def test_a_number_that_somebody_sets_while_it_is_decided_is_not_overwritten() -> None:
    async def story(stage: Stage) -> None:
        stage.load = 2.0
        send, scaled = stage.line.send, list[int]()

        async def meanwhile(call: Call) -> Reply:
            """Between what was read of the scale and what is written to it."""
            if call.method == "PATCH" and call.path.endswith("/scale") and not scaled:
                await stage.scale(9)
                scaled.append(await stage.replicas())
            return await send(call)

        stage.line.send = meanwhile
        await stage.make(1, behavior={**AT_ONCE, "scaleDown": {"selectPolicy": "Disabled"}})
        await asyncio.sleep(200)
        assert scaled == [9]
        assert await stage.replicas() == 9

    play(story)


def test_one_list_of_metrics_is_asked_for_at_each_look_and_a_status_that_stays_is_not_written() -> None:
    async def story(stage: Stage) -> None:
        stage.load = 1.0
        await stage.make(2)
        await asyncio.sleep(120)
        stage.line.calls.clear()
        await asyncio.sleep(10 * LOOKS)
        asked = [call for call in stage.line.calls if "metrics.k8s.io" in call.path]
        assert len(asked) == 10
        assert {call.query["labelSelector"] for call in asked} == {"app=web"}
        assert stage.writes("/status") == 0

    play(story)


def test_edits_do_not_make_it_look_more_often() -> None:
    async def story(stage: Stage) -> None:
        stage.load = 1.0
        await stage.make(2)
        await asyncio.sleep(60)
        stage.line.calls.clear()
        for number in range(30):
            await stage.person.patch(AUTOSCALERS, WEB, {"spec": {"maxReplicas": 20 + number}})
            await asyncio.sleep(1)
        assert len([call for call in stage.line.calls if "metrics.k8s.io" in call.path]) == 2

    play(story)


def test_what_cannot_be_scaled_is_told_and_looked_at_again() -> None:
    async def story(stage: Stage) -> None:
        await stage.autoscale("web")
        await stage.autoscale("made-up", "Nonsense", "example.com/v1")
        await stage.autoscale("small", "ConfigMap", "v1/")
        await asyncio.sleep(5)
        for name in ("web", "made-up", "small"):
            assert await stage.condition("AbleToScale", name) == ("False", "FailedGetScale"), name
        messages = [(await stage.status(name))["conditions"][0]["message"] for name in ("web", "made-up", "small")]
        assert 'replicasets.apps "web" not found' in messages[0]
        assert 'no matches for kind "Nonsense" in version "example.com/v1"' in messages[1]
        stage.load = 1.0
        await stage.create(REPLICA_SETS, "web", _set(1))
        await asyncio.sleep(2 * LOOKS)
        assert await stage.condition("AbleToScale") != ("False", "FailedGetScale")

    play(story)


def _set(replicas: int) -> Json:
    labels = {"app": "web"}
    pod = {"nodeName": "n", "containers": [{"name": "main", "image": "x"}]}
    return {"replicas": replicas, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}


def test_pods_that_ask_for_nothing_are_told_of_by_name() -> None:
    async def story(stage: Stage) -> None:
        await stage.create(REPLICA_SETS, "web", _set(2))
        await stage.autoscale("web")
        await asyncio.sleep(120)
        active = (await stage.status())["conditions"][1]
        assert (active["status"], active["reason"]) == ("False", "FailedGetResourceMetric")
        assert "missing request for cpu in container main of Pod web-" in active["message"]
        assert await stage.replicas() == 2

    play(story)


def test_two_autoscalers_of_the_same_pods_do_nothing_and_say_so() -> None:
    async def story(stage: Stage) -> None:
        stage.load = 4.0
        await stage.make(2)
        await stage.autoscale("second")
        await asyncio.sleep(5)
        before = await stage.replicas()
        await asyncio.sleep(200)
        assert await stage.replicas() == before
        for name in ("web", "second"):
            assert await stage.condition("ScalingActive", name) == ("False", "AmbiguousSelector")
        await stage.person.delete(AUTOSCALERS, Key("default", "second"))
        await asyncio.sleep(200)
        assert await stage.replicas() == 8

    play(story)


def test_a_target_without_a_selector_is_told() -> None:
    async def story(stage: Stage) -> None:
        domain = {"domain": {"memory": {"guest": "64Mi"}}}
        await stage.create(POOLS, "web", {"replicas": 1, "template": {"spec": {"running": True, "template": {"spec": domain}}}})
        await stage.autoscale("web", "VirtualMachinePool", "kubevirt.io/v1")
        await asyncio.sleep(5)
        assert await stage.condition("ScalingActive") == ("False", "InvalidSelector")

    play(story)


def test_a_target_that_refuses_the_number_is_told_and_tried_again() -> None:
    async def story(stage: Stage) -> None:
        stage.load = 4.0
        send = stage.line.send

        async def refusing(call: Call) -> Reply:
            if call.method == "PATCH" and call.path.endswith("/scale"):
                raise Invalid(422, "Invalid", "nobody may have more")
            return await send(call)

        stage.line.send = refusing
        await stage.make(2)
        await asyncio.sleep(120)
        assert await stage.condition("AbleToScale") == ("False", "FailedUpdateScale")
        assert (await stage.status())["desiredReplicas"] == 0
        stage.line.send = send
        await asyncio.sleep(120)
        assert await stage.replicas() == 8

    play(story)


def test_a_new_leader_goes_on_from_the_number_that_it_finds() -> None:
    async def first(stage: Stage) -> None:
        stage.load = 2.0
        await stage.make(4)
        await asyncio.sleep(120)
        async with stage.running():
            stage.load = 0.4
            await asyncio.sleep(100)
            # What was recommended before it led is not known to it; what it finds holds for the five minutes.
            assert await stage.replicas() == 4

    play(first)


def test_events_tell_what_was_done() -> None:
    async def story(stage: Stage) -> None:
        stage.load = 2.0
        await stage.make(1)
        await asyncio.sleep(200)
        events = msgspec.json.decode(await _events(stage))["items"]
        told = {(one["type"], one["reason"], one.get("note", "")) for one in events if one["regarding"]["kind"].startswith("Hor")}
        words = "cpu resource utilization (percentage of request) above target"
        assert ("Normal", "SuccessfulRescale", f"New size: 4; reason: {words}") in told

    play(story)


async def _events(stage: Stage) -> bytes:
    return (await stage.person.transport.send(Call("GET", "/apis/events.k8s.io/v1/namespaces/default/events"))).body
