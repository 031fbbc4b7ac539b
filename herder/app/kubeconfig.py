"""The kubeconfig that lets kubectl in: written anew at each start, never over one that holds something else."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import yaml

from herder.app.refusal import CANNOT_USE_DATA, Refusal, reason_of
from herder.server.tls import Authority, write_private

CONTEXT = "herder"


def check_writable(path: Path) -> None:
    """A file with other people's contexts in it is not ours to replace."""
    if not path.exists():
        return
    try:
        content = yaml.safe_load(path.read_text()) or {}
        names = {context["name"] for context in content.get("contexts") or ()}
    except (yaml.YAMLError, OSError, AttributeError, KeyError, TypeError, UnicodeDecodeError):
        raise Refusal(f"--kubeconfig {path}: exists and is not a kubeconfig; name another file", CANNOT_USE_DATA) from None
    others = sorted(names - {CONTEXT})
    if others:
        listed = ", ".join(others)
        raise Refusal(f"--kubeconfig {path}: holds other contexts ({listed}); name another file", CANNOT_USE_DATA)


def write_kubeconfig(path: Path, server: str, authority: Authority) -> None:
    pair = authority.client("herder-admin", ("system:masters",))
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": CONTEXT,
        "clusters": [
            {"name": CONTEXT, "cluster": {"server": server, "certificate-authority-data": _text(authority.pair.certificate)}}
        ],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": "herder-admin", "namespace": "default"}}],
        "users": [
            {
                "name": "herder-admin",
                "user": {"client-certificate-data": _text(pair.certificate), "client-key-data": _text(pair.key)},
            }
        ],
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_private(path, yaml.safe_dump(document, sort_keys=False).encode())
    except OSError as error:
        raise Refusal(f"--kubeconfig {path}: cannot be written: {reason_of(error)}", CANNOT_USE_DATA) from None


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
