"""Jobs whose pod is replaced before it goes, as the arbitrator sees them: budgets are asked when the replacement is there."""

import asyncio
from typing import Any

from herder.api import labels
from herder.kube.client import STRATEGIC_PATCH
from herder.kube.resources import DEPLOYMENTS, PODS, REPLICA_SETS, Key
from herder.rules.jobs.execution.pod_release import release_patch
from tests.unit.controllers.arbitration import Stage, on_stage
from tests.unit.controllers.finders import MOMENT

HASH = {"app": "web", "pod-template-hash": "h1"}
POD = Key("default", "web-h1-0")


async def lone(stage: Stage, surge: int) -> None:
    """A Deployment of one ready pod that asks for its replacement to come first, and a budget that lets nobody go."""
    template: dict[str, Any] = {"metadata": {"labels": HASH}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": 1}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template, "strategy": rolling}
    deployment = await stage.make(DEPLOYMENTS, "web", spec, annotations={labels.SURGE: "true"})
    settled = {"replicas": 1, "updatedReplicas": 1, "observedGeneration": 1}
    await stage.status(DEPLOYMENTS, "web", settled)
    kept = {"replicas": 1, "selector": {"matchLabels": HASH}, "template": template}
    owner = await stage.make(REPLICA_SETS, "web-h1", kept, deployment)
    await stage.status(REPLICA_SETS, "web-h1", {"replicas": 1, "observedGeneration": 1})
    await stage.make_pod(POD.name, owner, labels=HASH)
    await stage.budget(2)


async def let_go(stage: Stage) -> None:
    """By the job, and by its ReplicaSet."""
    patch = release_patch(stage.stored(POD.name).view)
    pod = await stage.person.get(PODS, POD)
    patch["metadata"]["ownerReferences"].append({"$patch": "delete", "uid": pod.controller_uid})
    await stage.person.patch(PODS, POD, patch, content_type=STRATEGIC_PATCH)
    await asyncio.sleep(MOMENT)


def test_a_budget_that_lets_nobody_go_is_asked_when_the_pod_was_let_go_and_not_before() -> None:
    async def story(stage: Stage) -> None:
        await lone(stage, 1)
        await stage.file(POD.name)
        assert (await stage.job(POD.name)).strategy == "Surge"
        assert await stage.look_again(POD.name) is None
        await let_go(stage)
        found = await stage.look_again(POD.name)
        assert found is not None and found.reason == "WaitingForDisruptionBudget", "it is no bare pod"

    on_stage(story)


def test_a_job_that_waits_again_does_not_begin_before_its_pod_was_given_back() -> None:
    async def story(stage: Stage) -> None:
        await lone(stage, 1)
        await stage.file(POD.name)
        await let_go(stage)
        await stage.set_status(POD.name, phase="Pending", startTime=None, conditions=None)
        assert await stage.begun() == [] and await stage.reason(POD.name) == "Pending"

    on_stage(story)


def test_where_the_deployment_may_have_no_pod_too_many_the_budget_holds_the_job() -> None:
    async def story(stage: Stage) -> None:
        await lone(stage, 0)
        await stage.file(POD.name)
        assert await stage.reason(POD.name) == "WaitingForDisruptionBudget"

    on_stage(story)
