"""What people see filled in when they leave it out."""

from collections.abc import Callable

import pytest

from tests.behaviour.manifests import container, pod, template, workload
from tests.engines.api import Api, Json
from tests.engines.resources import (
    BUDGETS,
    CLAIMS,
    DEPLOYMENTS,
    LEASES,
    PODS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    SECRETS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VOLUMES,
)

POD_SPEC = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "terminationGracePeriodSeconds": 30,
    "schedulerName": "default-scheduler",
    "securityContext": {},
}
CONTAINER = {
    "imagePullPolicy": "IfNotPresent",
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "resources": {},
}


def part(whole: Json, wanted: Json) -> Json:
    return {name: whole.get(name) for name in wanted}


async def dry(api: Api, body: Json, namespace: str) -> Json:
    return (await api.create(PODS, body, namespace, dryRun="All")).ok


async def test_a_pod(api: Api, namespace: str) -> None:
    made = await dry(api, pod("a"), namespace)
    spec = {**POD_SPEC, "enableServiceLinks": True, "priority": 0, "preemptionPolicy": "PreemptLowerPriority"}
    assert part(made["spec"], spec) == spec
    assert part(made["spec"]["containers"][0], CONTAINER) == CONTAINER
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


def patience(taint: str, seconds: int = 300) -> Json:
    return {"key": f"node.kubernetes.io/{taint}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}


NOT_READY, UNREACHABLE = patience("not-ready"), patience("unreachable")
ANYTHING = {"operator": "Exists"}
OTHER = {"key": "a", "operator": "Exists", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("said", "stored"),
    [
        ([], [NOT_READY, UNREACHABLE]),
        ([OTHER], [OTHER, NOT_READY, UNREACHABLE]),
        ([patience("not-ready", 7)], [patience("not-ready", 7), UNREACHABLE]),
        ([patience("unreachable", 7)], [patience("unreachable", 7), NOT_READY]),
        ([ANYTHING], [ANYTHING]),
    ],
)
async def test_a_pod_bears_five_minutes_with_a_node_that_is_away(
    api: Api, namespace: str, said: list[Json], stored: list[Json]
) -> None:
    # The third of a kind is written the short way.
    spec: Json = {"tolerations": said} if said else {}
    made = [(await api.create(PODS, pod(name, **spec), namespace)).ok for name in ("a", "b", "c")]
    assert [one["spec"]["tolerations"] for one in made] == [stored] * 3
    assert sum("f:tolerations" in str(one["metadata"]["managedFields"]) for one in made) == (3 if said else 0)
    kept = {name: value for name, value in made[0]["spec"].items() if name != "tolerations"}
    again = {"metadata": {"name": "a"}, "spec": {**kept, **spec}}
    assert (await api.update(PODS, again, namespace)).ok["spec"]["tolerations"] == stored


@pytest.mark.parametrize(
    ("image", "policy"), [("app", "Always"), ("app:latest", "Always"), ("app:1", "IfNotPresent"), ("host:5000/app", "Always")]
)
async def test_only_an_image_without_a_fixed_tag_is_always_pulled(api: Api, namespace: str, image: str, policy: str) -> None:
    made = await dry(api, pod("a", containers=[{"name": "main", "image": image}]), namespace)
    assert made["spec"]["containers"][0]["imagePullPolicy"] == policy


async def test_a_request_is_the_limit_when_only_that_is_given(api: Api, namespace: str) -> None:
    limits = {"cpu": "1", "memory": "1Gi"}
    made = await dry(api, pod("a", containers=[container(resources={"limits": limits})]), namespace)
    assert made["spec"]["containers"][0]["resources"] == {"limits": limits, "requests": limits}
    assert made["status"]["qosClass"] == "Guaranteed"


async def test_the_class_of_service_follows_from_requests_and_limits(api: Api, namespace: str) -> None:
    burst = await dry(api, pod("a", containers=[container(resources={"requests": {"cpu": "100m"}}), container("b")]), namespace)
    assert burst["status"]["qosClass"] == "Burstable"


async def test_quantities_are_kept_as_they_are_best_written(api: Api, namespace: str) -> None:
    requests = {"cpu": "0.5", "memory": "1024Mi"}
    made = await dry(api, pod("a", containers=[container(resources={"requests": requests})]), namespace)
    assert made["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}


async def test_ports_probes_and_volumes(api: Api, namespace: str) -> None:
    probe = {"httpGet": {"port": 80}}
    one = container(ports=[{"containerPort": 80}], readinessProbe=probe)
    volumes = [{"name": "empty"}, {"name": "cm", "configMap": {"name": "x"}}, {"name": "s", "secret": {"secretName": "x"}}]
    spec = (await dry(api, pod("a", containers=[one], volumes=volumes), namespace))["spec"]
    assert spec["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert spec["containers"][0]["readinessProbe"] == {
        "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    assert spec["volumes"] == [
        {"name": "empty", "emptyDir": {}},
        {"name": "cm", "configMap": {"name": "x", "defaultMode": 420}},
        {"name": "s", "secret": {"secretName": "x", "defaultMode": 420}},
    ]


async def test_a_priority_class_gives_a_pod_its_number(api: Api, namespace: str) -> None:
    made = await dry(api, pod("a", priorityClassName="system-node-critical"), namespace)
    assert made["spec"]["priority"] == 2000001000


async def test_a_deployment(api: Api, namespace: str) -> None:
    spec = (await api.create(DEPLOYMENTS, workload("a", None), namespace, dryRun="All")).ok["spec"]
    expected = {
        "replicas": 1,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    }
    assert part(spec, expected) == expected
    assert part(spec["template"]["spec"], POD_SPEC) == POD_SPEC
    assert part(spec["template"]["spec"]["containers"][0], CONTAINER) == CONTAINER


async def test_a_replica_set(api: Api, namespace: str) -> None:
    made = (await api.create(REPLICA_SETS, workload("a", None), namespace, dryRun="All")).ok
    assert (made["spec"]["replicas"], made["status"]) == (1, {"replicas": 0})


async def test_a_stateful_set(api: Api, namespace: str) -> None:
    spec = (await api.create(STATEFUL_SETS, workload("a", None), namespace, dryRun="All")).ok["spec"]
    expected = {
        "replicas": 1,
        "podManagementPolicy": "OrderedReady",
        "revisionHistoryLimit": 10,
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    }
    assert part(spec, expected) == expected


async def test_a_claim_and_a_volume(api: Api, namespace: str, unique: Callable[..., str]) -> None:
    size = {"storage": "1Gi"}
    claim = {"metadata": {"name": "a"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": size}}}
    made = (await api.create(CLAIMS, claim, namespace, dryRun="All")).ok
    assert (made["spec"]["volumeMode"], made["status"]) == ("Filesystem", {"phase": "Pending"})
    spec = {"capacity": size, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    volume = (await api.create(VOLUMES, {"metadata": {"name": unique()}, "spec": spec}, dryRun="All")).ok
    expected = {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem", "hostPath": {"path": "/x", "type": ""}}
    assert part(volume["spec"], expected) == expected
    assert volume["status"]["phase"] == "Pending"


async def test_classes(api: Api, unique: Callable[..., str]) -> None:
    made = (await api.create(STORAGE_CLASSES, {"metadata": {"name": unique()}, "provisioner": "example.com/p"}, dryRun="All")).ok
    assert (made["reclaimPolicy"], made["volumeBindingMode"]) == ("Delete", "Immediate")
    made = (await api.create(PRIORITY_CLASSES, {"metadata": {"name": unique()}, "value": 5}, dryRun="All")).ok
    assert made["preemptionPolicy"] == "PreemptLowerPriority"


async def test_a_budget_has_a_status_from_the_start(api: Api, namespace: str) -> None:
    made = (await api.create(BUDGETS, {"metadata": {"name": "a"}, "spec": {"selector": {}}}, namespace, dryRun="All")).ok
    assert made["status"] == {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}


async def test_a_secret_is_opaque_and_keeps_no_plain_text(api: Api, namespace: str) -> None:
    body = {"metadata": {"name": "a"}, "stringData": {"both": "new", "only": "x"}, "data": {"both": "b2xk", "raw": "eQ=="}}
    made = (await api.create(SECRETS, body, namespace)).ok
    assert made["type"] == "Opaque"
    assert made["data"] == {"both": "bmV3", "only": "eA==", "raw": "eQ=="}
    assert "stringData" not in made


async def test_the_times_of_a_lease_have_microseconds(api: Api, namespace: str) -> None:
    body = {"metadata": {"name": "a"}, "spec": {"holderIdentity": "me", "renewTime": "2026-01-02T03:04:05.123456Z"}}
    made = (await api.create(LEASES, body, namespace)).ok
    assert made["spec"] == {"holderIdentity": "me", "renewTime": "2026-01-02T03:04:05.123456Z"}
    coarse = {"metadata": {"name": "b"}, "spec": {"renewTime": "2026-01-02T03:04:05Z"}}
    (await api.create(LEASES, coarse, namespace)).refused(400, "BadRequest")
    moved = await api.patch(LEASES, "a", {"spec": {"renewTime": "2026-01-02T05:04:05.500000+02:00"}}, namespace)
    assert moved.ok["spec"]["renewTime"] == "2026-01-02T03:04:05.500000Z"


async def test_a_template_is_not_asked_for_more_than_it_says(api: Api, namespace: str) -> None:
    body = workload("a", template=template({"app": "a"}, restartPolicy="Never"))
    reply = await api.create(DEPLOYMENTS, body, namespace, dryRun="All")
    reply.refused(422, "Invalid")
    assert reply.causes == [("FieldValueNotSupported", "spec.template.spec.restartPolicy")]
