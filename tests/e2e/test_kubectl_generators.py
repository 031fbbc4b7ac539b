"""`kubectl create KIND` and `kubectl run`, which make the object themselves and send it as protobuf."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.kubectl import Json, Kubectl

RBAC = "rbac.authorization.k8s.io"


def _secret(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


# words of the command, what it says, and what is then there
NAMESPACED: dict[str, tuple[str, str, Json]] = {
    "configmap": ("configmap it --from-literal=a=b --from-literal=c=", "configmap/it", {"data": {"a": "b", "c": ""}}),
    "secret generic": ("secret generic it --from-literal=a=b", "secret/it", {"type": "Opaque", "data": {"a": _secret("b")}}),
    "secret docker-registry": (
        "secret docker-registry it --docker-server=x --docker-username=u --docker-password=p",
        "secret/it",
        {"type": "kubernetes.io/dockerconfigjson"},
    ),
    "serviceaccount": ("serviceaccount it", "serviceaccount/it", {}),
    "deployment": (
        "deployment it --image=registry.example.com/app:1 --replicas=0 --port=80",
        "deployment.apps/it",
        {"spec": {"replicas": 0, "selector": {"matchLabels": {"app": "it"}}}},
    ),
    "cronjob": (
        "cronjob it --image=registry.example.com/app:1 --schedule=@daily",
        "cronjob.batch/it",
        {"spec": {"schedule": "@daily", "concurrencyPolicy": "Allow"}},
    ),
    "job": (
        "job it --image=registry.example.com/app:1 -- sleep 9",
        "job.batch/it",
        {"spec": {"completions": 1, "backoffLimit": 6}},
    ),
    "role": (
        "role it --verb=get,list --resource=pods,deployments.apps --resource-name=one",
        f"role.{RBAC}/it",
        {
            "rules": [
                {"apiGroups": [""], "resources": ["pods"], "resourceNames": ["one"], "verbs": ["get", "list"]},
                {"apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": ["one"], "verbs": ["get", "list"]},
            ]
        },
    ),
    "rolebinding": (
        "rolebinding it --role=it --user=anna --serviceaccount=default:robot",
        f"rolebinding.{RBAC}/it",
        {
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "it"},
            "subjects": [
                {"apiGroup": RBAC, "kind": "User", "name": "anna"},
                {"kind": "ServiceAccount", "name": "robot", "namespace": "default"},
            ],
        },
    ),
    "poddisruptionbudget": (
        "pdb it --selector=app=it --min-available=50%",
        "poddisruptionbudget.policy/it",
        {"spec": {"minAvailable": "50%", "selector": {"matchLabels": {"app": "it"}}}},
    ),
}
CLUSTER_WIDE: dict[str, tuple[str, str, Json]] = {
    "namespace": ("namespace {name}", "namespace/{name}", {"status": {"phase": "Active"}}),
    "clusterrole": (
        "clusterrole {name} --verb=get --non-resource-url=/logs/*",
        f"clusterrole.{RBAC}/{{name}}",
        {"rules": [{"nonResourceURLs": ["/logs/*"], "verbs": ["get"]}]},
    ),
    "clusterrolebinding": (
        "clusterrolebinding {name} --clusterrole=view --group=people",
        f"clusterrolebinding.{RBAC}/{{name}}",
        {"subjects": [{"apiGroup": RBAC, "kind": "Group", "name": "people"}]},
    ),
    "priorityclass": (
        "priorityclass {name} --value=7 --description=some --preemption-policy=Never",
        "priorityclass.scheduling.k8s.io/{name}",
        {"value": 7, "description": "some", "preemptionPolicy": "Never"},
    ),
}


def _holds(whole: Any, part: Any) -> bool:
    if isinstance(part, dict):
        return all(name in whole and _holds(whole[name], value) for name, value in part.items())
    return whole == part


@pytest.mark.parametrize(("words", "said", "expected"), NAMESPACED.values(), ids=NAMESPACED)
def test_a_kind_is_created_from_words(here: Kubectl, words: str, said: str, expected: Json) -> None:
    assert here("create", *words.split()) == f"{said} created\n"
    assert _holds(here.json("get", said), expected)
    assert "already exists" in here.refused("create", *words.split())


@pytest.mark.parametrize(("words", "said", "expected"), CLUSTER_WIDE.values(), ids=CLUSTER_WIDE)
def test_a_kind_without_a_namespace_is_created_from_words(
    kubectl: Kubectl, unique: Callable[..., str], words: str, said: str, expected: Json
) -> None:
    name = unique()
    assert kubectl("create", *words.format(name=name).split()) == f"{said.format(name=name)} created\n"
    assert _holds(kubectl.json("get", said.format(name=name)), expected)
    kubectl("delete", said.format(name=name))


def test_a_file_becomes_a_config_map(here: Kubectl) -> None:
    (here.home / "settings.bin").write_bytes(b"\xff\x00")
    here("create", "configmap", "files", "--from-file=settings.bin")
    assert here.json("get", "cm", "files")["binaryData"] == {"settings.bin": base64.b64encode(b"\xff\x00").decode()}


def test_a_dry_run_on_the_server_makes_nothing(here: Kubectl) -> None:
    assert here("create", "configmap", "a", "--dry-run=server") == "configmap/a created (server dry run)\n"
    assert "not found" in here.refused("get", "cm", "a")


def test_what_is_wrong_is_said_as_for_a_file(here: Kubectl) -> None:
    assert here.refused("create", "configmap", "Wrong_Name").startswith('error: failed to create configmap: ConfigMap "Wrong_Name"')


def test_a_pod_is_run(here: Kubectl) -> None:
    said = here(
        "run", "one", "--image=registry.example.com/app:1", "--env=A=b", "--labels=x=y", "--restart=Never", "--", "sleep", "9"
    )
    assert said == "pod/one created\n"
    made = here.json("get", "pod", "one")
    (container,) = made["spec"]["containers"]
    assert (container["args"], container["env"]) == (["sleep", "9"], [{"name": "A", "value": "b"}])
    assert (made["spec"]["restartPolicy"], made["metadata"]["labels"]) == ("Never", {"x": "y"})
    assert here("delete", "pod", "one", "--grace-period=0", "--force", "--wait=false").startswith('pod "one" force deleted')


def test_managed_fields_name_the_command(here: Kubectl) -> None:
    here("create", "configmap", "a", "--from-literal=k=v")
    (entry,) = here.json("get", "cm", "a", "--show-managed-fields")["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("kubectl-create", "Update")
    assert entry["fieldsV1"] == {"f:data": {".": {}, "f:k": {}}}


def test_events_are_told_in_order_for_all_and_for_one(here: Kubectl) -> None:
    times = ("2024-01-01T00:00:00Z", "2024-01-01T00:01:00Z")
    for name, seen in zip(("early", "late"), times, strict=True):
        about = {"kind": "Pod", "apiVersion": "v1", "name": name, "namespace": here.namespace}
        event: Json = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name},
            "involvedObject": about,
            "reason": "Started",
        }
        here.create(
            {**event, "type": "Warning", "message": f"It is {name}.", "firstTimestamp": seen, "lastTimestamp": seen, "count": 1}
        )
    lines = here("events").splitlines()
    assert [line.split()[3] for line in lines[1:]] == ["Pod/early", "Pod/late"]
    assert len(here("events", "--for", "pod/late", "--types=Warning").splitlines()) == 2
    listed = json.loads(here("get", "events.events.k8s.io", "-o", "json"))
    assert [item["note"] for item in listed["items"]] == ["It is early.", "It is late."]
