"""Processes that die: the others go on, and what was started stays started."""

import os
import pty
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.kubectl import Kubectl
from tests.e2e.manifests import config_map
from tests.e2e.program import READY, Up, children_of, is_running, until
from tests.engines.embedded import find_program
from tests.engines.processes import free_ports


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """One whose processes are killed; the tests of other files do not use it."""
    with Up(tmp_path_factory.mktemp("mortal"), nodes=1) as up:
        yield up


def _kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    until(lambda: not is_running(pid), f"process {pid} is still there")


def test_a_killed_engine_comes_back_with_everything(mortal: Up, kubectl_program: Path, tmp_path: Path) -> None:
    kubectl = Kubectl(kubectl_program, mortal.kubeconfig, tmp_path)
    kubectl.create(config_map("before"))
    engine, agents = mortal.child("engine"), mortal.child("agents")
    _kill(engine)
    # The port is never given up: kubectl waits for the new engine instead of being refused.
    assert kubectl("get", "cm", "before", "-o", "name") == "configmap/before\n"
    kubectl.create(config_map("after"))
    assert mortal.child("engine") != engine
    assert mortal.child("agents") == agents


def test_killed_agents_come_back_and_renew_their_node(mortal: Up, kubectl_program: Path, tmp_path: Path) -> None:
    kubectl = Kubectl(kubectl_program, mortal.kubeconfig, tmp_path).inside("kube-node-lease")

    def renewed() -> str:
        return kubectl("get", "lease", "node-1", "-o", "jsonpath={.spec.renewTime}")

    engine, agents, before = mortal.child("engine"), mortal.child("agents"), renewed()
    _kill(agents)
    # Well before the next renewal is due the new process has registered and renewed.
    until(lambda: renewed() > before, "nobody renewed the node", pause=0.2)
    assert mortal.child("agents") != agents
    assert mortal.child("engine") == engine


def test_killed_controllers_come_back_and_lead_without_waiting_for_their_own_lease(
    mortal: Up, kubectl_program: Path, tmp_path: Path
) -> None:
    kubectl = Kubectl(kubectl_program, mortal.kubeconfig, tmp_path).inside("kube-system")

    def lease() -> list[str]:
        fields = "{.spec.holderIdentity} {.spec.leaseTransitions} {.spec.renewTime}"
        return kubectl("get", "lease", "herder-controllers", "-o", f"jsonpath={fields}").split()

    engine, controllers, before = mortal.child("engine"), mortal.child("controllers"), lease()
    _kill(controllers)
    # It is good for a minute: the next one does not wait for that.
    until(lambda: mortal.children().get("controllers", controllers) != controllers, "no new process")
    until(lambda: lease()[2] > before[2], "nobody renewed the lease", pause=0.2)
    assert lease()[:2] == before[:2]
    assert mortal.child("engine") == engine


def test_what_dies_is_said_to_have_died(mortal: Up) -> None:
    _kill(mortal.child("agents"))
    until(lambda: "child=agents" in mortal.err, "nothing was said about it")
    assert "Traceback" not in mortal.err


def test_a_killed_supervisor_takes_its_processes_along_and_the_next_one_starts_at_once(
    kubectl_program: Path, tmp_path: Path
) -> None:
    with Up(tmp_path) as first:
        Kubectl(kubectl_program, first.kubeconfig, tmp_path).create(config_map("kept"))
        children = first.children()
        assert set(children) == {"engine", "controllers", "agents"}
        first.end(signal.SIGKILL)
    with Up(tmp_path, port=first.port) as second:
        kubectl = Kubectl(kubectl_program, second.kubeconfig, tmp_path)
        assert kubectl("get", "cm", "kept", "-o", "name") == "configmap/kept\n"
        until(lambda: not any(is_running(pid) for pid in children.values()), "a process outlived its supervisor")


def test_the_next_herder_waits_for_what_a_killed_one_has_left(kubectl_program: Path, tmp_path: Path) -> None:
    with Up(tmp_path) as first:
        children = first.children()
        # One that takes its time to end, and holds data and port meanwhile.
        os.kill(children["engine"], signal.SIGSTOP)
        first.end(signal.SIGKILL)
    (tmp_path / "second").mkdir()
    second = Up(tmp_path / "second", data=first.data, port=first.port)
    try:
        until(lambda: not is_running(children["controllers"]) and not is_running(children["agents"]), "they outlive it")
        until(lambda: "are waited for" in second.err, "it did not wait")
        assert second.children() == {}
    finally:
        os.kill(children["engine"], signal.SIGCONT)
    with second:
        assert Kubectl(kubectl_program, second.kubeconfig, tmp_path)("get", "ns", "default", "-o", "name") == "namespace/default\n"
        assert not is_running(children["engine"])


def test_a_closed_terminal_stops_herder_in_order(tmp_path: Path) -> None:
    """As when ssh loses its connection: nothing that is said there can be read any more, which is no reason to fail."""
    command = [str(find_program()), "up", "--data", "data", "--listen", f"127.0.0.1:{free_ports(1)[0]}", "--runtime", "simulated"]
    pid, terminal = pty.fork()
    if pid == 0:
        # Whoever runs the tests by nohup has the signal ignored, and herder keeps to that.
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.chdir(tmp_path)
        os.execv(command[0], command)
    said = b""
    while READY.encode() not in said:
        said += os.read(terminal, 4096)
    children = children_of(pid)
    assert set(children) == {"engine", "controllers", "agents"}
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert not any(is_running(child) for child in children.values())
