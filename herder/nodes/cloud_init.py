"""The files that cloud-init looks for, in both of its ways. Pure."""

from __future__ import annotations

import hashlib

import msgspec

from herder.api.guest import GuestDefinition

Files = dict[str, bytes]


def no_cloud(definition: GuestDefinition, user_data: bytes, network_data: bytes) -> Files:
    about = {"instance-id": _identity(definition, user_data, network_data), "local-hostname": _host_name(definition)}
    files = {"user-data": user_data, "meta-data": msgspec.json.encode(about)}
    return files | ({"network-config": network_data} if network_data else {})


def config_drive(definition: GuestDefinition, user_data: bytes, network_data: bytes) -> Files:
    identity = _identity(definition, user_data, network_data)
    about = {"uuid": identity, "instance_id": identity, "hostname": _host_name(definition)}
    files = {"openstack/latest/user_data": user_data, "openstack/latest/meta_data.json": msgspec.json.encode(about)}
    return files | ({"openstack/latest/network_data.json": network_data} if network_data else {})


def _identity(definition: GuestDefinition, user_data: bytes, network_data: bytes) -> str:
    """The same at every start: what cloud-init does once, it does once in the life of the disk. Who wants that to happen again with
    other data has an identity that follows from the data."""
    name = f"{definition.instance.name}.{definition.instance.namespace}"
    if not definition.cloud_init_again:
        return name
    data = hashlib.sha256(b"\0".join((user_data, network_data))).hexdigest()
    return f"{name}.{data[:12]}"


def _host_name(definition: GuestDefinition) -> str:
    return definition.spec.hostname or definition.instance.name
