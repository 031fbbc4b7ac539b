"""A part of a process ends by itself: the process says so and ends, is started again, and what that part does goes on."""

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.kubectl import Kubectl
from tests.e2e.manifests import config_map, machine
from tests.e2e.program import Up, until

# Read by every Python that is started: in the first process of that name, the part fails once it is told to.
FAULT = """
import asyncio, os, sys
from pathlib import Path

TOLD = Path(__file__).parent / "told"
GIVEN = Path(__file__).parent / "given"

def due():
    if not TOLD.exists():
        return False
    try:
        GIVEN.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True

if sys.orig_argv[1:4] == ["-m", "herder.app", "{process}"]:
{patch}
"""

HOUSEKEEPING = """
from herder.server.housekeeping.worker import Worker
goes_on = Worker.run

async def run(self):
    working = asyncio.ensure_future(goes_on(self))
    while not due():
        await asyncio.sleep(0.05)
    working.cancel()
    raise OverflowError("int too large to convert to float")

Worker.run = run
"""

WRITER = """
from herder.server.store.writer import ThreadWriter
goes_on = ThreadWriter._take

def take(self):
    if due():
        raise MemoryError("for the thread that writes")
    return goes_on(self)

ThreadWriter._take = take
"""

CONTROLLER = """
from herder.kube.queue import Queue
goes_on = Queue.get

async def get(self):
    found = await goes_on(self)
    if due():
        raise LookupError("a bug in the queue")
    return found

Queue.get = get
"""

HEARTBEAT = """
from herder.nodes.heartbeat import Heartbeat
goes_on = Heartbeat._renew

async def renew(self):
    if due():
        raise LookupError("a bug in the heartbeat")
    await goes_on(self)

Heartbeat._renew = renew
"""


def _collects_garbage(kubectl: Kubectl) -> None:
    kubectl.create(config_map("owner"))
    uid = kubectl.json("get", "cm", "owner")["metadata"]["uid"]
    owned = config_map("owned")
    owned["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}]
    kubectl.create(owned)
    kubectl("delete", "cm", "owner")
    kubectl("wait", "--for=delete", "cm/owned", "--timeout=60s")


def _writes(kubectl: Kubectl) -> None:
    kubectl.create(config_map("after"))


def _starts_machines(kubectl: Kubectl) -> None:
    kubectl.create(machine("after", "Always"))
    kubectl("wait", "--for=condition=Ready", "vm/after", "--timeout=60s")


@pytest.mark.parametrize(
    ("process", "patch", "goes_on"),
    [
        ("engine", HOUSEKEEPING, _collects_garbage),
        ("engine", WRITER, _writes),
        ("controllers", CONTROLLER, _starts_machines),
        ("agents", HEARTBEAT, _starts_machines),
    ],
    ids=["a loop of the housekeeping", "the thread that writes", "a controller's worker", "a node's heartbeat"],
)
def test_a_process_whose_part_ends_is_started_again_and_goes_on(
    tmp_path: Path,
    kubectl_program: Path,
    monkeypatch: pytest.MonkeyPatch,
    process: str,
    patch: str,
    goes_on: Callable[[Kubectl], None],
) -> None:
    faults = tmp_path / "faults"
    faults.mkdir()
    (faults / "sitecustomize.py").write_text(FAULT.format(process=process, patch=textwrap.indent(patch, "    ")))
    monkeypatch.setenv("PYTHONPATH", str(faults))
    with Up(tmp_path, "--heartbeat", "0.2") as up:
        kubectl = Kubectl(kubectl_program, up.kubeconfig, tmp_path)
        before = up.children()
        (faults / "told").touch()
        if process == "controllers":
            kubectl.create(machine("something-to-do", "Halted"))
        elif process == "engine":
            # Whoever waits for the answer meanwhile asks again.
            kubectl.run("create", "configmap", "something-to-do")
        until(lambda: up.children().get(process, before[process]) != before[process], f"{process} goes on", 60)
        goes_on(kubectl)
        after = up.children()
        assert {name for name in before if after[name] != before[name]} == {process}
        assert "Traceback" in up.err
        assert "a process died and is started again" in up.err
        if process == "engine":
            assert "a part of this process ended by itself" in up.err
            assert "code=72" in up.err
