"""`kubectl autoscale` as it is, with no cluster: a pool of simulated machines follows what they use."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.kubectl import Kubectl
from tests.e2e.manifests import Json, deployment, machine
from tests.e2e.program import Up, until

# Each machine needs much for half a minute.
MEMORY = {"simulated.herder.dev/memory": "0s=120Mi,30s=120Mi,30s=10Mi"}
AT_ONCE = '{"spec":{"behavior":{"scaleDown":{"stabilizationWindowSeconds":0}}}}'


@pytest.fixture(scope="module")
def here(kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    with Up(tmp_path_factory.mktemp("data"), nodes=1) as up:
        yield Kubectl(kubectl_program, up.kubeconfig, tmp_path_factory.mktemp("home"), "default")


def pool(name: str, annotations: Json) -> Json:
    made = machine("unused", "Always")["spec"]
    made["template"].setdefault("metadata", {})["annotations"] = annotations
    spec = {"replicas": 1, "template": {"spec": made}}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachinePool", "metadata": {"name": name}, "spec": spec}


def replicas(kubectl: Kubectl, name: str) -> str:
    return kubectl("get", "vmpool", name, "-o", "jsonpath={.spec.replicas}")


def test_a_pool_is_scaled_out_and_in_by_what_its_machines_use(here: Kubectl) -> None:
    here.create(pool("web", MEMORY))
    made = here("autoscale", "vmpool", "web", "--min", "1", "--max", "3", "--memory", "64Mi")
    assert made == "horizontalpodautoscaler.autoscaling/web autoscaled\n"
    here("patch", "hpa", "web", "--type", "merge", "-p", AT_ONCE)
    until(lambda: replicas(here, "web") in ("2", "3"), "the pool was not scaled out", 90, 0.5)
    until(lambda: replicas(here, "web") == "1", "the pool was not scaled in", 150, 0.5)
    head, row = here("get", "hpa", "web").splitlines()
    assert head.split() == ["NAME", "REFERENCE", "TARGETS", "MINPODS", "MAXPODS", "REPLICAS", "AGE"]
    name, reference, *_ = row.split()
    assert (name, reference) == ("web", "VirtualMachinePool/web")
    told = here("describe", "hpa", "web")
    for words in ("AbleToScale", "ScalingActive", "ValidMetricFound", "SuccessfulRescale", "memory resource above target"):
        assert words in told, words
    assert "resource memory on pods" in told


@pytest.mark.parametrize("kind", ["deployment", "replicaset", "statefulset"])
def test_other_workloads_are_autoscaled_by_the_same_command(here: Kubectl, kind: str) -> None:
    whole = deployment(f"a-{kind}", 2)
    kinds = {"deployment": "Deployment", "replicaset": "ReplicaSet", "statefulset": "StatefulSet"}
    whole["kind"] = kinds[kind]
    if kind == "statefulset":
        whole["spec"]["serviceName"] = "none"
    here.create(whole)
    here("autoscale", kind, f"a-{kind}", "--max", "5", "--cpu", "70%", "--name", kind)
    status = "jsonpath={.status.currentReplicas}"
    until(lambda: here("get", "hpa", kind, "-o", status) == "2", "it was not looked at", 30, 0.3)
    shown = here("get", "hpa", kind, "--no-headers").split()
    assert shown[:6] == [kind, f"{kinds[kind]}/a-{kind}", "cpu:", "<unknown>/70%", "1", "5"]
    assert f"horizontalpodautoscaler.autoscaling/{kind}" in here("get", "all")


def test_a_pool_that_a_person_has_put_to_nothing_stays_there(here: Kubectl) -> None:
    here.create(pool("off", {}))
    here("autoscale", "vmpool", "off", "--max", "3", "--cpu", "50%")
    here("scale", "vmpool", "off", "--replicas", "0")
    disabled = "--for=jsonpath={.status.conditions[?(@.type=='ScalingActive')].reason}=ScalingDisabled"
    here("wait", "hpa/off", disabled, "--timeout=25s")
    assert replicas(here, "off") == "0"
