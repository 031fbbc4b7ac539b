"""Our decisions about autoscalers against those of Kubernetes' own controller, on series that chance has made.

Everything is compared: the numbers, the conditions with their reasons and words, what is measured, and what is told by events.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.examples import examples
from tests.unit.api.oracle import Oracle, running_oracle

from .series import made_series, played

Document = dict[str, Any]
SERIES = 2000
# Kubernetes' recorder leaves events out of longer series, and tells several that are alike as one.
LONGEST_WITH_EVENTS = 3
# Kubernetes looks at the pods in no order: which of several is named is chance.
NAMED = re.compile(r"in (container c\d of )?Pod web-\d|in container side of Pod web-\d")


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    yield from running_oracle("oracle/autoscaling", slow_to_build=True)


def plain(words: str) -> str:
    return NAMED.sub("in a pod", words)


def comparable(answers: list[Document]) -> list[Document]:
    told: set[str] = set()
    return [_comparable(one, told, len(answers) <= LONGEST_WITH_EVENTS) for one in answers]


def _comparable(answer: Document, told: set[str], with_events: bool) -> Document:
    status = answer["status"]
    conditions = {one["type"]: (one["status"], one["reason"], plain(one["message"])) for one in status.get("conditions") or ()}
    # Only what is told for the first time.
    news = sorted({plain(event) for event in answer["events"]} - told)
    told.update(news)
    return {
        "replicas": answer["replicas"],
        "current": status.get("currentReplicas", 0),
        "desired": status["desiredReplicas"],
        "metrics": status.get("currentMetrics") or [],
        "scaled at": status.get("lastScaleTime"),
        "conditions": conditions,
        "events": news if with_events else [],
    }


def test_series_of_looks_end_as_kubernetes_own_controller_ends_them(oracle: Oracle) -> None:
    seeds = range(examples(SERIES))
    series = [made_series(seed) for seed in seeds]
    reasons: Counter[str] = Counter()
    for seed, one, said in zip(seeds, series, oracle.ask(series), strict=True):
        ours, theirs = comparable(played(one)), comparable(said["looks"])
        for number, (our, their) in enumerate(zip(ours, theirs, strict=True)):
            assert our == their, f"seed {seed}, look {number}"
            reasons.update(reason for _, reason, _ in our["conditions"].values())
    # That chance has not left out what matters.
    assert len(reasons) >= 15, reasons
