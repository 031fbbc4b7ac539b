"""The kubeconfigs that let people in: never written over one that holds something else."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import yaml

from herder.app.refusal import CANNOT_USE_DATA, Refusal, reason_of
from herder.pki.authority import Authority, Pair
from herder.pki.files import write_private

CONTEXT = "herder"
ADMIN = "herder-admin"
# Who the engine is to its nodes: the name that a real cluster gives to its API server for the same.
ENGINE_AT_NODES = "kube-apiserver-kubelet-client"


def check_writable(path: Path) -> None:
    """A file with other people's contexts in it is not ours to replace."""
    others = sorted(_names(path, "contexts") - {CONTEXT})
    if others:
        listed = ", ".join(others)
        raise Refusal(f"--kubeconfig {path}: holds other contexts ({listed}); name another file", CANNOT_USE_DATA)


def check_holds_only(path: Path, user: str) -> None:
    """Nor is one of somebody else; one of the same user is replaced by a new one."""
    check_writable(path)
    others = sorted(_names(path, "users") - {user})
    if others:
        raise Refusal(f"--kubeconfig {path}: is that of {', '.join(others)}; name another file", CANNOT_USE_DATA)


def _names(path: Path, part: str) -> set[str]:
    if not path.exists():
        return set()
    try:
        content = yaml.safe_load(path.read_text()) or {}
        return {str(one["name"]) for one in content.get(part) or ()}
    except (yaml.YAMLError, OSError, AttributeError, KeyError, TypeError, UnicodeDecodeError):
        raise Refusal(f"--kubeconfig {path}: exists and is not a kubeconfig; name another file", CANNOT_USE_DATA) from None


def renew_kubeconfig(path: Path, server: str, authority: Authority, pair: Pair) -> None:
    """The administrator's own, while it is in use: whatever else somebody has put there since the start, such as another namespace
    or context, stays. Raises Refusal where it is no kubeconfig any more, or not the administrator's."""
    if not path.exists():
        return write_for(path, server, authority, ADMIN, pair)
    if ADMIN not in _names(path, "users"):
        raise Refusal(f"--kubeconfig {path}: has no user {ADMIN} any more, so nothing there is renewed", CANNOT_USE_DATA)
    document: dict[str, Any] = yaml.safe_load(path.read_text())
    for user in document["users"]:
        if user["name"] == ADMIN:
            user["user"] = {**(user.get("user") or {}), **_shown(pair)}
    write_private(path, yaml.safe_dump(document, sort_keys=False).encode())
    return None


def write_for(path: Path, server: str, authority: Authority, user: str, pair: Pair, namespace: str = "") -> None:
    write_with(path, server, authority.pair.certificate, user, pair, namespace)


def write_with(path: Path, server: str, authority: bytes, user: str, pair: Pair, namespace: str = "") -> None:
    """`authority` is the certificate by which the server is known; empty where everybody knows it. `namespace`: of the context."""
    known = {"certificate-authority-data": _text(authority)} if authority else {}
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": CONTEXT,
        "clusters": [{"name": CONTEXT, "cluster": {"server": server, **known}}],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": user, "namespace": namespace or "default"}}],
        "users": [
            {
                "name": user,
                "user": _shown(pair),
            }
        ],
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_private(path, yaml.safe_dump(document, sort_keys=False).encode())
    except OSError as error:
        raise Refusal(f"--kubeconfig {path}: cannot be written: {reason_of(error)}", CANNOT_USE_DATA) from None


def _shown(pair: Pair) -> dict[str, str]:
    return {"client-certificate-data": _text(pair.certificate), "client-key-data": _text(pair.key)}


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
