"""One text for Prometheus from those of several processes."""

from collections import Counter as Count

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from herder.kit.process_metrics import measure_process
from herder.server.exposition import merge

NASTY = 'a{b="c"} 1\n# HELP x y\n# TYPE x gauge\nx{} \\"'


def text(queue: str = "pods", *, own: str = "") -> bytes:
    """As a process says it, with a family that only it has."""
    registry = CollectorRegistry()
    measure_process(registry)
    Counter("workqueue_adds", "Keys that were added.", ["name"], registry=registry).labels(queue).inc(3)
    Histogram("seconds", "How long.", registry=registry, buckets=(1, 2)).observe(1.5)
    Gauge("waiting", "Without a label.", registry=registry).set(7)
    if own:
        Gauge(own, "Nobody else's.", ["resource"], registry=registry).labels("pods").set(1)
    return generate_latest(registry)


def read(merged: bytes) -> dict[str, Metric]:
    """Checks what Prometheus would stumble over."""
    decoded = merged.decode()
    heads = Count(line for line in decoded.splitlines() if line.startswith("# TYPE"))
    assert heads and set(heads.values()) == {1}, "a family is there once"
    families = list(text_string_to_metric_families(decoded))
    series = Count((one.name, *sorted(one.labels.items())) for family in families for one in family.samples)
    assert set(series.values()) == {1}, [name for name, count in series.items() if count > 1]
    assert len({family.name for family in families}) == len(families)
    return {family.name: family for family in families}


def values(family: Metric, suffix: str = "") -> dict[str | None, float]:
    return {one.labels.get("process"): one.value for one in family.samples if one.name == family.name + suffix}


def test_families_that_several_have_are_named_once_and_their_series_say_whose_they_are() -> None:
    families = read(merge({"engine": text(own="herder_store"), "controllers": text(), "agents": text()}))
    assert values(families["workqueue_adds"], "_total") == {None: 3, "controllers": 3, "agents": 3}
    assert families["workqueue_adds"].type == "counter"
    assert families["workqueue_adds"].documentation == "Keys that were added."
    assert values(families["seconds"], "_count") == {None: 1, "controllers": 1, "agents": 1}
    assert values(families["waiting"]) == {None: 7, "controllers": 7, "agents": 7}
    assert set(values(families["process_start_time_seconds"])) == {"engine", "controllers", "agents"}
    assert set(values(families["python_info"])) == {"engine", "controllers", "agents"}
    assert values(families["herder_process_up"]) == {"engine": 1, "controllers": 1, "agents": 1}
    assert [one.labels for one in families["herder_store"].samples] == [{"resource": "pods"}], (
        "what only the engine has stays as it is"
    )


def test_the_labels_of_a_series_do_not_depend_on_who_answered() -> None:
    alone = read(merge({"engine": text(), "controllers": None, "agents": text()}))
    assert values(alone["herder_process_up"]) == {"engine": 1, "controllers": 0, "agents": 1}
    assert values(alone["waiting"]) == {None: 7, "agents": 7}
    assert set(values(alone["process_open_fds"])) == {"engine", "agents"}
    assert set(values(read(merge({"engine": text()}))["process_open_fds"])) == {"engine"}


def test_values_of_labels_may_be_anything() -> None:
    families = read(merge({"engine": text(), "controllers": text(NASTY)}))
    (theirs,) = [one for one in families["workqueue_adds"].samples if "process" in one.labels and one.name.endswith("_total")]
    assert (theirs.labels, theirs.value) == ({"name": NASTY, "process": "controllers"}, 3)
    assert "x" not in families


@pytest.mark.parametrize(
    "strange", [b"", b"<html>not found</html>\n", b"x 1\n" + text(), text()[:-1]], ids=["empty", "html", "headless", "cut"]
)
def test_a_process_that_says_something_else_is_not_up_and_the_others_are_shown(strange: bytes) -> None:
    families = read(merge({"engine": text(), "controllers": strange, "agents": text()}))
    assert values(families["herder_process_up"]) == {"engine": 1, "controllers": 0, "agents": 1}
    assert values(families["waiting"]) == {None: 7, "agents": 7}
