"""The files that cloud-init looks for, in both of its ways. Pure."""

from __future__ import annotations

import msgspec

from herder.api.guest import GuestDefinition

Files = dict[str, bytes]


def no_cloud(definition: GuestDefinition, user_data: bytes, network_data: bytes) -> Files:
    about = {"instance-id": _identity(definition), "local-hostname": _host_name(definition)}
    files = {"user-data": user_data, "meta-data": msgspec.json.encode(about)}
    return files | ({"network-config": network_data} if network_data else {})


def config_drive(definition: GuestDefinition, user_data: bytes, network_data: bytes) -> Files:
    about = {"uuid": _identity(definition), "instance_id": _identity(definition), "hostname": _host_name(definition)}
    files = {"openstack/latest/user_data": user_data, "openstack/latest/meta_data.json": msgspec.json.encode(about)}
    return files | ({"openstack/latest/network_data.json": network_data} if network_data else {})


def _identity(definition: GuestDefinition) -> str:
    """The same at every start: what cloud-init does once, it does once in the life of the disk."""
    return f"{definition.instance.name}.{definition.instance.namespace}"


def _host_name(definition: GuestDefinition) -> str:
    return definition.spec.hostname or definition.instance.name
