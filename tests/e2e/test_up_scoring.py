"""`herder up --scoring`: whether pods share the nodes, or fill one after the other."""

from pathlib import Path

from tests.e2e.kubectl import Kubectl
from tests.e2e.manifests import pod
from tests.e2e.program import Up, until


def test_with_most_allocated_pods_fill_one_node_after_the_other(tmp_path: Path, kubectl_program: Path) -> None:
    with Up(tmp_path, "--scoring", "MostAllocated", nodes=3) as herd:
        kubectl = Kubectl(kubectl_program, herd.kubeconfig, tmp_path)
        asked = {"requests": {"cpu": "500m", "memory": "1Gi"}}
        for number in range(4):
            document = pod(f"p{number}")
            document["spec"]["containers"][0]["resources"] = asked
            kubectl.create(document)

        def nodes() -> list[str]:
            return [one["spec"].get("nodeName", "") for one in kubectl.json("get", "pods")["items"]]

        until(lambda: "" not in nodes(), "not all are placed", 60)
        assert len(set(nodes())) == 1
