"""Templates of pools that come and go: back to an earlier one, to one that fails, to one with other disks; and a spoilt disk."""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api import labels
from tests.simulation.matrix import Expect, Scenario, Step
from tests.simulation.pools.scenario import BLANK, KEY, Json, has, healed, make, objects, patch, pools, spoil, template

PING: Json = {"guestAgentPing": {}, "periodSeconds": 1}
# How often what fails is tried depends on who was away meanwhile, and on when somebody's time is up.
TRIED = frozenset(("virtualmachineinstances.kubevirt.io default/web-1", "pods default/virt-launcher-web-1-<uid>"))
# Who clears a volume that is gone, and has not heard that this is done, does it once more.
CLEARED = frozenset(("pods herder-system/clear-pvc-<uid>",))
# Who has heard that a disk is gone, and not yet that its machine is going, makes another one, which goes with the machine.
DISK = frozenset(
    (
        *("datavolumes.cdi.kubevirt.io default/disk-1", "persistentvolumeclaims default/disk-1", "persistentvolumes pvc-<uid>"),
        *(f"pods default/importer-<uid>-{number}" for number in (0, 1)),
    )
)


def behaving(memory: str, fails_at: str | None = None, **written: Any) -> Json:
    """For a merge patch: with nothing, what was said before is taken away."""
    wanted = template(memory, **written)
    wanted["spec"]["template"]["metadata"]["annotations"][f"{labels.SIMULATED}fails-at"] = fails_at
    return wanted


def trying(name: str, *steps: Step, expect: Expect, tried: frozenset[str]) -> Scenario:
    return msgspec.structs.replace(pools(name, *steps, expect=expect), tried=tried)


def with_storage(name: str, *steps: Step, expect: Expect, tried: frozenset[str] = frozenset()) -> Scenario:
    """Machines have disks, and run with them."""
    return msgspec.structs.replace(trying(name, *steps, expect=expect, tried=tried | CLEARED), storage="shared")


def both(*looks: Expect) -> Expect:
    return lambda left: next((said for look in looks if (said := look(left))), "")


def revisions(*wanted: tuple[str, int]) -> Expect:
    """Which are kept, by the memory that they say, with their numbers; the oldest first."""

    def look(left: dict[str, bytes]) -> str:
        found = [msgspec.json.decode(raw) for name, raw in left.items() if name.startswith("controllerrevisions.apps ")]
        kept = sorted((one["revision"], _memory_of(one)) for one in found)
        return "" if kept == [(number, memory) for memory, number in wanted] else f"{wanted} should be kept, but it is {kept}"

    return look


def _memory_of(revision: Json) -> str:
    return revision["data"]["spec"]["template"]["spec"]["template"]["spec"]["domain"]["memory"]["guest"]


def rolled_back(left: dict[str, bytes]) -> str:
    """To what was good, and the pool remembers what was not."""
    status = objects(left, "virtualmachinepools")[KEY.name]["status"]
    words = {one.get("status", {}).get("printableStatus") for one in objects(left, "virtualmachines").values()}
    said = [one["reason"] for one in status["conditions"] if one["type"] == "Progressing"]
    failed = status.get("failedRevision") == status["updateRevision"] != status.get("currentRevision")
    return "" if failed and said == ["RolledBack"] and words == {"Running"} else f"it should have gone back: {status}, {words}"


def has_class(left: dict[str, bytes]) -> str:
    """The disk is made from the template as it is now."""
    spec = objects(left, "datavolumes")["disk-1"]["spec"]
    return "" if spec["pvc"].get("storageClassName") == labels.STORAGE_CLASS else f"the disk should be a new one, but it is {spec}"


def other_disk() -> Json:
    spec = {**BLANK, "pvc": {**BLANK["pvc"], "storageClassName": labels.STORAGE_CLASS}}
    return {"spec": {"dataVolumeTemplates": [{"metadata": {"name": "disk"}, "spec": spec}]}}


REVISED = pools(
    "revised",
    make(1, template(strategy="Halted"), revisionHistoryLimit=1),
    patch(template=template("96Mi", strategy="Halted")),
    # Back: it is the newest again. And on: of the two that nobody has any more the older one goes.
    patch(template=template("64Mi", strategy="Halted")),
    patch(template=template("128Mi", strategy="Halted")),
    expect=both(has(["web-1"], "128Mi", "Stopped"), revisions(("64Mi", 3), ("128Mi", 4))),
)
ROLLED_BACK = trying(
    "rolled back by itself",
    make(1, template(), progressDeadlineSeconds=15, updateStrategy={"proactive": {"onFailure": "Rollback"}}),
    # There is no room for it: whether one that fails waits to be tried again when the time is up would be chance.
    patch(template=template("64Gi")),
    expect=rolled_back,
    tried=TRIED,
)
REPROVISIONED = with_storage(
    "reprovisioned",
    make(1, template(disk=True), updateStrategy={"proactive": {"volumes": "Reprovision"}}),
    patch(template=other_disk()),
    expect=both(has(["web-1"], volumes=True), has_class),
)
HEALED_WITH_A_DISK = with_storage(
    "healed with a disk",
    make(1, template(disk=True, livenessProbe=PING), autohealing={"startupFailureThreshold": 1}),
    spoil("web-1"),
    expect=both(healed(["web-1"], "web-1"), has(["web-1"], volumes=True)),
    tried=TRIED | DISK,
)
