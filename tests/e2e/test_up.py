"""`herder up` on a machine where nothing went wrong."""

import signal
import stat
import subprocess
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.e2e.kubectl import Json, Kubectl
from tests.e2e.manifests import ROOT, config_map, machine
from tests.e2e.program import Up, is_running


def _printed_commands(up: Up) -> str:
    """What the program tells people to type: the indented lines."""
    return "\n".join(line.strip() for line in up.out.splitlines() if line.startswith("  "))


@pytest.fixture(scope="module")
def spaced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """In a directory with spaces in its name, and with more letters than a socket's name may have."""
    folder = tmp_path_factory.mktemp("home of a person")
    with Up(folder, "--runtime", "simulated", data=folder / ("all my data " * 9).strip(), nodes=1) as up:
        yield up


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """With no nodes, and its kubeconfig in a folder that was not there."""
    folder = tmp_path_factory.mktemp("bare")
    with Up(folder, "--kubeconfig", str(folder / "new folder" / "config"), nodes=0) as up:
        yield up


def test_what_it_says_to_type_works_when_pasted(spaced: Up, kubectl_program: Path, tmp_path: Path) -> None:
    shell = Kubectl(kubectl_program, Path("/nowhere"), tmp_path)
    commands = _printed_commands(spaced)
    assert "kubectl get nodes" in commands
    answer = subprocess.run(
        ["bash", "-euc", commands], env=shell.environment, cwd=ROOT, capture_output=True, text=True, timeout=90, check=False
    )
    assert answer.returncode == 0, answer.stderr
    assert "node-1   Ready" in answer.stdout
    assert "virtualmachine.kubevirt.io/counter created" in answer.stdout
    assert answer.stdout.splitlines()[-1].startswith("boot "), "what the guest wrote to its console"


def test_it_says_where_it_is_and_with_what(spaced: Up) -> None:
    assert spaced.out.splitlines()[0] == f"herder is up: https://127.0.0.1:{spaced.port}, 1 simulated node, data in {spaced.data}"
    assert spaced.err == ""


def test_what_it_keeps_is_for_its_owner_alone(spaced: Up) -> None:
    assert stat.S_IMODE(spaced.data.stat().st_mode) == 0o700
    for file in (spaced.data / "kubeconfig", spaced.data / "pki" / "ca.key", spaced.data / "pki" / "server.key"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_nodes_appear_ready_with_room_and_a_runtime(kubectl: Kubectl) -> None:
    nodes: list[Json] = kubectl.json("get", "nodes")["items"]
    assert [node["metadata"]["name"] for node in nodes] == ["node-1", "node-2"]
    for node in nodes:
        status = node["status"]
        assert {entry["type"]: entry["status"] for entry in status["conditions"]}["Ready"] == "True"
        assert status["allocatable"]["cpu"]
        assert status["nodeInfo"]["containerRuntimeVersion"].startswith("simulated://")
    rows = [line.split()[:2] for line in kubectl("get", "nodes", "--no-headers").splitlines()]
    assert rows == [["node-1", "Ready"], ["node-2", "Ready"]]


def test_no_nodes_may_be_wanted(bare: Up, kubectl_program: Path, tmp_path: Path) -> None:
    assert set(bare.children()) == {"engine", "controllers", "agents"}
    assert Kubectl(kubectl_program, bare.kubeconfig, tmp_path).run("get", "nodes").stderr == "No resources found\n"


def test_the_settings_of_the_cluster_are_there_to_be_edited_and_say_what_is_in_use(
    bare: Up, kubectl_program: Path, tmp_path: Path
) -> None:
    kubectl = Kubectl(kubectl_program, bare.kubeconfig, tmp_path, "kubevirt")
    assert kubectl.json("get", "kubevirt", "kubevirt")["spec"] == {}
    wanted = "spec: {configuration: {migrations: {progressTimeout: 77}}}"
    said = kubectl("edit", "kubevirt", "kubevirt", KUBE_EDITOR=f"sed -i 's/^spec: {{}}$/{wanted}/'")
    assert said == "kubevirt.kubevirt.io/kubevirt edited\n"
    kubectl("wait", "kubevirt", "kubevirt", "--for=jsonpath={.status.observedGeneration}=2", "--timeout=20s")
    status = kubectl.json("get", "kubevirt", "kubevirt")["status"]
    used = status["configuration"]["migrations"]
    assert (used["progressTimeout"], used["completionTimeoutPerGiB"]) == (77, 150)
    (row,) = kubectl("get", "kubevirt", "--no-headers").splitlines()
    assert row.split()[2:] == ["Deployed", version("herder")]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_it_stops_cleanly_and_leaves_no_process(tmp_path: Path, number: signal.Signals) -> None:
    with Up(tmp_path) as up:
        children = up.children()
        assert set(children) == {"engine", "controllers", "agents"}
        assert up.end(number) == 0
        assert not any(is_running(pid) for pid in children.values())
        assert up.out.splitlines()[-1].startswith("herder has stopped")
        assert up.err == ""


def _as_written(kubectl: Kubectl, document: Json) -> Json:
    """Without its status, which goes on."""
    found = kubectl.json("get", document["kind"], document["metadata"]["name"])
    return {"uid": found["metadata"]["uid"], "spec": found.get("spec"), "data": found.get("data")}


def test_what_was_written_is_there_after_a_restart(kubectl_program: Path, tmp_path: Path) -> None:
    written = [machine("one", "Always"), config_map("settings", colour="blue")]
    with Up(tmp_path, "--runtime", "simulated") as up:
        kubectl = Kubectl(kubectl_program, up.kubeconfig, tmp_path)
        kubectl.create(*written)
        before = [_as_written(kubectl, document) for document in written]
    # The same port: the kubeconfig of the first run stays good, its certificate included.
    kept = tmp_path / "kept"
    kept.write_bytes(up.kubeconfig.read_bytes())
    with Up(tmp_path, "--runtime", "simulated", port=up.port):
        again = Kubectl(kubectl_program, kept, tmp_path)
        assert [_as_written(again, document) for document in written] == before
        again.create(config_map("more"))


def test_the_kubeconfig_is_written_where_it_is_asked_for(bare: Up, kubectl_program: Path, tmp_path: Path) -> None:
    wanted = bare.data.parent / "new folder" / "config"
    assert bare.kubeconfig == wanted
    assert stat.S_IMODE(wanted.stat().st_mode) == 0o600
    assert not (bare.data / "kubeconfig").exists()
    assert Kubectl(kubectl_program, wanted, tmp_path)("config", "current-context") == "herder\n"
