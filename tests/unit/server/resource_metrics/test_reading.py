"""What a node may say of what it uses, and what is made of the rest of its words."""

from collections.abc import Collection

import pytest

from herder.server.resource_metrics.reading import LONGEST_LINE, ContainerName, NodeReading, ResourceMetricsReader, Unreadable

WEB = ContainerName("shop", "web", "compute")
END = "resource_scrape_error 0\n"
WHOLE = (
    """# HELP container_cpu_usage_seconds_total words
# TYPE container_cpu_usage_seconds_total counter
container_cpu_usage_seconds_total{container="compute",namespace="shop",pod="web"} 12.5 1750000000123
container_memory_working_set_bytes{container="compute",namespace="shop",pod="web"} 6.7108864e+07 1750000000123
container_start_time_seconds{container="compute",namespace="shop",pod="web"} 1.74999e+09
node_cpu_usage_seconds_total 100 1750000000123
node_memory_working_set_bytes 2048 1750000000123
pod_cpu_usage_seconds_total{namespace="shop",pod="web"} 12.5 1750000000123
"""
    + END
)


def containers_of(namespace: str, pod: str) -> Collection[str] | None:
    return ("compute",) if (namespace, pod) == ("shop", "web") else None


def read(text: str, pieces: int = 1 << 20) -> NodeReading:
    reader, raw = ResourceMetricsReader(containers_of), text.encode()
    for start in range(0, len(raw), pieces):
        reader.feed(raw[start : start + pieces])
    return reader.end()


@pytest.mark.parametrize("pieces", [1, 7, 1 << 20])
def test_what_a_kubelet_says_is_read_however_it_comes(pieces: int) -> None:
    said = read(WHOLE, pieces)
    web = said.containers[WEB]
    assert (web.cpu_seconds, web.memory_bytes, web.started_at, web.at) == (12.5, 64 << 20, 1.74999e9, 1750000000.123)
    assert (said.node.cpu_seconds, said.node.memory_bytes) == (100, 2048)


def test_the_order_of_labels_does_not_matter() -> None:
    assert list(read('container_cpu_usage_seconds_total{pod="web",container="compute",namespace="shop"} 1\n' + END).containers) == [
        WEB
    ]


@pytest.mark.parametrize(
    "labels",
    [
        'container="compute",namespace="shop",pod="other"',
        'container="compute",namespace="bank",pod="web"',
        'container="another",namespace="shop",pod="web"',
        'namespace="shop",pod="web"',
        "",
    ],
)
def test_of_pods_and_containers_that_it_has_not_nothing_is_heard(labels: str) -> None:
    assert read(f"container_cpu_usage_seconds_total{{{labels}}} 1\n" + END).containers == {}


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1", "1e400", "1e13", "", "x", "1 2 3", "1 99999999999999999999"])
def test_numbers_that_cannot_be_are_not_taken(value: str) -> None:
    assert read(f"node_cpu_usage_seconds_total {value}\n" + END).node.cpu_seconds is None


@pytest.mark.parametrize("text", ["", WHOLE.removesuffix(END), WHOLE.replace("error 0", "error 1"), WHOLE[:-1]])
def test_an_answer_without_its_end_counts_for_nothing(text: str) -> None:
    with pytest.raises(Unreadable, match="the answer has no end"):
        read(text)


@pytest.mark.parametrize("text", ["x" * (LONGEST_LINE + 1), "x" * (LONGEST_LINE + 1) + "\n"])
def test_a_line_has_a_length(text: str) -> None:
    with pytest.raises(Unreadable, match=f"longer than {LONGEST_LINE} bytes"):
        read(text)
