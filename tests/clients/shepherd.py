"""A small operator written with kopf: it counts the wool of sheep, holds them until they are shorn, and tells what it does."""

from __future__ import annotations

import os
from typing import Any

import kopf

GROUP = os.environ["SHEEP_GROUP"]
SHEEP = (GROUP, "v1", "sheep")


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.level = 20
    settings.persistence.finalizer = "shepherd.example.com/hold"


@kopf.on.resume(*SHEEP)
def resumed(patch: kopf.Patch, **_: Any) -> None:
    patch.status["resumed"] = True


@kopf.on.create(*SHEEP)
def born(spec: kopf.Spec, body: kopf.Body, patch: kopf.Patch, **_: Any) -> dict[str, Any]:
    kopf.info(body, reason="Born", message=f"With {spec['wool']} of wool.")
    patch.status["wool"] = spec["wool"]
    return {"name": body["metadata"]["name"]}


@kopf.on.update(*SHEEP, field="spec.wool")
def grown(old: Any, new: Any, patch: kopf.Patch, **_: Any) -> None:
    patch.status["grown"] = f"{old} to {new}"


@kopf.on.delete(*SHEEP)
def shorn(name: str | None, namespace: str | None, body: kopf.Body, memo: kopf.Memo, **_: Any) -> None:
    kopf.warn(body, reason="Shorn", message=f"{namespace}/{name} is shorn.")
