"""What `herder pool plan`, `status` and `preserved` say of machines that are suspended, sleep, or left their memory."""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api import labels
from herder.api.core import PersistentVolumeClaim
from herder.rules.pools.explain import PlanStep, explain_plan, pool_report
from herder.rules.pools.preservation import kept_volumes, preserved_report

from . import objects
from .test_online_preservation import CAN, ONLINE, SAVED, SAVING, asleep
from .test_standby import asleep as sleeper
from .test_standby import stopped
from .things import NOW, A, member, name_of, pool, snapshot, volume


def steps(of: Any, *members: Any, **more: Any) -> list[tuple[str, str, str]]:
    found: tuple[PlanStep, ...] = explain_plan(snapshot(of, *members, nodes=CAN, **more), NOW).steps
    return [(one.action, one.name, one.why) for one in found]


def test_a_plan_says_whose_memory_is_saved_and_who_goes_with_it() -> None:
    assert steps(pool(1, **ONLINE), member(1), member(2, scale_in="first")) == [
        ("Suspend", "web-2", "beyond 1 replica; its memory is saved, then it is deleted")
    ]
    assert steps(pool(1, **ONLINE), member(1), asleep(2)) == [
        ("Delete", "web-2", "beyond 1 replica; its volumes and its memory are kept")
    ]
    assert steps(pool(2, **ONLINE), member(1), member(2, suspension=SAVING)) == [("Resume", "web-2", "not taken after all")]
    memory = volume("web-2", revision=name_of(A), memory=True)
    assert steps(pool(2, **ONLINE), member(1), volumes=(memory,)) == [
        ("Create", "web-2", "goes on from the memory that was kept of it")
    ]


def test_a_plan_says_which_standbys_are_put_to_work_made_and_given_up() -> None:
    grown = pool(2, A, {"currentRevision": name_of(A)}, standby={"replicas": 1})
    assert steps(grown, member(1), stopped(2)) == [("Activate", "web-2", "a standby, for a scale-out")]
    assert steps(grown, member(1), member(2)) == [("Create", "web-3", "a standby")]
    assert steps(pool(1), member(1), stopped(2)) == [("Delete", "web-2", "a standby too many; its volumes go with it")]
    online = pool(1, A, {"currentRevision": name_of(A)}, standby={"replicas": 1, "state": "Online"})
    assert steps(online, member(1), member(2, standby="Online")) == [("Suspend", "web-2", "a standby that is to sleep")]


def test_each_machine_says_how_it_sleeps() -> None:
    status = {"updateRevision": name_of(A), "standbyReplicas": 3, "readyStandbyReplicas": 2}
    booted = member(4, standby="Online", ready=False, running=False)
    members = [asleep(1, SAVED), stopped(2), sleeper(3), booted]
    report = pool_report(pool(1, A, status), {}, members)
    assert (report.standby, report.ready_standby, report.suspended) == (3, 2, 1)
    assert [row.why for row in report.machines] == [
        "it is suspended",
        "on standby, stopped",
        "on standby, suspended",
        "on standby, not yet: it is booted, to be saved",
    ]


def test_what_is_kept_of_a_machine_is_its_disks_and_its_memory() -> None:
    kept = {**objects.OWNER, "controller": False}
    marks = {labels.MACHINE_NAME: "web-1"}
    metadata: dict[str, Any] = {"name": "web-1-memory", "namespace": "shop", "uid": "c", "ownerReferences": [kept], "labels": marks}
    claim = msgspec.convert({"metadata": metadata, "spec": {}}, PersistentVolumeClaim)
    disk = objects.volume("disk-1", "web-1")
    found = kept_volumes(objects.pool(), [disk, claim])
    (row,) = preserved_report(objects.pool(), found).machines
    assert (row.name, row.volumes, row.memory) == ("web-1", ("disk-1", "web-1-memory"), True)
