"""`herder start|stop|restart|pause|unpause` on simulated nodes."""

import shutil
from pathlib import Path

import pytest

from tests.e2e.herder import Herder
from tests.e2e.kubectl import Kubectl
from tests.e2e.manifests import machine
from tests.e2e.program import Up, until


@pytest.fixture
def herder(here: Kubectl, tmp_path: Path) -> Herder:
    """In the same namespace as kubectl."""
    return Herder(here.kubeconfig, tmp_path, here.namespace)


def field(kubectl: Kubectl, what: str, path: str) -> str:
    return kubectl("get", what, "web", "-o", f"jsonpath={{{path}}}")


@pytest.mark.parametrize("strategy", ["Halted", "Manual"])
def test_a_machine_is_started_paused_unpaused_restarted_and_stopped(here: Kubectl, herder: Herder, strategy: str) -> None:
    here.create(machine("web", strategy))
    started = herder("start", "web", "--wait").splitlines()
    assert started[0] == "virtualmachine.kubevirt.io/web is asked to start"
    assert started[-1].startswith("VirtualMachine web is Running on node-")
    assert field(here, "vm", ".status.printableStatus") == "Running"
    herder("pause", "web", "--wait")
    assert field(here, "vm", ".status.printableStatus") == "Paused"
    herder("unpause", "web", "--wait")
    assert field(here, "vm", ".status.printableStatus") == "Running"
    before = field(here, "vmi", ".metadata.uid")
    herder("restart", "web", "--wait")
    assert field(here, "vm", ".status.printableStatus") == "Running"
    assert field(here, "vmi", ".metadata.uid") != before
    assert herder("stop", "web", "--wait").splitlines()[-1].startswith("VirtualMachine web is Stopped")
    here("wait", "vmi/web", "--for=delete", "--timeout=20s")


def test_without_wait_it_only_asks(here: Kubectl, herder: Herder) -> None:
    here.create(machine("web"))
    assert herder("start", "web") == "virtualmachine.kubevirt.io/web is asked to start\n"
    assert field(here, "vm", ".spec.runStrategy") == "Always"
    here("wait", "vm/web", "--for=jsonpath={.status.printableStatus}=Running", "--timeout=20s")


def test_what_is_so_already_is_not_asked_again(here: Kubectl, herder: Herder) -> None:
    here.create(machine("web"))
    version = field(here, "vm", ".spec")
    assert herder("stop", "web", "--wait") == "virtualmachine.kubevirt.io/web unchanged\nVirtualMachine web is Stopped\n"
    assert field(here, "vm", ".spec") == version


def test_waiting_for_what_cannot_be_ends_with_the_reason(here: Kubectl, herder: Herder) -> None:
    large = machine("web")
    large["spec"]["template"]["spec"]["domain"] = {"cpu": {"cores": 400}, "memory": {"guest": "1Gi"}}
    here.create(large)
    ended = herder.run("start", "web", "--wait")
    assert ended.code == 8
    assert ended.err.startswith("herder: cannot start it now: VirtualMachine web is ErrorUnschedulable: ")
    assert "`herder explain placement vm/web` shows each node" in ended.err
    assert "ErrorUnschedulable" not in ended.out, "a failure is said once"
    said = herder.refused("migrate", "web")
    assert said.startswith("herder: the guest of web does not run, so there is nothing to move: Unschedulable: 0/")
    assert here("get", "vmim", "-o", "name") == ""


def test_a_guest_that_keeps_crashing_is_not_waited_for(here: Kubectl, herder: Herder) -> None:
    broken = machine("web")
    broken["spec"]["template"]["metadata"] = {"annotations": {"simulated.herder.dev/fails-at": "boot"}}
    here.create(broken)
    said = herder.refused("start", "web", "--wait")
    assert said.startswith("herder: cannot start it now: VirtualMachine web is CrashLoopBackOff: ")


def test_waiting_ends_when_the_machine_is_deleted_or_patience_is_over(here: Kubectl, herder: Herder) -> None:
    slow = machine("web")
    slow["spec"]["template"]["metadata"] = {"annotations": {"simulated.herder.dev/boot": "1h"}}
    here.create(slow)
    said = herder.refused("start", "web", "--timeout", "0.2", code=9)
    assert said.startswith("herder: after 0.2 s it is not so yet: VirtualMachine web is ")
    assert f"`herder stop web -n {here.namespace}` takes it back" in said
    waiting = herder.start("start", "web", "--wait")
    assert waiting.stdout is not None
    assert waiting.stdout.readline() == b"virtualmachine.kubevirt.io/web unchanged\n"
    here("delete", "vm", "web", "--wait=false")
    assert waiting.wait(30) == 8
    assert b"Terminating" in (said := waiting.stdout.read()) or b"was deleted" in said


@pytest.mark.parametrize("verb", ["restart", "pause", "unpause"])
def test_what_does_not_run_is_refused_with_a_sentence(here: Kubectl, herder: Herder, verb: str) -> None:
    here.create(machine("web"))
    here("wait", "vm/web", "--for=jsonpath={.status.printableStatus}=Stopped", "--timeout=20s")
    said = f"herder: VirtualMachine web is Stopped, so there is nothing to {verb}; `herder start web` starts it"
    assert herder.refused(verb, "web") == said


def test_a_machine_that_is_not_there_is_named(herder: Herder) -> None:
    assert herder.refused("start", "nobody") == 'herder: virtualmachines.kubevirt.io "nobody" not found'


def test_without_any_kubeconfig_it_says_where_it_looked(tmp_path: Path) -> None:
    said = Herder(None, tmp_path).refused("start", "web", code=6)
    assert said.startswith(f"herder: there is no kubeconfig at {tmp_path}/.kube/config")


def test_without_a_kubeconfig_the_herder_up_of_this_folder_is_asked(herd: Up, here: Kubectl, tmp_path: Path) -> None:
    (tmp_path / ".herder").mkdir()
    shutil.copy(herd.kubeconfig, tmp_path / ".herder" / "kubeconfig")
    here.create(machine("web"))
    assert Herder(None, tmp_path, here.namespace).run("start", "web").code == 0
    # Who names a file means that one.
    said = Herder(tmp_path / "misspelt", tmp_path, here.namespace).refused("stop", "web", code=6)
    assert "there is no kubeconfig at" in said


def test_a_server_that_is_away_is_said_to_be(herd: Up, tmp_path: Path) -> None:
    text = herd.kubeconfig.read_text().replace(f":{herd.port}", ":1")
    (tmp_path / "config").write_text(text)
    assert "no whole answer from the API server" in Herder(tmp_path / "config", tmp_path).refused("start", "web", code=7)


def test_who_waits_is_told_why_nothing_happens_and_interrupted_it_ends_quietly(here: Kubectl, herder: Herder) -> None:
    slow = machine("web")
    slow["spec"]["template"]["metadata"] = {"annotations": {"simulated.herder.dev/boot": "1h"}}
    here.create(slow)
    waiting = herder.start("start", "web", "--wait")
    assert waiting.stdout is not None
    why = b"VirtualMachine web is Starting: it waits for node-"
    until(lambda: waiting.stdout is not None and why in waiting.stdout.readline(), "it did not say what it waits for", 60)
    waiting.send_signal(2)
    assert waiting.wait(20) == 130
    assert b"Traceback" not in waiting.stdout.read()
