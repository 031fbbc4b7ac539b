"""The tables of the other built-in kinds (each row was seen in a real kube-apiserver's table)."""

from __future__ import annotations

from typing import Any

import pytest

from herder.server.builtins import BUILTINS
from herder.server.resources import Resource
from herder.server.tables import Printer, printer_for
from herder.server.tables.ages import seconds_of

NOW = seconds_of("2026-01-02T03:00:00Z")
SELECTOR = {"matchLabels": {"app": "w"}}
TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "img:1"}, {"name": "d", "image": "img:2"}]}}


def printer(name: str) -> Printer:
    return printer_for(next(resource for resource in BUILTINS if resource.qualified == name))


def meta(**more: Any) -> dict[str, Any]:
    return {"name": "x", "creationTimestamp": "2026-01-02T02:59:15Z", **more}


def ago(seconds: int) -> str:
    minutes, rest = divmod(3 * 3600 - seconds, 60)
    return f"2026-01-02T{minutes // 60:02}:{minutes % 60:02}:{rest:02}Z"


ROWS: list[tuple[str, dict[str, Any], list[Any]]] = [
    ("namespaces", {"status": {"phase": "Active"}}, ["x", "Active", "45s"]),
    ("serviceaccounts", {}, ["x", "45s"]),
    ("configmaps", {"data": {"a": "b"}, "binaryData": {"c": "AA=="}}, ["x", 2, "45s"]),
    ("secrets", {"type": "Opaque", "data": {"a": "AA=="}}, ["x", "Opaque", 1, "45s"]),
    (
        "nodes",
        {
            "metadata": meta(
                labels={"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/b": "", "kubernetes.io/role": "old"}
            ),
            "spec": {"unschedulable": True},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "nodeInfo": {
                    "kubeletVersion": "v1.2",
                    "osImage": "Deb",
                    "kernelVersion": "6.1",
                    "architecture": "amd64",
                    "containerRuntimeVersion": "x://1",
                },
                "addresses": [{"type": "InternalIP", "address": "1.2.3.4"}, {"type": "ExternalIP", "address": "4.3.2.1"}],
            },
        },
        ["x", "Ready,SchedulingDisabled", "b,old,worker", "45s", "v1.2", "1.2.3.4", "4.3.2.1", "Deb", "6.1 (amd64)", "x://1"],
    ),
    (
        "nodes",
        {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}},
        ["x", "NotReady", "<none>", "45s", "", "<none>", "<none>", "<unknown>", "<unknown>", "<unknown>"],
    ),
    ("nodes", {}, ["x", "Unknown", "<none>", "45s", "", "<none>", "<none>", "<unknown>", "<unknown>", "<unknown>"]),
    (
        "events",
        {
            "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec.x"},
            "reason": "R",
            "message": " hello \n",
            "type": "Normal",
            "firstTimestamp": ago(4000),
            "lastTimestamp": ago(130),
            "count": 7,
            "source": {"component": "k", "host": "h"},
        },
        ["2m10s", "Normal", "R", "pod/p", "spec.x", "k, h", "hello", "66m", 7, "x"],
    ),
    (
        "events",
        {"involvedObject": {"kind": "Pod"}, "reason": "R", "message": "m", "type": "Warning", "source": {"component": "k"}},
        ["<unknown>", "Warning", "R", "pod", "", "k", "m", "<unknown>", 1, "x"],
    ),
    (
        "events.events.k8s.io",
        {
            "regarding": {"kind": "Pod", "name": "q"},
            "reason": "R",
            "note": "n",
            "type": "Normal",
            "eventTime": ago(200),
            "reportingController": "a/b",
            "reportingInstance": "inst",
            "series": {"count": 9, "lastObservedTime": ago(61)},
        },
        ["61s", "Normal", "R", "pod/q", "", "a/b, inst", "n", "3m20s", 9, "x"],
    ),
    (
        "persistentvolumeclaims",
        {
            "spec": {"volumeName": "v1", "storageClassName": "fast", "volumeMode": "Filesystem"},
            "status": {"phase": "Bound", "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce"]},
        },
        ["x", "Bound", "v1", "2Gi", "RWO,RWX", "fast", "<unset>", "45s", "Filesystem"],
    ),
    (
        "persistentvolumeclaims",
        {"spec": {"accessModes": ["ReadWriteOnce"]}, "status": {"phase": "Pending"}},
        ["x", "Pending", "", "", "", "", "<unset>", "45s", "<unset>"],
    ),
    (
        "persistentvolumes",
        {
            "metadata": meta(deletionTimestamp=ago(1)),
            "spec": {
                "accessModes": ["ReadWriteOncePod"],
                "capacity": {"storage": "1Gi"},
                "claimRef": {"namespace": "default", "name": "c1"},
                "storageClassName": "fast",
                "persistentVolumeReclaimPolicy": "Retain",
                "volumeMode": "Filesystem",
            },
            "status": {"phase": "Bound", "reason": "why"},
        },
        ["x", "1Gi", "RWOP", "Retain", "Terminating", "default/c1", "fast", "<unset>", "why", "45s", "Filesystem"],
    ),
    (
        "storageclasses.storage.k8s.io",
        {"metadata": meta(annotations={"storageclass.kubernetes.io/is-default-class": "true"}), "provisioner": "p"},
        ["x (default)", "p", "Delete", "Immediate", False, "45s"],
    ),
    (
        "deployments.apps",
        {
            "spec": {
                "replicas": 3,
                "selector": {
                    "matchLabels": {"app": "w"},
                    "matchExpressions": [
                        {"key": "z", "operator": "NotIn", "values": ["b", "a"]},
                        {"key": "aa", "operator": "DoesNotExist"},
                    ],
                },
                "template": TEMPLATE,
            },
            "status": {"readyReplicas": 2, "updatedReplicas": 1, "availableReplicas": 1},
        },
        ["x", "2/3", 1, 1, "45s", "c,d", "img:1,img:2", "!aa,app=w,z notin (a,b)"],
    ),
    (
        "replicasets.apps",
        {"spec": {"replicas": 3, "selector": SELECTOR, "template": TEMPLATE}, "status": {"replicas": 2, "readyReplicas": 1}},
        ["x", 3, 2, 1, "45s", "c,d", "img:1,img:2", "app=w"],
    ),
    (
        "statefulsets.apps",
        {"spec": {"replicas": 1, "template": TEMPLATE}, "status": {"readyReplicas": 1}},
        ["x", "1/1", "45s", "c,d", "img:1,img:2"],
    ),
    (
        "daemonsets.apps",
        {
            "spec": {"selector": {"matchLabels": {"app": "w"}}, "template": TEMPLATE},
            "status": {"desiredNumberScheduled": 3, "currentNumberScheduled": 2, "numberReady": 1, "updatedNumberScheduled": 2},
        },
        ["x", 3, 2, 1, 2, 0, "<none>", "45s", "c,d", "img:1,img:2", "app=w"],
    ),
    (
        "jobs.batch",
        {"spec": {"completions": 2, "template": TEMPLATE}, "status": {"succeeded": 1}},
        ["x", "Running", "1/2", "", "45s", "c,d", "img:1,img:2", "<none>"],
    ),
    (
        "jobs.batch",
        {"spec": {"parallelism": 3, "template": TEMPLATE}, "status": {"conditions": [{"type": "Failed", "status": "True"}]}},
        ["x", "Failed", "0/1 of 3", "", "45s", "c,d", "img:1,img:2", "<none>"],
    ),
    (
        "cronjobs.batch",
        {"spec": {"schedule": "@daily", "suspend": False, "jobTemplate": {"spec": {"template": TEMPLATE}}}},
        ["x", "@daily", "<none>", "False", 0, "<none>", "45s", "c,d", "img:1,img:2", "<none>"],
    ),
    (
        "controllerrevisions.apps",
        {
            "metadata": meta(ownerReferences=[{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "r", "controller": True}]),
            "revision": 5,
        },
        ["x", "statefulset.apps/r", 5, "45s"],
    ),
    ("controllerrevisions.apps", {"revision": 1}, ["x", "<none>", 1, "45s"]),
    (
        "poddisruptionbudgets.policy",
        {"spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 2}},
        ["x", "50%", "N/A", 2, "45s"],
    ),
    ("poddisruptionbudgets.policy", {"spec": {"maxUnavailable": 0}}, ["x", "N/A", "0", 0, "45s"]),
    (
        "priorityclasses.scheduling.k8s.io",
        {"value": 7, "preemptionPolicy": "Never"},
        ["x", 7, False, "45s", "Never"],
    ),
    ("leases.coordination.k8s.io", {"spec": {"holderIdentity": "me"}}, ["x", "me", "45s"]),
    ("leases.coordination.k8s.io", {"spec": {}}, ["x", "", "45s"]),
    ("roles.rbac.authorization.k8s.io", {}, ["x", "2026-01-02T02:59:15Z"]),
    ("customresourcedefinitions.apiextensions.k8s.io", {}, ["x", "2026-01-02T02:59:15Z"]),
    (
        "rolebindings.rbac.authorization.k8s.io",
        {
            "roleRef": {"kind": "Role", "name": "r"},
            "subjects": [
                {"kind": "User", "name": "u1"},
                {"kind": "User", "name": "u2"},
                {"kind": "Group", "name": "g"},
                {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
            ],
        },
        ["x", "Role/r", "45s", "u1, u2", "g", "n/s"],
    ),
]


@pytest.mark.parametrize(("name", "obj", "cells"), ROWS, ids=[f"{row[0]}-{position}" for position, row in enumerate(ROWS)])
def test_a_row_reads_as_in_kubernetes(name: str, obj: dict[str, Any], cells: list[Any]) -> None:
    shown = printer(name).cells({"metadata": meta(), **obj}, NOW)
    assert shown == cells
    assert [type(cell) for cell in shown] == [type(cell) for cell in cells]


@pytest.mark.parametrize("resource", BUILTINS, ids=lambda resource: resource.qualified)
def test_every_table_has_a_cell_for_every_column_even_of_an_empty_object(resource: Resource) -> None:
    shown = printer_for(resource)
    assert len(shown.cells({"metadata": {}}, NOW)) == len(shown.columns)
    assert sum(column.format == "name" for column in shown.columns) == 1
    assert all(column.description for column in shown.columns)


def test_roles_show_when_they_were_created_and_not_their_age() -> None:
    columns = printer("clusterroles.rbac.authorization.k8s.io").columns
    assert [(column.name, column.type) for column in columns] == [("Name", "string"), ("Created At", "date")]
