"""Deployments under `herder up`, as people use them: kubectl, controllers, scheduler and simulated nodes."""

import json

import pytest

from tests.e2e.kubectl import Kubectl
from tests.e2e.program import until

DONE = 'deployment "web" successfully rolled out\n'


@pytest.fixture
def web(here: Kubectl) -> Kubectl:
    """A Deployment of three pods that run."""
    assert (
        here("create", "deployment", "web", "--image=registry.example.com/web:1", "--replicas=3") == "deployment.apps/web created\n"
    )
    rolled_out(here)
    return here


def rolled_out(here: Kubectl) -> None:
    assert here("rollout", "status", "deploy/web", "--timeout=25s").endswith(DONE)


def images(here: Kubectl) -> list[str]:
    """Of the pods that are to stay."""
    pods = here.json("get", "pods", "-l", "app=web")["items"]
    return sorted(pod["spec"]["containers"][0]["image"][-1] for pod in pods if "deletionTimestamp" not in pod["metadata"])


def revisions(here: Kubectl) -> list[str]:
    return [line.split()[0] for line in here("rollout", "history", "deploy/web").splitlines()[2:] if line]


def test_a_deployment_runs_its_pods_on_nodes(web: Kubectl) -> None:
    row = web("get", "deploy", "web").splitlines()[1].split()
    assert row[:4] == ["web", "3/3", "3", "3"]
    pods = web.json("get", "pods")["items"]
    assert {pod["status"]["phase"] for pod in pods} == {"Running"}
    assert {pod["spec"]["nodeName"] for pod in pods} <= {"node-1", "node-2"}
    web("wait", "deploy/web", "--for=condition=Available", "--timeout=5s")
    described = web("describe", "deploy", "web")
    assert "3 desired | 3 updated | 3 total | 3 available | 0 unavailable" in described
    assert "NewReplicaSet:   web-" in described


def test_a_new_image_is_rolled_out_and_undone(web: Kubectl) -> None:
    web("set", "image", "deploy/web", "web=registry.example.com/web:2")
    rolled_out(web)
    assert images(web) == ["2", "2", "2"]
    assert revisions(web) == ["1", "2"]
    assert "registry.example.com/web:1" in web("rollout", "history", "deploy/web", "--revision=1")
    assert web("rollout", "undo", "deploy/web") == "deployment.apps/web rolled back\n"
    rolled_out(web)
    assert images(web) == ["1", "1", "1"]
    assert revisions(web) == ["2", "3"]
    web("rollout", "undo", "deploy/web", "--to-revision=2")
    rolled_out(web)
    assert images(web) == ["2", "2", "2"]


def test_a_restart_replaces_every_pod(web: Kubectl) -> None:
    before = set(web("get", "pods", "-o", "name").split())
    web("rollout", "restart", "deploy/web")
    rolled_out(web)
    until(lambda: not before & set(web("get", "pods", "-o", "name").split()), "the old pods are gone")
    assert len(images(web)) == 3


def test_a_deployment_is_scaled(web: Kubectl) -> None:
    assert web("scale", "deploy/web", "--replicas=5") == "deployment.apps/web scaled\n"
    rolled_out(web)
    assert len(images(web)) == 5
    web("scale", "deploy/web", "--replicas=0")
    until(lambda: not images(web), "nothing runs")
    rolled_out(web)


def test_a_paused_rollout_waits_to_be_resumed(web: Kubectl) -> None:
    web("rollout", "pause", "deploy/web")
    web("set", "image", "deploy/web", "web=registry.example.com/web:2")
    until(lambda: _seen(web), "the controller has seen it")
    assert len(web.json("get", "rs")["items"]) == 1
    web("rollout", "resume", "deploy/web")
    rolled_out(web)
    assert images(web) == ["2", "2", "2"]


def _seen(here: Kubectl) -> bool:
    one = here.json("get", "deploy", "web")
    reasons = [condition["reason"] for condition in one["status"]["conditions"]]
    return one["status"]["observedGeneration"] == one["metadata"]["generation"] and "DeploymentPaused" in reasons


def test_a_pod_that_is_deleted_comes_back_under_another_name(web: Kubectl) -> None:
    lost = web("get", "pods", "-o", "jsonpath={.items[0].metadata.name}")
    web("delete", "pod", lost)
    rolled_out(web)
    until(lambda: len(images(web)) == 3, "three run again")
    assert lost not in web("get", "pods", "-o", "name")


def test_a_deployment_goes_with_all_that_it_made(web: Kubectl) -> None:
    assert web("delete", "deploy", "web").startswith('deployment.apps "web" deleted')
    until(lambda: not web.json("get", "rs,pods")["items"], "nothing is left")


def test_a_kind_that_nobody_runs_is_stored_with_a_warning(here: Kubectl) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "x"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    document = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "each"}, "spec": spec}
    answer = here.run("apply", "-f", "-", stdin=json.dumps(document))
    assert answer.stdout == "daemonset.apps/each created\n"
    assert answer.stderr.startswith("Warning: this DaemonSet is stored, but not run: the embedded engine has no controller for it")
    assert "each" in here("get", "ds")
