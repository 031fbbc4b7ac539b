"""DaemonSets, Jobs and CronJobs are checked and completed as by a real API server. That nobody runs them here is said."""

from typing import Any

import pytest

from tests.behaviour.manifests import template, workload
from tests.engines.api import Api, Json
from tests.engines.resources import CRON_JOBS, DAEMON_SETS, DEPLOYMENTS, JOBS, STATEFUL_SETS, Resource

LABELS = {"app": "x"}
UID = "batch.kubernetes.io/controller-uid"
GENERATION = "deprecated.daemonset.template.generation"


def daemon_set(**spec: Any) -> Json:
    pods = template(LABELS, nodeSelector={"no": "where"})
    return {"metadata": {"name": "x"}, "spec": {"selector": {"matchLabels": LABELS}, "template": pods, **spec}}


def job(**spec: Any) -> Json:
    return {"metadata": {"name": "x"}, "spec": {"suspend": True, "template": template(LABELS, restartPolicy="Never"), **spec}}


def cron_job(schedule: str = "*/5 * * * *", **spec: Any) -> Json:
    work = {"spec": {"template": template(LABELS, restartPolicy="Never")}}
    return {"metadata": {"name": "x"}, "spec": {"suspend": True, "schedule": schedule, "jobTemplate": work, **spec}}


async def test_a_daemon_set_is_completed(api: Api, namespace: str) -> None:
    made = (await api.create(DAEMON_SETS, daemon_set(), namespace)).ok
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    assert made["spec"]["updateStrategy"] == rolling
    assert made["spec"]["revisionHistoryLimit"] == 10
    assert made["metadata"]["annotations"] == {GENERATION: "1"}
    assert made["metadata"]["generation"] == 1
    none = {"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0}
    assert made["status"] == none
    changed = (await api.patch(DAEMON_SETS, "x", {"spec": {"minReadySeconds": 3}}, namespace)).ok
    assert (changed["metadata"]["generation"], changed["metadata"]["annotations"][GENERATION]) == (2, "1")
    patch = {"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}}
    changed = (await api.patch(DAEMON_SETS, "x", patch, namespace)).ok
    assert (changed["metadata"]["generation"], changed["metadata"]["annotations"][GENERATION]) == (3, "2")


async def test_a_job_is_completed_and_selects_its_own_pods(api: Api, namespace: str) -> None:
    made = (await api.create(JOBS, job(), namespace)).ok
    uid, spec = made["metadata"]["uid"], made["spec"]
    assert spec["selector"] == {"matchLabels": {UID: uid}}
    names = {"job-name": "x", "batch.kubernetes.io/job-name": "x"}
    assert spec["template"]["metadata"]["labels"] == {**LABELS, "controller-uid": uid, UID: uid, **names}
    assert made["metadata"]["generation"] == 1
    filled = {name: spec[name] for name in ("parallelism", "completions", "backoffLimit", "completionMode", "manualSelector")}
    assert filled == {
        "parallelism": 1,
        "completions": 1,
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "manualSelector": False,
    }
    assert spec["podReplacementPolicy"] == "TerminatingOrFailed"


async def test_a_cron_job_is_completed(api: Api, namespace: str) -> None:
    made = (await api.create(CRON_JOBS, cron_job(), namespace)).ok
    filled = {name: made["spec"][name] for name in ("concurrencyPolicy", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")}
    assert filled == {"concurrencyPolicy": "Allow", "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1}
    assert made["spec"]["jobTemplate"]["spec"]["template"]["spec"]["dnsPolicy"] == "ClusterFirst"
    assert (made["metadata"]["generation"], made["status"]) == (1, {})


SCHEDULES: dict[str, bool] = {
    **dict.fromkeys(
        ("0 0 1 1 0", "*/15 8-18 * * mon-fri", "1,2,30-40/5 * ? JAN *", "@daily", "@every 1h30m", "0 0 * * 6", "1, * * * *"), True
    ),
    **dict.fromkeys(
        ("* * * *", "60 * * * *", "* * 0 * *", "* * * 13 *", "*/0 * * * *", "5-1 * * * *", "x * * * *", "@never"), False
    ),
    **dict.fromkeys(("* * * * * *", "* * * * 7", "TZ=UTC * * * * *", "@every x"), False),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
async def test_a_schedule_is_one_that_cron_understands(api: Api, namespace: str, schedule: str) -> None:
    reply = await api.create(CRON_JOBS, cron_job(schedule), namespace)
    if SCHEDULES[schedule]:
        assert reply.code == 201, reply.body
    else:
        assert {field for _, field in reply.causes} == {"spec.schedule"}


WRONG: list[tuple[Resource, Json, list[str]]] = [
    (DAEMON_SETS, {"selector": {"matchLabels": {"app": "y"}}}, ["spec.template.metadata.labels"]),
    (DAEMON_SETS, {"selector": {}}, ["spec.selector"]),
    (DAEMON_SETS, {"minReadySeconds": -1}, ["spec.minReadySeconds"]),
    (DAEMON_SETS, {"updateStrategy": {"rollingUpdate": {"maxSurge": 1}}}, ["spec.updateStrategy.rollingUpdate.maxSurge"]),
    (
        DAEMON_SETS,
        {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}},
        ["spec.updateStrategy.rollingUpdate.maxUnavailable"],
    ),
    (DAEMON_SETS, {"template": template(LABELS, restartPolicy="Never")}, ["spec.template.spec.restartPolicy"]),
    (JOBS, {"parallelism": -1, "backoffLimit": -1}, ["spec.parallelism", "spec.backoffLimit"]),
    (JOBS, {"template": template(LABELS)}, ["spec.template.spec.restartPolicy"]),
    (JOBS, {"completionMode": "Indexed", "parallelism": 1}, ["spec.completions"]),
    (JOBS, {"backoffLimitPerIndex": 1}, ["spec.backoffLimitPerIndex"]),
    (CRON_JOBS, {"schedule": ""}, ["spec.schedule"]),
    (CRON_JOBS, {"concurrencyPolicy": "Sometimes"}, ["spec.concurrencyPolicy"]),
    (CRON_JOBS, {"timeZone": "../x"}, ["spec.timeZone"]),
    (CRON_JOBS, {"jobTemplate": {"spec": {"template": template(LABELS)}}}, ["spec.jobTemplate.spec.template.spec.restartPolicy"]),
    (JOBS, {"manualSelector": True}, ["spec.selector", "spec.template.metadata.labels"]),
]


MAKE = {DAEMON_SETS: daemon_set, JOBS: job, CRON_JOBS: cron_job}


@pytest.mark.parametrize(("resource", "spec", "fields"), WRONG, ids=lambda one: str(one)[:50])
async def test_what_is_wrong_is_refused(api: Api, namespace: str, resource: Resource, spec: Json, fields: list[str]) -> None:
    refused = await api.create(resource, MAKE[resource](**spec), namespace)
    assert (refused.code, list(dict.fromkeys(field for _, field in refused.causes))) == (422, fields), refused.body


async def test_what_may_not_change_does_not(api: Api, namespace: str) -> None:
    (await api.create(DAEMON_SETS, daemon_set(), namespace)).ok  # noqa: B018
    (await api.create(JOBS, job(), namespace)).ok  # noqa: B018
    other = {"matchLabels": {"app": "x", "b": "c"}}
    refused = await api.patch(DAEMON_SETS, "x", {"spec": {"selector": other}}, namespace)
    assert ("FieldValueInvalid", "spec.selector") in refused.causes
    for patch in ({"completions": 5}, {"completionMode": "Indexed"}, {"selector": other}):
        assert (await api.patch(JOBS, "x", {"spec": patch}, namespace)).code == 422
    assert (await api.patch(JOBS, "x", {"spec": {"parallelism": 5}}, namespace)).code == 200


STORED: list[tuple[Resource, Json, Json]] = [
    (CRON_JOBS, cron_job(), {"spec": {"schedule": "@daily"}}),
    (DAEMON_SETS, daemon_set(), {"spec": {"minReadySeconds": 2}}),
    (JOBS, job(), {"spec": {"parallelism": 2}}),
]


@pytest.mark.only_on("embedded")
@pytest.mark.parametrize(("resource", "body", "patch"), STORED, ids=lambda one: getattr(one, "kind", ""))
async def test_a_kind_that_is_not_run_says_so(api: Api, namespace: str, resource: Resource, body: Json, patch: Json) -> None:
    what = "Jobs" if resource is CRON_JOBS else "pods"
    said = f"this {resource.kind} is stored, but not run: the embedded engine has no controller for it, and no {what} come of it"
    warning = [f'299 - "{said}"']
    assert (await api.create(resource, body, namespace)).warnings == warning
    assert (await api.patch(resource, "x", patch, namespace)).warnings == warning
    assert (await api.patch(resource, "x", {"metadata": {"labels": {"a": "b"}}}, namespace)).warnings == []
    assert (await api.patch(resource, "x", {"metadata": {"annotations": {"a": "b"}}}, namespace, "status")).warnings == []
    applied = {"apiVersion": resource.api_version, "kind": resource.kind, **body, "metadata": {"name": "y"}}
    reply = await api.patch(resource, "y", applied, namespace, kind="apply", fieldManager="me")
    assert (reply.code, reply.warnings) == (201, warning)


async def test_a_kind_that_is_run_says_nothing(api: Api, namespace: str) -> None:
    for resource in (DEPLOYMENTS, STATEFUL_SETS):
        assert (await api.create(resource, workload("x"), namespace)).warnings == []
