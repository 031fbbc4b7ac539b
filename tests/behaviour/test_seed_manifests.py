"""The complete manifests of the seeds, as they are printed, by plain and by server-side apply, on every engine."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from herder.api import registry
from tests.behaviour.our_kinds import install_crds, resource_of
from tests.conftest import EngineMissing
from tests.e2e.kubectl import Kubectl
from tests.engines.api import Api
from tests.engines.engine import Unavailable
from tests.engines.kubectl import find_kubectl

Json = dict[str, Any]
POLICIES = resource_of(registry.POLICY)
INSTANCES = resource_of(registry.INSTANCE)
MIGRATIONS = resource_of(registry.MIGRATION)
POOLS = resource_of(registry.POOL)

# Seed 000, "Full Manifest". YAML makes a boolean of the label's value.
POLICY = """\
apiVersion: migrations.kubevirt.io/v1alpha1
kind: MigrationPolicy
metadata:
  name: my-awesome-policy
spec:
  # Migration Configuration
  allowAutoConverge: true
  bandwidthPerMigration: 217Ki
  completionTimeoutPerGiB: 23
  allowPostCopy: false
  
  # Matching to VMs
  selectors:
    namespaceSelector:
      hpc-workloads: true
    virtualMachineInstanceSelector:
      workload-type: db
"""  # noqa: W293 - as printed
# Seed 001, "API Examples". The term is written as a list of one.
MIGRATION = """\
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstanceMigration
metadata:
  name: migration-job
spec:
  vmiName: vmi-fedora
  addedNodeSelectorTerm:
    - matchFields:
      - key: metadata.name
        operator: In
        values:
          - <nodeName>
"""
SERVER_SIDE = ("--server-side",)
both_ways = pytest.mark.parametrize("how", [(), SERVER_SIDE], ids=["plain", "server-side"])


@pytest.fixture(scope="module", autouse=True)
async def crds(api: Api) -> None:
    await install_crds(api)


@pytest.fixture
def kubectl(api: Api, namespace: str, tmp_path: Path) -> Kubectl:
    try:
        return Kubectl(find_kubectl(), api.engine.kubeconfig, tmp_path, namespace)
    except Unavailable as reason:
        raise EngineMissing(str(reason)) from None


def _applied(kubectl: Kubectl, tmp_path: Path, text: str, *how: str) -> None:
    """Twice: the second time nothing changes."""
    file = tmp_path / "printed.yaml"
    file.write_text(text)
    kubectl("apply", *how, "-f", str(file))
    said = kubectl("apply", *how, "-f", str(file))
    assert said.strip().endswith("serverside-applied" if how else "unchanged")


async def test_the_policy_of_the_seed_applies_as_printed(api: Api, kubectl: Kubectl, tmp_path: Path) -> None:
    """One test for both ways: no two policies may have these selectors."""
    for how in ((), SERVER_SIDE):
        _applied(kubectl, tmp_path, POLICY, *how)
        stored = (await api.get(POLICIES, "my-awesome-policy")).ok["spec"]
        assert stored == yaml.safe_load(POLICY)["spec"]
        kubectl("delete", "migrationpolicy", "my-awesome-policy")


@both_ways
async def test_the_migration_of_the_seed_applies_as_printed(
    api: Api, namespace: str, kubectl: Kubectl, tmp_path: Path, how: tuple[str, ...]
) -> None:
    (await api.create(INSTANCES, {"metadata": {"name": "vmi-fedora"}, "spec": {"domain": {}}}, namespace)).ok  # noqa: B018
    _applied(kubectl, tmp_path, MIGRATION, *how)
    stored = (await api.get(MIGRATIONS, "migration-job", namespace)).ok["spec"]
    assert stored == yaml.safe_load(MIGRATION)["spec"]


async def test_the_placeholder_of_the_seed_is_warned_of(api: Api, namespace: str) -> None:
    (await api.create(INSTANCES, {"metadata": {"name": "vmi-fedora"}, "spec": {"domain": {}}}, namespace)).ok  # noqa: B018
    reply = await api.create(MIGRATIONS, yaml.safe_load(MIGRATION), namespace)
    said = "spec.addedNodeSelectorTerm: <nodeName> is a placeholder, and no node has this name: write the name of a node"
    assert reply.warnings == [f'299 - "{said}"']


# Seed 003, "VMPool API Examples".
POOL_HEAD = """\
apiVersion: kubevirt.io/v1
kind: VirtualMachinePool
metadata:
  name: my-vm-pool
spec:
"""
POOL_TEMPLATE = """\
  template:
    spec:
      dataVolumeTemplates:
      - metadata:
          name: alpine-dv
        spec:
          pvc:
            accessModes:
            - ReadWriteOnce
            resources:
              requests:
                storage: 2Gi
          source:
            http:
              url: http://cdi-http-import-server.kubevirt/images/alpine.iso
      running: false
      template:
        spec:
          domain:
            devices:
              disks:
              - disk:
                  bus: virtio
                name: datavolumedisk
          terminationGracePeriodSeconds: 0
          volumes:
          - dataVolume:
              name: alpine-dv
            name: datavolumedisk
"""
OLDEST_FIRST = """\
  updateStrategy:
    proactive:
      selectionPolicy:
        basePolicy: "Oldest"
"""
AUTOMATIC = f"""\
{POOL_HEAD}\
  replicas: 100
  maxUnavailable: 10
  scaleInStrategy:
    proactive:
      statePreservation: Offline
      selectionPolicy:
        basePolicy: "Oldest"
{OLDEST_FIRST}{POOL_TEMPLATE}"""
MANUAL = f"""\
{POOL_HEAD}\
  replica: 100
  scaleInStrategy:
    unmanaged: {{}}
  updateStrategy:
    unmanaged: {{}}
{POOL_TEMPLATE}"""
ORDER = """\
          - labelSelector
            - non-important-vms
"""
ORDERED = f"""\
{POOL_HEAD}\
  replicas: 100
  maxUnavailable: 10
  scaleInStrategy:
    proactive:
      selectionPolicy:
        orderedPolicies:
{ORDER}\
        basePolicy: "Oldest"
      statePreservation: Offline
{OLDEST_FIRST}{POOL_TEMPLATE}"""
# What is misspelled, what is said then, and what was meant.
MISSPELLED = {
    "manual": (MANUAL, "  replica: 100\n", "spec.replica: Forbidden: unknown field: did you mean replicas?", "  replicas: 100\n"),
    "ordered": (
        ORDERED,
        ORDER,
        "orderedPolicies: [{labelSelector: {matchLabels: {…}}}]",
        '          - labelSelector:\n              matchLabels:\n                non-important-vms: ""\n',
    ),
}


@both_ways
async def test_the_first_pool_of_the_seed_applies_as_printed(
    api: Api, namespace: str, kubectl: Kubectl, tmp_path: Path, how: tuple[str, ...]
) -> None:
    _applied(kubectl, tmp_path, AUTOMATIC, *how)
    assert (await api.get(POOLS, "my-vm-pool", namespace)).ok["spec"] == yaml.safe_load(AUTOMATIC)["spec"]


@both_ways
@pytest.mark.parametrize("name", MISSPELLED)
async def test_a_misspelled_pool_of_the_seed_is_refused_with_the_right_shape_and_applies_with_only_that_corrected(
    api: Api, namespace: str, kubectl: Kubectl, tmp_path: Path, name: str, how: tuple[str, ...]
) -> None:
    printed, wrong, said, meant = MISSPELLED[name]
    refused = kubectl.run("apply", *how, "-f", "-", stdin=printed)
    assert (refused.returncode != 0, said in refused.stderr) == (True, True), refused.stderr
    corrected = printed.replace(wrong, meant)
    assert corrected != printed
    _applied(kubectl, tmp_path, corrected, *how)
    assert (await api.get(POOLS, "my-vm-pool", namespace)).ok["spec"] == yaml.safe_load(corrected)["spec"]


# Seed 000 prints these fragments with `spec` below `kind`, and `selectors` beside it; corrected versions are in examples/.
HEAD = "apiVersion: migrations.kubevirt.io/v1alpha1\nkind: MigrationPolicy\n  spec:\n"
BY_NAMESPACE = "    namespaceSelector:\n      hpc-workloads: true       # Matches a key and a value \n"
BY_MACHINE = "    virtualMachineInstanceSelector:\n      workload-type: db       # Matches a key and a value \n"
SETTINGS = """\
    allowAutoConverge: true
    bandwidthPerMigration: 217Ki
    completionTimeoutPerGiB: 23
    allowPostCopy: false
"""
FRAGMENTS = {
    "settings": SETTINGS,
    "by namespace": f"  selectors:\n{BY_NAMESPACE}",
    "by machine": f"  selectors:\n{BY_MACHINE}",
    "by both": f"  selectors:\n{BY_NAMESPACE}{BY_MACHINE}",
}
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", FRAGMENTS)
def test_a_fragment_of_the_seed_is_no_manifest_as_it_is_printed(kubectl: Kubectl, name: str) -> None:
    assert kubectl.run("apply", "-f", "-", stdin=HEAD + FRAGMENTS[name]).returncode != 0


@pytest.mark.parametrize("name", FRAGMENTS)
async def test_a_fragment_of_the_seed_is_corrected_in_the_examples(api: Api, name: str) -> None:
    meant: Json = yaml.safe_load(FRAGMENTS[name])
    written = list(yaml.safe_load_all((EXAMPLES / "migration-policy.yaml").read_text()))
    corrected = [one for one in written if meant.items() <= one["spec"].items()]
    assert corrected, f"no example says {meant}"
    for document in corrected:
        assert (await api.create(POLICIES, document, dryRun="All", fieldValidation="Strict")).code == 201


# Seed 001 prints these two below a sentence each; both are pasted below `spec` here.
TERMS = {
    "by name": ("matchFields", {"key": "metadata.name", "operator": "In", "values": ["<nodeName>"]}),
    "by label": ("matchExpressions", {"key": "disktype", "operator": "In", "values": ["ssd"]}),
}


@pytest.mark.parametrize("name", TERMS)
async def test_a_term_of_the_seed_is_taken_as_the_list_that_is_printed(api: Api, namespace: str, name: str) -> None:
    (await api.create(INSTANCES, {"metadata": {"name": "vmi-fedora"}, "spec": {"domain": {}}}, namespace)).ok  # noqa: B018
    kind, test = TERMS[name]
    spec = {"vmiName": "vmi-fedora", "addedNodeSelectorTerm": [{kind: [test]}]}
    made = await api.create(MIGRATIONS, {"metadata": {"name": "m"}, "spec": spec}, namespace, fieldValidation="Strict")
    assert made.ok["spec"] == spec
