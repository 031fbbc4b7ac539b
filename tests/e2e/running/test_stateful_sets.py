"""StatefulSets under `herder up`, as people use them: kubectl, controllers, scheduler, volumes and simulated nodes."""

import json

import pytest

from tests.e2e.kubectl import Json, Kubectl
from tests.e2e.program import until

LABELS = {"app": "db"}
DATA: Json = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
}


@pytest.fixture
def db(here: Kubectl) -> Kubectl:
    """Two pods that run, each with a volume."""
    container = {"name": "db", "image": "registry.example.com/db:1", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    template = {"metadata": {"labels": LABELS}, "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}}
    spec = {"serviceName": "db", "replicas": 2, "selector": {"matchLabels": LABELS}, "template": template}
    document = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db"},
        "spec": {**spec, "volumeClaimTemplates": [DATA]},
    }
    answer = here.run("apply", "-f", "-", stdin=json.dumps(document))
    assert (answer.stdout, answer.stderr) == ("statefulset.apps/db created\n", "")
    rolled_out(here, 2)
    return here


def rolled_out(here: Kubectl, pods: int) -> None:
    said = here("rollout", "status", "sts/db", "--timeout=25s").splitlines()[-1]
    assert said == f"partitioned roll out complete: {pods} new pods have been updated..."


def images(here: Kubectl) -> list[str]:
    return [pod["spec"]["containers"][0]["image"][-1] for pod in here.json("get", "pods", "-l", "app=db")["items"]]


def revisions(here: Kubectl) -> list[str]:
    return [line.split()[0] for line in here("rollout", "history", "sts/db").splitlines()[2:] if line]


def test_a_pod_comes_back_under_its_name_with_its_volume(db: Kubectl) -> None:
    assert db("get", "sts", "db").splitlines()[1].split()[:2] == ["db", "2/2"]
    before = db.json("get", "pod", "db-1")
    volume = db.json("get", "pvc", "data-db-1")["spec"]["volumeName"]
    db("delete", "pod", "db-1")
    until(lambda: _is_another(db, before), "the pod has come back")
    after = db.json("get", "pod", "db-1")
    assert (after["status"]["phase"], after["spec"]["hostname"]) == ("Running", "db-1")
    assert db.json("get", "pvc", "data-db-1")["spec"]["volumeName"] == volume
    assert db("scale", "sts/db", "--replicas=3") == "statefulset.apps/db scaled\n"
    rolled_out(db, 3)
    db("scale", "sts/db", "--replicas=1")
    until(lambda: db("get", "pods", "-o", "name") == "pod/db-0\n", "one is left")
    assert db("get", "pvc", "-o", "name").split() == [f"persistentvolumeclaim/data-db-{number}" for number in range(3)]
    assert "SuccessfulDelete" in db("describe", "sts", "db")


def _is_another(db: Kubectl, before: Json) -> bool:
    found = db.json("get", "pods", "-l", "statefulset.kubernetes.io/pod-name=db-1")["items"]
    return any(one["metadata"]["uid"] != before["metadata"]["uid"] and one["status"]["phase"] == "Running" for one in found)


def test_a_new_image_is_rolled_out_and_undone(db: Kubectl) -> None:
    db("set", "image", "sts/db", "db=registry.example.com/db:2")
    rolled_out(db, 2)
    assert (images(db), revisions(db)) == (["2", "2"], ["1", "2"])
    assert "registry.example.com/db:1" in db("rollout", "history", "sts/db", "--revision=1")
    assert db("rollout", "undo", "sts/db") == "statefulset.apps/db rolled back\n"
    rolled_out(db, 2)
    assert (images(db), revisions(db)) == (["1", "1"], ["2", "3"])
    db("rollout", "restart", "sts/db")
    rolled_out(db, 2)
    assert revisions(db) == ["2", "3", "4"]
