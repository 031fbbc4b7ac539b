"""What the commands for jobs read, live."""

from __future__ import annotations

from herder.api.core import Pod
from herder.api.kinds import PodMigrationJob, ReservationView
from herder.api.problems import nearest
from herder.cli.asking import Refusal
from herder.kube.client import Client, Selection
from herder.kube.errors import Forbidden, NotFound
from herder.kube.resources import JOBS, PODS, RESERVATIONS, Key
from herder.rules.jobs.shown import GONE, pod_text, reservation_of

MOST_NAMED = 10


async def read_jobs(client: Client) -> list[PodMigrationJob]:
    """Oldest first."""
    listed = (await client.list(JOBS)).items
    return sorted(listed, key=lambda one: (str(one.metadata.creation_timestamp), one.name))


async def read_job(client: Client, name: str) -> PodMigrationJob:
    try:
        return await client.get(JOBS, Key("", name))
    except NotFound:
        raise Refusal(await _no_job(client, name)) from None


async def _no_job(client: Client, name: str) -> str:
    known = await read_jobs(client)
    names = [one.name for one in known]
    of_pod = [one.name for one in known if name in (one.spec.pod_ref.name, pod_text(one))]
    if of_pod:
        return f"there is no PodMigrationJob {name!r}; the pod of that name has {', '.join(of_pod[-MOST_NAMED:])}"
    close = nearest(name, names)
    more = f"; did you mean {close}?" if close else f"; there are: {', '.join(names[:MOST_NAMED])}" if names else ", and no other"
    return f"there is no PodMigrationJob {name!r}{more}"


async def pod_named_by(client: Client, job: PodMigrationJob) -> Pod | None:
    """What has the name of its pod now, which may be another one."""
    try:
        return await client.find(PODS, Key(job.spec.pod_ref.namespace, job.spec.pod_ref.name))
    except Forbidden:
        return None


async def reservation_used_by(client: Client, job: PodMigrationJob) -> tuple[ReservationView | None, str]:
    """And why it is not there, where that is so."""
    name = reservation_of(job)
    if not name:
        return None, ""
    try:
        return await client.find(RESERVATIONS, Key("", name)), GONE
    except Forbidden:
        return None, "you may not read reservations"


async def read_reservations(client: Client) -> dict[str, ReservationView]:
    """By name; none where they may not be read."""
    try:
        return {one.name: one for one in (await client.list(RESERVATIONS)).items}
    except (Forbidden, NotFound):
        return {}


async def nodes_of_pods(client: Client, namespace: str) -> dict[str, str]:
    """By namespace/name; none where they may not be read."""
    try:
        pods = (await client.list(PODS, Selection(namespace))).items
    except Forbidden:
        return {}
    return {f"{pod.namespace}/{pod.name}": pod.spec.node_name for pod in pods}
