"""What a simulated guest and a plain pod use, by what their annotations say."""

import asyncio
from typing import Any

import msgspec
import pytest

from herder.api import labels
from herder.api.core import Pod
from herder.api.guest import GuestDefinition
from herder.nodes.plain import PlainPods
from herder.nodes.runtimes.base import Order, Refused
from herder.nodes.runtimes.simulated import SimulatedRuntime
from herder.nodes.runtimes.simulated.load import MOST_POINTS, read_cpu, read_memory
from herder.nodes.runtimes.simulated.settings import settings_of


class Clock:
    """Seconds since the epoch, as the test sets them."""

    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time


def test_an_amount_stays_and_adds_up() -> None:
    curve = read_cpu("500m")
    assert [curve.at(seconds) for seconds in (0, 7, 1e6)] == [0.5, 0.5, 0.5]
    assert [curve.until(seconds) for seconds in (-1, 0, 10)] == [0, 0, 5]


def test_a_curve_goes_from_each_amount_to_the_next_evenly() -> None:
    curve = read_cpu("0s=100m,60s=900m,120s=100m")
    assert [round(curve.at(seconds), 6) for seconds in (0, 30, 60, 90, 120, 500)] == [0.1, 0.5, 0.9, 0.5, 0.1, 0.1]
    assert [round(curve.until(seconds), 6) for seconds in (30, 60, 120, 220)] == [9, 30, 60, 70]


def test_two_amounts_of_one_time_are_a_jump() -> None:
    curve = read_cpu("10s=1,10s=3")
    assert [curve.at(seconds) for seconds in (0, 9.9, 10, 20)] == [1, 1, 3, 3]
    assert [curve.until(seconds) for seconds in (10, 11)] == [10, 13]


def test_memory_is_in_bytes() -> None:
    assert read_memory("0s=64Mi,1m=128Mi").at(30) == 96 << 20


@pytest.mark.parametrize(
    "text",
    [
        "",
        "much",
        "-1",
        "0s=",
        "=1",
        "60s=1,0s=1",
        "0s=1;60s=2",
        "-1s=1",
        "0s=1,",
        "1e30",
        "10001",
        ",".join(["0s=1"] * (MOST_POINTS + 1)),
    ],
)
def test_what_cannot_be_read_is_refused_by_a_sentence_that_names_it(text: str) -> None:
    with pytest.raises(
        Refused, match=r"annotation simulated\.herder\.dev/cpu: .* cannot be read; write for example 500m, or amounts by time"
    ):
        settings_of({"cpu": text})


def pod(annotations: dict[str, str]) -> Pod:
    metadata = {"name": "web", "namespace": "shop", "uid": "web-uid", "annotations": annotations}
    return msgspec.convert({"metadata": metadata, "spec": {"containers": [{"name": "app", "image": "app"}]}}, Pod)


async def test_a_plain_pod_uses_what_its_annotations_say() -> None:
    clock: Any = Clock()
    pods = PlainPods(clock)
    await pods.start(pod({labels.SIMULATED + "cpu": "0s=0,10s=2", labels.SIMULATED + "memory": "1Gi"}))
    clock.time += 10
    usage = pods.usage("web-uid")
    assert usage is not None
    assert (usage.cpu_seconds, usage.memory_bytes) == (10, 1 << 30)
    await pods.shut_down("web-uid")
    assert pods.usage("web-uid") is None


async def test_a_plain_pod_whose_load_cannot_be_read_does_not_start_but_goes_on() -> None:
    clock: Any = Clock()
    pods = PlainPods(clock)
    wrong = pod({labels.SIMULATED + "memory": "lots"})
    with pytest.raises(Refused, match=r"simulated\.herder\.dev/memory: 'lots' cannot be read"):
        await pods.start(wrong)
    assert pods.usage("web-uid") is None
    await pods.adopt(wrong)
    assert pods.usage("web-uid") is not None


def guest(uid: str, **simulated: str) -> Order:
    document = {
        "instance": {"namespace": "shop", "name": "web", "uid": "vmi"},
        "spec": {"domain": {}},
        "simulated": {"boot": "0", **simulated},
    }
    return Order(uid, msgspec.convert(document, GuestDefinition), {})


async def test_a_guest_uses_nothing_before_it_runs_nor_while_it_stands_still() -> None:
    clock: Any = Clock()
    runtime = SimulatedRuntime("node-1", clock)
    await runtime.start(guest("one", cpu="1000", memory="2Mi"))
    assert runtime.usage("one") is None
    await asyncio.sleep(0.05)
    await runtime.pause("one")
    first = runtime.usage("one")
    assert first is not None and first.cpu_seconds > 0 and first.memory_bytes == 2 << 20
    await asyncio.sleep(0.05)
    assert runtime.usage("one") == first
    await runtime.remove("one")
    assert runtime.usage("one") is None
