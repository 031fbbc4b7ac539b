"""Pools, their machines and what is known of them, for tests of their rules."""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api.kinds import VirtualMachinePool
from herder.rules.plans import moment, text_of
from herder.rules.pools import PoolSnapshot
from herder.rules.pools.member import Member, RunField
from herder.rules.pools.revisions import Revision, content_of, revision_name, revision_of
from herder.rules.pools.snapshot import OwnedVolume

NOW = 1_750_000_000.0
Json = dict[str, Any]


def at(seconds: float) -> str:
    return text_of(moment(NOW + seconds))


def template(memory: str = "1Gi", *, labels: Json | None = None, disk: str = "", run: Json | None = None, **instance: Any) -> Json:
    """A pool's template; `disk`: the image of a DataVolume called `disk`."""
    spec: Json = {"domain": {"memory": {"guest": memory}}, **instance}
    whole: Json = {
        **(run or {"runStrategy": "Always"}),
        "template": {"metadata": {"labels": labels or {"app": "web"}}, "spec": spec},
    }
    if disk:
        source = {"source": {"http": {"url": disk}}, "pvc": {"resources": {"requests": {"storage": "1Gi"}}}}
        whole["dataVolumeTemplates"] = [{"metadata": {"name": "disk"}, "spec": source}]
        spec["volumes"] = [{"name": "root", "dataVolume": {"name": "disk"}}, *spec.get("volumes", [])]
    return {"metadata": {"labels": {"tier": "front"}}, "spec": whole}


A, B, C = template("1Gi"), template("2Gi"), template("3Gi")


def pool(
    replicas: int = 3, wanted: Json = A, status: Json | None = None, *, deleted: bool = False, **spec: Any
) -> VirtualMachinePool:
    metadata: Json = {"name": "web", "namespace": "shop", "uid": "pool-uid", "generation": 7}
    if deleted:
        metadata["deletionTimestamp"] = at(0)
    document = {"metadata": metadata, "spec": {"replicas": replicas, "template": wanted, **spec}}
    return msgspec.convert({**document, **({"status": status} if status else {})}, VirtualMachinePool)


def proactive(**settings: Any) -> Json:
    return {"updateStrategy": {"proactive": settings}}


def revision(wanted: Json, number: int = 1, names: Json | None = None) -> Revision:
    content = content_of(wanted, names or {})
    name = revision_name("web", content, 0)
    return revision_of(name, content, uid=f"uid-{name}", resource_version="1", number=number)


def name_of(wanted: Json) -> str:
    return revision(wanted).name


def member(number: int | None = 1, wanted: Json = A, **changed: Any) -> Member:
    """Ready on this template since long ago, unless said otherwise. `on`: what its instance was made from."""
    name, made_from = f"web-{number}" if number is not None else "stray", revision(changed.pop("on", wanted)).name
    usual: Json = {
        "name": name,
        "uid": f"uid-{name}",
        "resource_version": "10",
        "number": number,
        "created": NOW - 9000.0,
        "labels": {},
        "revision": revision(wanted).name,
        "instance_revision": made_from,
        "updated": NOW - 9000.0,
        "instance_uid": f"vmi-{name}",
        "node": "node-1",
        "ready": True,
        "ready_since": NOW - 8000.0,
        "running": True,
        "ready_revision": made_from,
        "run": RunField("runStrategy", "Always"),
    }
    return Member(**{**usual, **changed})


def starting(number: int, wanted: Json = A, **changed: Any) -> Member:
    """Made, and not yet running."""
    young = {"ready": False, "ready_since": 0.0, "running": False, "ready_revision": "", "node": "", "created": NOW - 5.0}
    return member(number, wanted, **{**young, "updated": NOW - 5.0, **changed})


def broken(number: int, wanted: Json = A, **changed: Any) -> Member:
    """It has failed to start, again and again, since it was given its revision."""
    series = {"failures": 3, "failing_since": NOW - 60.0, "updated": NOW - 100.0, "instance_uid": "", "instance_revision": ""}
    return starting(number, wanted, **{**series, "created": NOW - 100.0, **changed})


def halted(number: int, wanted: Json = A, **changed: Any) -> Member:
    off = {"off": True, "halted": True, "ready": False, "running": False, "instance_uid": "", "instance_revision": "", "node": ""}
    return member(number, wanted, **{**off, "run": RunField("runStrategy", "Halted"), **changed})


def volume(machine: str, *, controller: str = "", ready_revision: str = "", **changed: Any) -> OwnedVolume:
    references: tuple[Json, ...] = ({"uid": controller, "controller": True},) if controller else ()
    usual: Json = {
        "name": f"disk-of-{machine}",
        "uid": f"uid-disk-{machine}",
        "resource_version": "5",
        "machine": machine,
        "controller": controller,
        "ready_revision": ready_revision,
        "references": (*references, {"uid": "pool-uid"}),
    }
    return OwnedVolume(**{**usual, **changed})


def snapshot(
    of: VirtualMachinePool, *members: Member, wanted: Json = A, stored: tuple[Json, ...] = (), **more: Any
) -> PoolSnapshot:
    """`stored`: templates whose revisions are kept, the oldest first; that of the pool is, too."""
    kept = list(dict.fromkeys(msgspec.json.encode(one) for one in (*stored, wanted)))
    known = tuple(revision(msgspec.json.decode(raw), number) for number, raw in enumerate(kept, start=1))
    usual: Json = {"template": wanted, "name_generation": {}, "members": members, "revisions": known}
    return PoolSnapshot(pool=of, **{**usual, **more})
