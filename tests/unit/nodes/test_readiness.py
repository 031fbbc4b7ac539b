"""When a plain pod is ready: not before its probes have been asked."""

from typing import Any

import msgspec
import pytest

from herder.api.core import Pod
from herder.nodes.health import HEALTHY
from herder.nodes.pod_status import differs, pod_status
from herder.nodes.readiness import plain_health
from herder.nodes.runtimes.base import GuestStatus
from tests.unit.rules.machines import NOW

Json = dict[str, Any]
RUNNING = GuestStatus("Running", started_at=NOW)


def pod(*containers: Json, status: Json | None = None, **spec: Any) -> Pod:
    named = [{"name": f"c{number}", "image": "app", **one} for number, one in enumerate(containers)]
    metadata = {"name": "p", "namespace": "shop", "uid": "u"}
    return msgspec.convert({"metadata": metadata, "spec": {"containers": named, **spec}, "status": status or {}}, Pod)


def probe(**values: int) -> Json:
    return {"tcpSocket": {"port": 80}, **values}


@pytest.mark.parametrize(
    ("container", "seconds"),
    [
        ({"readinessProbe": probe()}, 0),
        ({"readinessProbe": probe(initialDelaySeconds=30)}, 30),
        ({"readinessProbe": probe(initialDelaySeconds=30, successThreshold=3, periodSeconds=5)}, 40),
        ({"startupProbe": probe(initialDelaySeconds=20)}, 20),
        ({"startupProbe": probe(initialDelaySeconds=20), "readinessProbe": probe(initialDelaySeconds=5)}, 20),
        ({"startupProbe": probe(initialDelaySeconds=20), "readinessProbe": probe(initialDelaySeconds=50)}, 50),
        ({"livenessProbe": probe(initialDelaySeconds=50)}, 0),
    ],
)
def test_it_is_ready_when_its_probes_have_been_asked_often_enough(container: Json, seconds: int) -> None:
    asked = pod(container)
    assert plain_health(asked, RUNNING, NOW + seconds).ready
    assert plain_health(asked, None, NOW).ready is (seconds == 0), "at its start"
    if seconds:
        before = plain_health(asked, RUNNING, NOW + seconds - 1)
        assert not before.ready
        assert before.next_look == 1


def test_each_container_tells_for_itself() -> None:
    slow = {"startupProbe": probe(initialDelaySeconds=10), "readinessProbe": probe(initialDelaySeconds=20)}
    asked = pod({}, slow)
    shown = [pod_status(asked, RUNNING, "", NOW + later, plain_health(asked, RUNNING, NOW + later)) for later in (0, 10, 20)]
    told = [[(one["started"], one["ready"]) for one in status["containerStatuses"]] for status in shown]
    assert told == [[(True, True), (False, False)], [(True, True), (True, False)], [(True, True), (True, True)]]
    assert differs(shown[0], shown[1])
    ready = [next(one for one in status["conditions"] if one["type"] == "Ready") for status in shown]
    assert [one["status"] for one in ready] == ["False", "False", "True"]
    assert (ready[0]["reason"], ready[0]["message"]) == ("ContainersNotReady", "containers with unready status: [c1]")


def test_a_sidecar_counts_and_other_init_containers_do_not() -> None:
    first = {"name": "first", "image": "app", "readinessProbe": probe(initialDelaySeconds=9)}
    assert plain_health(pod({}, initContainers=[first]), RUNNING, NOW) == HEALTHY
    assert not plain_health(pod({}, initContainers=[{**first, "restartPolicy": "Always"}]), RUNNING, NOW).ready


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ([], 'corresponding condition of pod readiness gate "lb.example.com/in" does not exist.'),
        (["False"], 'the status of pod readiness gate "lb.example.com/in" is not "True", but False'),
        (["True"], None),
    ],
)
def test_a_readiness_gate_is_waited_for(conditions: list[str], message: str | None) -> None:
    told = [{"type": "lb.example.com/in", "status": one} for one in conditions]
    asked = pod({}, status={"conditions": told}, readinessGates=[{"conditionType": "lb.example.com/in"}])
    shown = {one["type"]: one for one in pod_status(asked, RUNNING, "", NOW)["conditions"]}
    assert shown["ContainersReady"]["status"] == "True"
    assert shown["Ready"]["status"] == ("False" if message else "True")
    assert shown["Ready"].get("message") == message
