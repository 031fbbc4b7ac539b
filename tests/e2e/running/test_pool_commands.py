"""`herder pool …` on simulated nodes, by somebody who has the role vm-owner in one namespace and nothing else."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.herder import Herder
from tests.e2e.kubectl import Kubectl
from tests.e2e.program import Up, until
from tests.engines.embedded import find_program

Json = dict[str, Any]
OFFLINE = {"proactive": {"statePreservation": "Offline"}}
DISK = {"metadata": {"name": "disk"}, "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Mi"}}}}}


def web(replicas: int, *, memory: str = "64Mi", annotations: Json | None = None, disk: bool = False, **spec: Any) -> Json:
    inner: Json = {"domain": {"memory": {"guest": memory}}}
    machine: Json = {"runStrategy": "Always", "template": {"metadata": {"annotations": annotations or {}}, "spec": inner}}
    if disk:
        inner["volumes"] = [{"name": "d", "dataVolume": {"name": "disk"}}]
        machine["dataVolumeTemplates"] = [DISK]
    whole = {"replicas": replicas, "template": {"spec": machine}, **spec}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachinePool", "metadata": {"name": "web"}, "spec": whole}


@pytest.fixture
def owner(herd: Up, here: Kubectl, tmp_path: Path) -> Herder:
    given = ("--role", "vm-owner", "--namespace", here.namespace)
    Herder(None, tmp_path)("user", "add", here.namespace, *given, "--data", str(herd.data), "--kubeconfig", "owner")
    return Herder(tmp_path / "owner", tmp_path, here.namespace)


def machines(here: Kubectl) -> set[str]:
    return set(here("get", "vm", "-o", "jsonpath={.items[*].metadata.name}").split())


def steps(owner: Herder, *words: str) -> list[tuple[str, str]]:
    answer = json.loads(owner("pool", "plan", "web", *words, "-o", "json"))
    return [(step["action"], step["name"]) for step in answer["steps"]]


def cells(text: str, name: str) -> list[str]:
    return next(line for line in text.splitlines() if line.startswith(f"{name} ")).split()


def completed(owner: Herder, line: str) -> str:
    """As the script of bash asks."""
    words = line.split(" ")
    asked = {"_HERDER_COMPLETE": "bash_complete", "COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}
    return subprocess.run([str(find_program())], capture_output=True, text=True, env=owner.environment | asked, check=True).stdout


def made(here: Kubectl, owner: Herder, document: Json) -> None:
    here.create(document)
    owner("pool", "rollout", "status", "web", "--timeout", "60")


def test_what_is_planned_is_what_is_done_and_planning_changes_nothing(here: Kubectl, owner: Herder, tmp_path: Path) -> None:
    made(here, owner, web(3))
    before = here("get", "vmpool", "web", "-o", "jsonpath={.metadata.generation}")
    shown = owner("pool", "status", "web")
    assert shown.startswith("pool web: 3 of 3 machines, 3 ready, 3 updated\nrollout, 100%: ")
    assert cells(shown, "web-2")[2:4] == ["yes", here("get", "vmi", "web-2", "-o", "jsonpath={.status.nodeName}")]
    (tmp_path / "new.yaml").write_text(json.dumps(web(3, memory="96Mi")))
    told = owner("pool", "plan", "web", "-f", "new.yaml")
    assert "which is new" in told and "then 2 more are restarted, at most 1 unavailable at a time: " in told
    assert "you may not read nodes" in told
    (tmp_path / "wrong.yaml").write_text(json.dumps(web(3, maxUnavailable=0)))
    assert "maxUnavailable" in owner.refused("pool", "plan", "web", "-f", "wrong.yaml")
    assert "metadata.name is 'web'" in owner.refused("pool", "plan", "db", "-f", "new.yaml", code=2)
    gone = steps(owner, "--replicas", "1")
    assert [action for action, _ in gone] == ["Delete", "Delete"]
    assert here("get", "vmpool", "web", "-o", "jsonpath={.metadata.generation}") == before
    assert machines(here) == {"web-1", "web-2", "web-3"}
    here("scale", "vmpool", "web", "--replicas=1")
    until(lambda: len(machines(here)) == 1, "two were not taken", 60)
    assert machines(here) == {"web-1", "web-2", "web-3"} - {name for _, name in gone}
    assert steps(owner) == []


def test_machines_are_removed_protected_detached_and_attached_by_name(here: Kubectl, owner: Herder, tmp_path: Path) -> None:
    made(here, owner, web(4, disk=True, scaleInStrategy=OFFLINE))
    claim = here("get", "pvc", "disk-2", "-o", "jsonpath={.metadata.uid}")
    # Marked for long: not the one that is meant.
    here("annotate", "vm", "web-1", "herder.dev/scale-in=first")
    assert "(replicas 4 → 3); its volumes are kept" in owner("pool", "remove", "web-2", "--wait")
    assert machines(here) == {"web-1", "web-3", "web-4"}
    assert cells(owner("pool", "preserved", "web"), "web-2")[1] == "disk-2"
    words = {"_HERDER_COMPLETE": "bash_complete", "COMP_CWORD": "7"}
    line = f"herder pool preserved web -n {here.namespace} --delete ".replace(" ", "\n")
    said = subprocess.run(
        [str(find_program())], capture_output=True, text=True, env=owner.environment | words | {"COMP_WORDS": line}
    )
    assert said.stdout == "plain,web-2\n"
    assert steps(owner, "--replicas", "4") == [("Create", "web-2")]
    here("scale", "vmpool", "web", "--replicas=4")
    until(lambda: "web-2" in machines(here), "web-2 did not come back", 60)
    assert here("get", "pvc", "disk-2", "-o", "jsonpath={.metadata.uid}") == claim
    owner("pool", "rollout", "status", "web", "--timeout", "60")

    owner("pool", "protect", "web-1")
    assert "is protected; `herder pool protect --undo web-1`" in owner.refused("pool", "remove", "web-1")
    assert steps(owner, "--replicas", "0") and ("Delete", "web-1") not in steps(owner, "--replicas", "0")
    guest = here("get", "vmi", "web-1", "-o", "jsonpath={.metadata.uid}")
    owner("pool", "detach", "web-1")
    until(lambda: "web-5" in machines(here), "no other was made in its place", 60)
    assert "detached: web-1\n" in owner("pool", "status", "web")
    assert "is of no pool; `herder pool attach web-1`" in owner.refused("pool", "remove", "web-1")
    assert "one too many, and one is taken" in owner("pool", "attach", "web-1")
    until(lambda: len(machines(here)) == 4, "the one too many was not taken", 60)
    assert "web-1" in machines(here), "it is still protected"
    assert here("get", "vmi", "web-1", "-o", "jsonpath={.metadata.uid}") == guest, "its guest has noticed nothing"

    kept = owner("pool", "preserved", "web").splitlines()[1].split()
    assert owner("pool", "preserved", "web", "--delete", kept[0]) == f"datavolume.cdi.kubevirt.io/{kept[1]} deleted\n"
    assert "keeps nothing of 'web-9'; nothing is kept at all" in owner.refused("pool", "preserved", "web", "--delete", "web-9")

    owner("pool", "rollout", "status", "web", "--timeout", "60")
    before = machines(here)
    asked = sorted(before - {"web-1"})[:2]
    together = [owner.start("pool", "remove", name) for name in asked]
    assert [one.wait(60) for one in together] == [0, 0]
    until(lambda: machines(here) == before - {*asked}, "others than those two were taken, or they were not", 60)
    assert here("get", "vmpool", "web", "-o", "jsonpath={.spec.replicas}") == "2"


def test_a_rollout_is_held_tried_on_one_machine_and_taken_back(here: Kubectl, owner: Herder) -> None:
    made(here, owner, web(3))
    owner("pool", "rollout", "pause", "web")
    here("apply", "-f", "-", stdin=web(3, memory="96Mi", updateStrategy={"proactive": {"paused": True}}))
    assert "`herder pool rollout resume web`" in owner.refused("pool", "rollout", "status", "web", "--timeout", "60")
    assert (
        owner("pool", "rollout", "replace", "web-3", "--wait", "--timeout", "60")
        .splitlines()[-1]
        .startswith("VirtualMachine web-3 is ready with revision web-")
    )
    listed = json.loads(owner("pool", "rollout", "history", "web", "-o", "json"))["revisions"]
    assert [(one["number"], one["machines"]) for one in listed] == [(1, ["web-1", "web-2"]), (2, ["web-3"])]
    assert listed[1]["changes"] == ["template.spec.template.spec.domain.memory.guest: 64Mi → 96Mi"]
    assert "is complete: 3 of 3 have it" in owner("pool", "rollout", "resume", "web", "--wait", "--timeout", "60")
    assert "goes back to revision 1" in owner("pool", "rollout", "undo", "web", "--wait", "--timeout", "60")
    memory = here("get", "vmi", "-o", "jsonpath={.items[*].spec.domain.memory.guest}")
    assert memory == "64Mi 64Mi 64Mi"
    assert "has no revision 9; there are: 2, 3" in owner.refused("pool", "rollout", "undo", "web", "--to-revision", "9")
    guests = here("get", "vmi", "-o", "jsonpath={.items[*].metadata.uid}").split()
    owner("pool", "rollout", "restart", "web", "--wait", "--timeout", "60")
    assert not set(guests) & set(here("get", "vmi", "-o", "jsonpath={.items[*].metadata.uid}").split())


def test_a_rollout_that_fails_is_said_to_and_undone(here: Kubectl, owner: Herder) -> None:
    # Only what never works is given little time.
    made(here, owner, web(2))
    broken = {"simulated.herder.dev/fails-at": "boot"}
    with owner.start("pool", "status", "web", "--watch") as watching:
        assert watching.stdout is not None
        try:
            assert watching.stdout.readline().startswith(b"web: 2 of 2 ready, 2 updated; ")
            here("apply", "-f", "-", stdin=web(2, memory="96Mi", annotations=broken, progressDeadlineSeconds=1))
            said = owner.refused("pool", "rollout", "status", "web", "--timeout", "60")
            assert "failed: web-" in said and said.endswith("`herder pool rollout undo web` goes back")
            rows = json.loads(owner("pool", "status", "web", "-o", "json"))["machines"]
            well, stuck = sorted(rows, key=lambda row: not row["ready"])
            assert (well["ready"], stuck["ready"]) == (True, False)
            assert stuck["why"] and well["why"] == "to be updated"
            assert "so nobody else gets it" in owner.refused("pool", "rollout", "replace", well["name"])
            here("patch", "vmpool", "web", "--type", "merge", "-p", '{"spec":{"progressDeadlineSeconds":600}}')
            owner("pool", "rollout", "undo", "web", "--wait", "--timeout", "60")
            shown = iter(watching.stdout.readline, b"")
            assert any(line.startswith(f"{stuck['name']}: not ready".encode()) for line in shown)
            watching.send_signal(2)
            assert watching.wait(20) == 130
            assert b"Traceback" not in watching.stdout.read()
        finally:
            watching.kill()


def test_what_is_not_there_is_said_with_what_is(here: Kubectl, owner: Herder) -> None:
    assert owner.refused("pool", "status", "web").endswith(f"there is no pool 'web' in namespace '{here.namespace}', and no other")
    here.create(web(0))
    assert owner.refused("pool", "rollout", "undo", "wep").endswith("; did you mean web?")
    missing = f"herder: there is no VirtualMachine 'web-1' in namespace '{here.namespace}'"
    assert owner.refused("pool", "detach", "web-1") == f"{missing}; `herder pool status web` lists those of pool web"
    assert "-o: is for one answer" in owner.refused("pool", "status", "web", "--watch", "-o", "json", code=2)
