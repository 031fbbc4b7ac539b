"""The cluster as arbitration looks at it, read live: what the controller keeps from caches. Who may not read all of it is told what
is therefore not known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from herder.api.account import SYSTEM_NAMESPACE
from herder.api.core import Pod
from herder.api.kinds import PodMigrationJob
from herder.api.meta import Identified
from herder.kube.client import Client
from herder.kube.discovery import Discovery
from herder.kube.errors import Forbidden, KubeError, NotFound
from herder.kube.resources import (
    BUDGETS,
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    INSTANCES,
    MACHINES,
    PODS,
    POOLS,
    REPLICA_SETS,
    STATEFUL_SETS,
    UNAVAILABLE_BUDGETS,
    Key,
    Resource,
)
from herder.rules.herder_config import BUILT_IN, JOBS, NAME, JobsConfig, JobsConfiguration, next_in_use
from herder.rules.jobs.arbitration.candidate import is_aborted
from herder.rules.jobs.execution.status import is_over
from herder.rules.jobs.gather import Asked, Cluster, Everything
from herder.rules.jobs.workload import Controller, NoScale, Scale

V = TypeVar("V", bound=Identified)
MOST_NAMED = 3
NO_CONFIG = f"you may not read ConfigMap {NAME}: limits are taken to be as they are built in"
NO_LIMITS = "you may not read {}: which limit would hold a job is not known"


class Seen(msgspec.Struct, frozen=True):
    cluster: Cluster
    config: JobsConfig
    # Whether arbitration can be asked.
    limits_known: bool
    unknown: tuple[str, ...] = ()


async def read_cluster(client: Client, jobs: Sequence[PodMigrationJob], more: Iterable[Pod] = ()) -> Seen:
    """`more`: pods whose workloads are asked about, beside those of jobs that are not over."""
    reader = _Reader(client)
    config = await reader.config()
    everything = await reader.everything(jobs)
    cluster = Cluster(everything)
    asked = _asked_for_scale(cluster, jobs, more)
    if asked and not reader.forbidden:
        scales = await _read_scales(client, asked)
        cluster = Cluster(msgspec.structs.replace(everything, scales=scales))
    missing = [NO_LIMITS.format(_named(reader.forbidden))] if reader.forbidden else []
    return Seen(cluster, config or JobsConfig(), not missing, (*missing, *([NO_CONFIG] if config is None else [])))


class _Reader:
    def __init__(self, client: Client) -> None:
        self._client = client
        self.forbidden: list[str] = []

    async def config(self) -> JobsConfig | None:
        try:
            found = await self._client.find(CONFIG_MAPS, Key(SYSTEM_NAMESPACE, NAME))
        except Forbidden:
            return None
        value = next_in_use(BUILT_IN, found).values[JOBS]
        assert isinstance(value, JobsConfiguration)
        return value.parsed()

    async def everything(self, jobs: Sequence[PodMigrationJob]) -> Everything:
        lists = self._list
        return Everything(
            jobs=jobs,
            pods=(await self._client.list(PODS)).items,
            deployments=await lists(DEPLOYMENTS),
            replica_sets=await lists(REPLICA_SETS),
            stateful_sets=await lists(STATEFUL_SETS),
            daemon_sets=await lists(DAEMON_SETS),
            pools=await lists(POOLS),
            machines=await lists(MACHINES),
            instances=await lists(INSTANCES),
            budgets=await lists(BUDGETS),
            unavailable_budgets=await self._unavailable_budgets(),
        )

    async def _list(self, resource: Resource[V]) -> list[V]:
        """Nothing where the cluster does not know the kind."""
        try:
            return (await self._client.list(resource)).items
        except NotFound:
            return []
        except Forbidden:
            self.forbidden.append(resource.qualified)
            return []

    async def _unavailable_budgets(self) -> list[Any]:
        """Of Kruise, in a version that is served; none where nobody has installed it."""
        kind = UNAVAILABLE_BUDGETS
        served = await Discovery(self._client).find(kind.group, kind.version, kind.kind)
        if served is None:
            return []
        return await self._list(msgspec.structs.replace(kind, version=served.resource.version))


def _named(kinds: Sequence[str]) -> str:
    more = f" and {len(kinds) - MOST_NAMED} other kinds" if len(kinds) > MOST_NAMED else ""
    return ", ".join(kinds[:MOST_NAMED]) + more


def _asked_for_scale(cluster: Cluster, jobs: Iterable[PodMigrationJob], more: Iterable[Pod]) -> list[Asked]:
    waiting = (one for one in jobs if not is_over(one) and not is_aborted(one))
    of_jobs = (cluster.pod(one.spec.pod_ref.namespace, one.spec.pod_ref.name) for one in waiting)
    asked = (cluster.asks_for_scale(pod) for pod in (*of_jobs, *more) if pod is not None)
    return list(dict.fromkeys(one for one in asked if one is not None))


async def _read_scales(client: Client, asked: Sequence[Asked]) -> dict[Asked, Scale | NoScale]:
    discovery = Discovery(client)
    return {one: await _read_scale(client, discovery, *one) for one in asked}


async def _read_scale(client: Client, discovery: Discovery, namespace: str, controller: Controller) -> Scale | NoScale:
    """As the controller does it, who remembers the answers."""
    group, _, version = controller.api_version.rpartition("/")
    try:
        served = await discovery.find(group, version, controller.kind)
        if served is None:
            return NoScale("Unknown", f"no kind {controller.kind} of {controller.api_version} is served")
        if not served.scalable or not served.resource.namespaced:
            return NoScale("NoScale")
        scale = await client.get(served.resource, Key(namespace, controller.name), subresource="scale")
    except NotFound:
        return NoScale("Missing", f"{controller.kind} {controller.name} is not there")
    except KubeError as error:
        return NoScale("Unknown", f"the scale of {controller.kind} {controller.name} cannot be read: {error}")
    return Scale(scale.uid, scale.spec.replicas)
