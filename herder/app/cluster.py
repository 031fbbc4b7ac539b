"""How our processes reach a cluster that a kubeconfig names."""

from __future__ import annotations

from pathlib import Path

from herder.app.refusal import CANNOT_USE_FILE, Refusal
from herder.kube.connect import Connection, connection
from herder.kube.errors import Misconfigured
from herder.kube.transport import Transport


def connect_to(kubeconfig: Path | None, context: str | None, agent: str) -> Transport:
    return connection_to(kubeconfig, context, agent).transport


def connection_to(kubeconfig: Path | None, context: str | None, agent: str) -> Connection:
    try:
        return connection(kubeconfig, context, agent)
    except Misconfigured as error:
        raise Refusal(str(error), CANNOT_USE_FILE) from None
