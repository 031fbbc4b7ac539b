"""Rules for ConfigMaps, Secrets and ServiceAccounts."""

from __future__ import annotations

import base64
import binascii
from typing import Final

import msgspec

from herder.api import names
from herder.api.builtin.objectmeta import validate_meta, validate_meta_update
from herder.api.builtin.semantics import Document, Problems, refuse_change, refuse_names, same, section
from herder.api.problems import forbidden, invalid, required, too_long

MAX_SIZE: Final = 1024 * 1024
_FROZEN: Final = "field is immutable when `immutable` is set"
_ACCOUNT: Final = "kubernetes.io/service-account.name"
_DOCKER_KEYS: Final = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}


def _decoded_length(text: str) -> int:
    """How many bytes base64 text stands for, without decoding it."""
    return len(text) * 3 // 4 - text[-2:].count("=")


def validate_config_map(obj: Document, out: Problems) -> None:
    validate_meta(section(obj, "metadata"), True, names.name_is_subdomain, out)
    data, binary = section(obj, "data"), section(obj, "binaryData")
    size = 0
    for key, value in data.items():
        refuse_names(names.config_key(key), f"data[{key}]", key, out)
        if key in binary:
            out.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
        size += names.length(value)
    for key, value in binary.items():
        refuse_names(names.config_key(key), f"binaryData[{key}]", key, out)
        size += _decoded_length(value)
    if size > MAX_SIZE:
        out.append(too_long("[]", MAX_SIZE))  # how Kubernetes writes the path of the whole object


def validate_config_map_update(new: Document, old: Document, out: Problems) -> None:
    validate_meta_update(section(new, "metadata"), section(old, "metadata"), out)
    _refuse_change_of_frozen(new, old, ("data", "binaryData"), out)
    validate_config_map(new, out)


def _refuse_change_of_frozen(new: Document, old: Document, parts: tuple[str, ...], out: Problems) -> None:
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        out.append(forbidden("immutable", _FROZEN))
    for name in parts:
        if not same(new.get(name), old.get(name)):
            out.append(forbidden(name, _FROZEN))


def validate_secret(obj: Document, out: Problems) -> None:
    meta = section(obj, "metadata")
    validate_meta(meta, True, names.name_is_subdomain, out)
    data = section(obj, "data")
    for key in data:
        refuse_names(names.config_key(key), f"data[{key}]", key, out)
    if sum(_decoded_length(value) for value in data.values()) > MAX_SIZE:
        out.append(too_long("data", MAX_SIZE))
    _check_type(obj.get("type") or "", data, section(meta, "annotations"), out)


def _check_type(kind: str, data: Document, annotations: Document, out: Problems) -> None:
    match kind:
        case "kubernetes.io/service-account-token":
            if not annotations.get(_ACCOUNT):
                out.append(required(f"metadata.annotations[{_ACCOUNT}]"))
        case "kubernetes.io/dockercfg" | "kubernetes.io/dockerconfigjson":
            _check_docker(data, _DOCKER_KEYS[kind], out)
        case "kubernetes.io/basic-auth":
            if "username" not in data and "password" not in data:
                out += [required("data[username]"), required("data[password]")]
        case "kubernetes.io/ssh-auth":
            if not data.get("ssh-privatekey"):
                out.append(required("data[ssh-privatekey]"))
        case "kubernetes.io/tls":
            out += [required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in data]
        case _:
            pass


def _check_docker(data: Document, key: str, out: Problems) -> None:
    if key not in data:
        out.append(required(f"data[{key}]"))
        return
    try:
        msgspec.json.decode(base64.b64decode(data[key]), type=dict)
    except (msgspec.MsgspecError, binascii.Error, ValueError) as problem:
        out.append(invalid(f"data[{key}]", "<secret contents redacted>", str(problem)))


def validate_secret_update(new: Document, old: Document, out: Problems) -> None:
    validate_meta_update(section(new, "metadata"), section(old, "metadata"), out)
    refuse_change(new.get("type"), old.get("type"), "type", out)
    _refuse_change_of_frozen(new, old, ("data",), out)
    validate_secret(new, out)


def validate_service_account(obj: Document, out: Problems) -> None:
    validate_meta(section(obj, "metadata"), True, names.name_is_subdomain, out)


def validate_service_account_update(new: Document, old: Document, out: Problems) -> None:
    validate_meta_update(section(new, "metadata"), section(old, "metadata"), out)
    validate_service_account(new, out)
