"""How our processes reach a cluster that a kubeconfig names. So far with client certificates only."""

from __future__ import annotations

import base64
import ssl
import tempfile
from pathlib import Path
from typing import Any

import yaml

from herder.app.refusal import CANNOT_USE_FILE, Refusal, reason_of
from herder.kube.http import HttpTransport
from herder.kube.transport import Transport


def connect_to(kubeconfig: Path | None, context: str | None, agent: str) -> Transport:
    path = kubeconfig or Path.home() / ".kube" / "config"
    try:
        document: dict[str, Any] = yaml.safe_load(path.read_text())
        chosen = _named(document["contexts"], context or document["current-context"])["context"]
        cluster = _named(document["clusters"], chosen["cluster"])["cluster"]
        user = _named(document["users"], chosen["user"])["user"]
        with tempfile.TemporaryDirectory() as folder:
            tls = ssl.create_default_context(cafile=_file(cluster, "certificate-authority", path, folder))
            tls.load_cert_chain(_file(user, "client-certificate", path, folder), _file(user, "client-key", path, folder))
        return HttpTransport.over_tls(cluster["server"], agent, tls)
    except OSError as error:
        raise Refusal(f"--kubeconfig {path}: cannot be read: {reason_of(error)}", CANNOT_USE_FILE) from None
    except (yaml.YAMLError, KeyError, TypeError, ValueError, StopIteration):
        raise Refusal(f"--kubeconfig {path}: is not a kubeconfig with client certificates", CANNOT_USE_FILE) from None


def _named(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(item for item in items if item["name"] == name)


def _file(entry: dict[str, Any], field: str, kubeconfig: Path, folder: str) -> str:
    if inline := entry.get(f"{field}-data"):
        path = Path(folder) / field
        path.touch(mode=0o600)
        path.write_bytes(base64.b64decode(inline))
        return str(path)
    return str(kubeconfig.parent / entry[field])
