"""Nodes of `herder up`, while their agents run."""

from tests.e2e.kubectl import Kubectl
from tests.e2e.program import until


def test_nodes_keep_saying_that_they_are_there(kubectl: Kubectl) -> None:
    leases = kubectl.inside("kube-node-lease")

    def renewals() -> dict[str, str]:
        printed = leases("get", "lease", "-o", "jsonpath={range .items[*]}{.metadata.name}={.spec.renewTime} {end}")
        return dict(pair.split("=") for pair in printed.split())

    before = renewals()
    assert set(before) == {"node-1", "node-2"}
    until(lambda: all(new > before[name] for name, new in renewals().items()), "a lease was not renewed", patience=60, pause=0.3)
