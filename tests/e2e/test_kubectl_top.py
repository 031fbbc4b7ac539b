"""`kubectl top` as it is, with no cluster: what simulated machines, pods and nodes use."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.kubectl import Kubectl
from tests.e2e.manifests import machine, pod
from tests.e2e.program import Up, until

CPU, MEMORY = "simulated.herder.dev/cpu", "simulated.herder.dev/memory"


@pytest.fixture(scope="module")
def here(kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """A machine and a plain pod that use what their annotations say."""
    with Up(tmp_path_factory.mktemp("data"), nodes=1) as up:
        kubectl = Kubectl(kubectl_program, up.kubeconfig, tmp_path_factory.mktemp("home"), "default")
        web = machine("web", "Always")
        web["spec"]["template"].setdefault("metadata", {})["annotations"] = {CPU: "500m", MEMORY: "256Mi"}
        plain = pod("plain", kubectl("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}"), {"app": "plain"})
        plain["metadata"]["annotations"] = {CPU: "1500m", MEMORY: "1Gi"}
        kubectl.create(web, plain)
        kubectl("wait", "vm/web", "--for=jsonpath={.status.printableStatus}=Running", "--timeout=25s")
        until(lambda: "plain" in top(kubectl) and len(top(kubectl)) == 2, "nothing was measured", 60, 0.5)
        yield kubectl


def top(kubectl: Kubectl, *words: str) -> dict[str, list[str]]:
    answer = kubectl.run("top", "pod", "--no-headers", *words)
    return {line.split()[0]: line.split()[1:] for line in answer.stdout.splitlines()} if not answer.returncode else {}


def millis(text: str) -> int:
    assert text.endswith("m"), text
    return int(text[:-1])


def test_kubectl_top_pod_shows_what_machines_and_pods_use(here: Kubectl) -> None:
    launcher = here("get", "vmi", "web", "-o", "jsonpath={.status.launcherPodName}")
    shown = top(here)
    assert set(shown) == {launcher, "plain"}
    assert 480 <= millis(shown[launcher][0]) <= 520
    assert 1480 <= millis(shown["plain"][0]) <= 1520
    assert shown[launcher][1] == "256Mi"


def test_kubectl_top_pod_selects_and_sorts_and_shows_containers(here: Kubectl) -> None:
    assert set(top(here, "-l", "app=plain")) == {"plain"}
    assert next(iter(top(here, "--sort-by=cpu"))) == "plain"
    assert here("top", "pod", "plain", "--containers", "--no-headers").split()[:2] == ["plain", "main"]
    assert 'pods.metrics.k8s.io "nobody" not found' in here.refused("top", "pod", "nobody")


def test_kubectl_top_node_shows_the_sum_and_its_part_of_the_whole(here: Kubectl) -> None:
    name, cpu, part, memory, *_ = here("top", "node", "--no-headers").split()
    assert name == here("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")
    assert 1950 <= millis(cpu) <= 2050
    assert 23 <= int(part.rstrip("%")) <= 26
    assert memory == "1280Mi"


def test_kubectl_get_shows_them_as_a_table(here: Kubectl) -> None:
    head, row = here("get", "pods.metrics.k8s.io", "plain").splitlines()
    assert head.split() == ["NAME", "CPU", "MEMORY", "WINDOW"]
    assert row.split()[2] == "1Gi"
