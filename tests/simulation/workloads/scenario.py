"""What people do to workloads, and what has to come of it."""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api.registry import INSTANCE, JOB, RESERVATION
from herder.controllers import EMBEDDED_ONLY
from herder.kube.client import Client
from herder.kube.resources import DEPLOYMENTS, PODS, REPLICA_SETS, STATEFUL_SETS, Key, Resource
from herder.scheduler import EMBEDDED_NAMES, scheduler
from tests.simulation.faults import CUT_OFF
from tests.simulation.matrix import Scenario, Step

Json = dict[str, Any]
KEY = Key("default", "web")
DATA: Json = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
KEPT = ("deployments.apps ", "replicasets.apps ", "statefulsets.apps ")


def make(resource: Resource[Any], replicas: int, **spec: Any) -> Step:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "web:1"}]}}
    selector = {"matchLabels": {"app": "web"}}
    metadata = {"name": KEY.name, "namespace": KEY.namespace}

    async def step(client: Client) -> None:
        await client.create(
            resource, {"metadata": metadata, "spec": {"replicas": replicas, "selector": selector, "template": template, **spec}}
        )

    return step


def patch(resource: Resource[Any], spec: Json) -> Step:
    async def step(client: Client) -> None:
        await client.patch(resource, KEY, {"spec": spec})

    return step


def image(name: str, resource: Resource[Any] = DEPLOYMENTS) -> Step:
    return patch(resource, {"template": {"spec": {"containers": [{"name": "main", "image": name}]}}})


def stray(labels: Json, name: str = "stray") -> Step:
    """A pod that nobody manages."""

    async def step(client: Client) -> None:
        metadata = {"name": name, "namespace": KEY.namespace, "labels": labels}
        await client.create(PODS, {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": "web:1"}]}})

    return step


def relabel(labels: Json) -> Step:
    async def step(client: Client) -> None:
        await client.patch(PODS, Key(KEY.namespace, "stray"), {"metadata": {"labels": labels}})

    return step


def has_pods(count: int, image: str = "web:1") -> Any:
    """Nothing where there are so many pods, all of them running what they should, and everybody says so."""

    def look(left: dict[str, bytes]) -> str:
        objects = {name: msgspec.json.decode(raw) for name, raw in left.items()}
        pods = [one for name, one in objects.items() if name.startswith("pods ") and one["metadata"].get("ownerReferences")]
        images = [one["spec"]["containers"][0]["image"] for one in pods if one["status"].get("phase") == "Running"]
        if images != [image] * count:
            return f"there should be {count} pods that run {image}, but there are {images}"
        kept = [one for name, one in objects.items() if name.startswith(KEPT)]
        late = [one["metadata"]["name"] for one in kept if one["status"].get("observedGeneration") != one["metadata"]["generation"]]
        return f"{late} have not said anything about what they are to be" if late else ""

    return look


def has_claims(*names: str) -> Any:
    """Nothing where these are there and no others, each with a pod that waits for it: nobody provides volumes."""

    def look(left: dict[str, bytes]) -> str:
        found = sorted(name for name in left if name.startswith(("persistentvolumeclaims ", "pods ")))
        wanted = [
            *(f"persistentvolumeclaims default/{name}" for name in names),
            *(f"pods default/{name.removeprefix('data-')}" for name in names),
        ]
        return "" if found == wanted else f"there should be {wanted}, but there are {found}"

    return look


def scenario(name: str, *steps: Step, expect: Any) -> Scenario:
    # One node, and every pod is on it: where it goes is another story. The scheduler wants to know of instances.
    everything = (*EMBEDDED_ONLY, scheduler(EMBEDDED_NAMES))
    return Scenario(
        name, kinds=(INSTANCE, RESERVATION, JOB), controllers=everything, steps=steps, expect=expect, nodes=1, quiet=CUT_OFF + 15
    )


SCALED = scenario(
    "scaled up and down",
    make(REPLICA_SETS, 2),
    patch(REPLICA_SETS, {"replicas": 3}),
    patch(REPLICA_SETS, {"replicas": 1}),
    expect=has_pods(1),
)
ADOPTED = scenario(
    "taken in and let go",
    stray({"app": "web"}),
    make(REPLICA_SETS, 2),
    relabel({"app": "other"}),
    expect=has_pods(2),
)
ROLLED = scenario(
    "rolled out",
    make(DEPLOYMENTS, 2, strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}),
    image("web:2"),
    expect=has_pods(2, "web:2"),
)
RECREATED = scenario(
    "recreated, with a short memory",
    make(DEPLOYMENTS, 2, strategy={"type": "Recreate"}, revisionHistoryLimit=0),
    image("web:2"),
    expect=has_pods(2, "web:2"),
)
STATEFUL = scenario(
    "in order",
    make(STATEFUL_SETS, 1, revisionHistoryLimit=0),
    patch(STATEFUL_SETS, {"replicas": 2}),
    image("web:2", STATEFUL_SETS),
    patch(STATEFUL_SETS, {"replicas": 1}),
    expect=has_pods(1, "web:2"),
)
# It becomes one of the set, and then, as nobody knows what it was made of, another one of its name.
STATEFUL_ADOPTED = scenario("taken in by its name", stray({"app": "web"}, "web-0"), make(STATEFUL_SETS, 1), expect=has_pods(1))
STATEFUL_CLAIMS = scenario(
    "with claims, at once",
    make(
        STATEFUL_SETS,
        2,
        podManagementPolicy="Parallel",
        persistentVolumeClaimRetentionPolicy={"whenScaled": "Delete", "whenDeleted": "Delete"},
        volumeClaimTemplates=[DATA],
    ),
    patch(STATEFUL_SETS, {"replicas": 1}),
    patch(STATEFUL_SETS, {"replicas": 2}),
    expect=has_claims("data-web-0", "data-web-1"),
)
