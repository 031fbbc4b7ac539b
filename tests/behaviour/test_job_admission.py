"""PodMigrationJobs that their pod, their creator or another job stands in the way of: refused by both engines in the same words."""

import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from herder.api import registry
from tests.behaviour.manifests import pod
from tests.behaviour.our_kinds import install_crds, make_owned_pod, resource_of
from tests.engines.api import Api, Reply
from tests.engines.credentials import grant, rule, user, with_certificate
from tests.engines.engine import Engine
from tests.engines.resources import PODS
from tests.engines.waiting import eventually

Json = dict[str, Any]
Unique = Callable[..., str]
JOBS = resource_of(registry.JOB)
GROUP = registry.JOB.group
DENIED = re.compile(r'^admission webhook "validate\.herder\.dev" denied the request: ')


@pytest.fixture(scope="module", autouse=True)
async def crds(api: Api) -> None:
    await install_crds(api)


class Jobs:
    """Of pods of one namespace, under names of their own: jobs are in none."""

    def __init__(self, api: Api, namespace: str, unique: Unique) -> None:
        self.api, self.namespace, self._unique = api, namespace, unique
        self.made: list[str] = []

    async def file(self, name: str = "web-0", by: Api | None = None, options: Json | None = None, **reference: str) -> Reply:
        self.made.append(self._unique("job"))
        spec: Json = {"podRef": {"namespace": self.namespace, "name": name, **reference}}
        if options is not None:
            spec["reservationOptions"] = options
        return await (by or self.api).create(JOBS, {"metadata": {"name": self.made[-1]}, "spec": spec})


@pytest.fixture
async def jobs(api: Api, namespace: str, unique: Unique) -> AsyncIterator[Jobs]:
    jobs = Jobs(api, namespace, unique)
    yield jobs
    for name in jobs.made:
        await api.delete(JOBS, name)


def _refused(reply: Reply, sentence: str) -> None:
    reply.refused(422, "Invalid")
    assert DENIED.sub("", reply.message).partition(" is invalid: ")[2] == sentence


async def test_a_job_names_a_pod_that_is_there_and_will_be_replaced(api: Api, namespace: str, jobs: Jobs) -> None:
    why = f'there is no pod of this name in namespace "{namespace}": a job must name a pod that is there'
    _refused(await jobs.file(), f'spec.podRef.name: Not found: "web-0": {why}')
    uid = (await make_owned_pod(api, "web-0", namespace))["metadata"]["uid"]
    why = f'the pod of this name has uid "{uid}": must be that one, or be left out for whichever pod is there'
    _refused(await jobs.file(uid="a"), f'spec.podRef.uid: Invalid value: "a": {why}')
    (await api.create(PODS, pod("bare"), namespace)).ok  # noqa: B018
    advice = "delete it, or have it made by a Deployment, a StatefulSet or the like"
    why = f"no controller owns the pod, so no other would take its place: {advice}"
    _refused(await jobs.file("bare"), f'spec.podRef.name: Invalid value: "bare": {why}')
    assert (await jobs.file(uid=uid)).code == 201


async def test_a_pod_has_one_unfinished_job_which_goes_on_when_the_pod_is_gone(api: Api, namespace: str, jobs: Jobs) -> None:
    await make_owned_pod(api, "web-0", namespace)
    assert (await jobs.file()).code == 201
    first = jobs.made[0]

    async def told() -> bool:
        """The webhook's cache may be a moment behind."""
        unfinished = f"PodMigrationJob {first} of pod {namespace}/web-0 is not finished (phase Pending)"
        why = f"{unfinished}: wait for it, or delete it to abort it"
        tried = {"metadata": {"name": f"{first}-again"}, "spec": {"podRef": {"namespace": namespace, "name": "web-0"}}}
        _refused(await api.create(JOBS, tried, dryRun="All"), f"spec.podRef: Forbidden: {why}")
        return True

    await eventually(told)
    (await api.patch(JOBS, first, {"status": {"phase": "Failed"}}, subresource="status")).ok  # noqa: B018
    assert (await jobs.file()).code == 201
    (await api.delete(PODS, "web-0", namespace, {"gracePeriodSeconds": 0})).ok  # noqa: B018
    second = jobs.made[1]
    (await api.patch(JOBS, second, {"status": {"phase": "Running"}}, subresource="status")).ok  # noqa: B018
    for change in ({"spec": {"paused": True}}, {"metadata": {"finalizers": ["example.com/held"], "annotations": {"a": "b"}}}):
        (await api.patch(JOBS, second, change)).ok  # noqa: B018
    wish = await api.patch(JOBS, second, {"metadata": {"annotations": {"herder.dev/abort": "yes"}}})
    _refused(wish, 'metadata.annotations[herder.dev/abort]: Invalid value: "yes": must be "true" or "false", or be left out')
    (await api.patch(JOBS, second, {"metadata": {"finalizers": None, "annotations": {"herder.dev/abort": "true"}}})).ok  # noqa: B018


async def test_who_files_jobs_must_be_let_evict_where_the_pod_is(
    api: Api, engine: Engine, namespace: str, unique: Unique, jobs: Jobs
) -> None:
    """Jobs are in no namespace: without this whoever may file one could evict everywhere."""
    await make_owned_pod(api, "web-0", namespace)
    name = unique("filer")
    await grant(api, "", user(name), rule("create", "podmigrationjobs", "scheduling.koordinator.sh"))
    async with with_certificate(engine, name) as filer:
        for there in ("web-0", "nothing"):
            right = f'user "{name}" may not create pods/eviction of {there} in namespace "{namespace}"'
            why = f"{right}, and must be let to have the pod moved: the role pod-migrator has this right"
            _refused(await jobs.file(there, filer), f"spec.podRef: Forbidden: {why}")
        await grant(api, namespace, user(name), rule("create", "pods/eviction", "", "web-0"))
        assert (await jobs.file("web-0", filer)).code == 201


async def test_who_asks_for_other_room_than_the_pods_or_for_that_of_others_must_be_let(
    api: Api, engine: Engine, namespace: str, unique: Unique, jobs: Jobs
) -> None:
    """Our controllers make and use every reservation: whoever may file a job would otherwise have one made for whomever, or use up
    that of somebody else."""
    await make_owned_pod(api, "web-0", namespace)
    name, room = unique("filer"), unique("room")
    await grant(api, "", user(name), rule("*", "podmigrationjobs", GROUP))
    await grant(api, namespace, user(name), rule("create", "pods/eviction", ""))
    template = {"spec": {"owners": [{"labelSelector": {"matchLabels": {"app": "mine"}}}]}}
    let = "ask for the role herder-admin, which has this right"
    made = f"and must be let to have one made that differs from what the pod asks for: leave template out, or {let}"
    used = f"and must be let to have it used up: leave reservationRef out to have one made, or {let}"
    lacks_create = f'template: Forbidden: user "{name}" may not create reservations.{GROUP}, {made}'
    lacks_patch = f'reservationRef: Forbidden: user "{name}" may not patch reservations.{GROUP} "{room}", {used}'
    async with with_certificate(engine, name) as filer:
        _refused(await jobs.file("web-0", filer, {"template": template}), f"spec.reservationOptions.{lacks_create}")
        _refused(await jobs.file("web-0", filer, {"reservationRef": {"name": room}}), f"spec.reservationOptions.{lacks_patch}")
        assert (await jobs.file("web-0", filer)).code == 201
        mine = jobs.made[-1]
        later = {"spec": {"reservationOptions": {"reservationRef": {"name": room}}}}
        _refused(await filer.patch(JOBS, mine, later), f"spec.reservationOptions.{lacks_patch}")
        # The job itself is theirs.
        for change in ({"spec": {"paused": True}}, {"metadata": {"annotations": {"herder.dev/migration-priority": "7"}}}):
            (await filer.patch(JOBS, mine, change)).ok  # noqa: B018
        await grant(api, "", user(name), rule("patch", "reservations", GROUP, room))
        (await filer.patch(JOBS, mine, later)).ok  # noqa: B018
        # What is named already takes nothing.
        (await filer.patch(JOBS, mine, {"spec": {"paused": False}})).ok  # noqa: B018
        (await filer.delete(JOBS, mine)).ok  # noqa: B018
        await grant(api, "", user(name), rule("create", "reservations", GROUP))
        assert (await jobs.file("web-0", filer, {"template": template})).code == 201
