"""What the server tells clients that it serves: /api, /apis and below, one by one or all at once (aggregated).

A Discovery is an unchanging picture of one set of resources; when CRDs come or go, a new one takes its place.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from herder.server.builtins import BUILTINS
from herder.server.resources import ACTION_KINDS, CONNECT_KINDS, GroupVersion, Resource

JSON = "application/json"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
SUBRESOURCE_VERBS = ["get", "patch", "update"]

_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_MATURITY = {None: 2, "beta": 1, "alpha": 0}
_BUILTIN_GROUPS = list(dict.fromkeys(resource.group for resource in BUILTINS))

Groups = dict[str, dict[str, list[Resource]]]


class Document(msgspec.Struct, frozen=True):
    """A body that is sent as it is. The ETag is the hash of the body, without quotes."""

    body: bytes
    etag: str
    content_type: str = JSON


def document(content: Any, content_type: str = JSON) -> Document:
    body = msgspec.json.encode(content)
    return Document(body, hashlib.sha512(body).hexdigest().upper(), content_type)


class Discovery:
    def __init__(self, resources: Iterable[Resource], server_address: str = "") -> None:
        self._server_address = server_address
        self._groups = group_by_version(resources)
        self._documents: dict[tuple[str, ...], Document] = {}

    def api_versions(self) -> Document:
        """/api"""
        return self._kept(("api",), self._versions)

    def api_groups(self) -> Document:
        """/apis"""
        return self._kept(("apis",), self._group_list)

    def api_group(self, group: str) -> Document | None:
        """/apis/GROUP"""
        versions = self._groups.get(group)
        if not group or versions is None:
            return None
        return self._kept(("group", group), lambda: {"kind": "APIGroup", "apiVersion": "v1", **_group(group, versions)})

    def api_resources(self, group: str, version: str) -> Document | None:
        """/api/VERSION and /apis/GROUP/VERSION"""
        resources = self._groups.get(group, {}).get(version)
        if resources is None:
            return None
        return self._kept(("resources", group, version), lambda: _resource_list(group, version, resources))

    def aggregated_core(self) -> Document:
        """/api, everything at once."""
        return self._kept(("aggregated", "api"), lambda: _aggregated({"": self._groups.get("", {})}), AGGREGATED)

    def aggregated_groups(self) -> Document:
        """/apis, everything at once."""
        return self._kept(("aggregated", "apis"), lambda: _aggregated(self._named()), AGGREGATED)

    def _versions(self) -> dict[str, Any]:
        address = {"clientCIDR": "0.0.0.0/0", "serverAddress": self._server_address}
        return {"kind": "APIVersions", "versions": list(self._groups.get("", {})), "serverAddressByClientCIDRs": [address]}

    def _group_list(self) -> dict[str, Any]:
        groups = [_group(name, versions) for name, versions in self._named().items()]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def _named(self) -> Groups:
        return {name: versions for name, versions in self._groups.items() if name}

    def _kept(self, key: tuple[str, ...], build: Callable[[], Any], content_type: str = JSON) -> Document:
        found = self._documents.get(key)
        if found is None:
            found = self._documents[key] = document(build(), content_type)
        return found


def group_by_version(resources: Iterable[Resource]) -> Groups:
    """Built-in groups in their own order, then those of CRDs by name; in each the preferred version first."""
    groups: Groups = {}
    for resource in sorted(resources, key=_group_order):
        groups.setdefault(resource.group, {}).setdefault(resource.version, []).append(resource)
    return {name: _ordered(versions) for name, versions in groups.items()}


def _group_order(resource: Resource) -> tuple[int, str]:
    known = resource.group in _BUILTIN_GROUPS
    return (_BUILTIN_GROUPS.index(resource.group) if known else len(_BUILTIN_GROUPS), resource.group)


def _ordered(versions: dict[str, list[Resource]]) -> dict[str, list[Resource]]:
    names = sorted(versions, key=version_priority, reverse=True)
    return {name: sorted(versions[name], key=lambda resource: resource.plural) for name in names}


def version_priority(version: str) -> tuple[bool, int, int, int, list[int]]:
    """Greater is preferred: v2, v1, v2beta1, v1beta2, v1alpha1, and then names of no such form by the alphabet."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return (False, 0, 0, 0, [-ord(letter) for letter in version] + [1])
    major, stage, minor = found.groups()
    return (True, _MATURITY[stage], int(major), int(minor or 0), [])


def _group(name: str, versions: dict[str, list[Resource]]) -> dict[str, Any]:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _resource_list(group: str, version: str, resources: list[Resource]) -> dict[str, Any]:
    about = {
        "kind": "APIResourceList",
        **({"apiVersion": "v1"} if group else {}),
        "groupVersion": str(GroupVersion(group, version)),
    }
    return {**about, "resources": [entry for resource in resources for entry in _entries(resource)]}


def _subresources(resource: Resource) -> list[tuple[str, dict[str, str], list[str]]]:
    """Name, kind and verbs of each. An empty group and version mean those of the resource."""
    own = {"group": "", "version": "", "kind": resource.kind}
    found = [(name, ACTION_KINDS[name], ["create"]) for name in resource.actions]
    found += [(name, *CONNECT_KINDS[name]) for name in resource.connects if name in CONNECT_KINDS]
    if resource.finalize:
        found.append(("finalize", own, ["update"]))
    if resource.scale is not None:
        found.append(("scale", {"group": "autoscaling", "version": "v1", "kind": "Scale"}, SUBRESOURCE_VERBS))
    if resource.status:
        found.append(("status", own, SUBRESOURCE_VERBS))
    if resource.token:
        found.append(("token", {"group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest"}, ["create"]))
    return sorted(found, key=lambda one: one[0])


def _entries(resource: Resource) -> list[dict[str, Any]]:
    main: dict[str, Any] = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
        **_names(resource),
        **({"storageVersionHash": storage_version_hash(resource)} if resource.is_stored and not resource.measured else {}),
    }
    return [main, *[_subresource_entry(resource, *subresource) for subresource in _subresources(resource)]]


def storage_version_hash(resource: Resource) -> str:
    """Another one as soon as the kind is stored in another version; migrators of stored objects watch for that."""
    group, _, version = (resource.storage_version or resource.group_version).rpartition("/")
    digest = hashlib.sha256(f"{group}/{version}/{resource.kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()


def _names(resource: Resource) -> dict[str, list[str]]:
    names = {"shortNames": list(resource.short_names), "categories": list(resource.categories)}
    return {key: value for key, value in names.items() if value}


def _subresource_entry(resource: Resource, name: str, kind: dict[str, str], verbs: list[str]) -> dict[str, Any]:
    return {
        "name": f"{resource.plural}/{name}",
        "singularName": "",
        "namespaced": resource.namespaced,
        **{key: value for key, value in kind.items() if value},
        "verbs": verbs,
    }


def _aggregated(groups: Groups) -> dict[str, Any]:
    items = [
        {
            "metadata": {"name": name} if name else {},
            "versions": [
                {"version": version, "resources": [_aggregated_entry(one) for one in resources], "freshness": "Current"}
                for version, resources in versions.items()
            ],
        }
        for name, versions in groups.items()
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _aggregated_entry(resource: Resource) -> dict[str, Any]:
    own = {"group": resource.group, "version": resource.version}
    entry: dict[str, Any] = {
        "resource": resource.plural,
        "responseKind": {**own, "kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
        **_names(resource),
    }
    subresources = [
        {"subresource": name, "responseKind": kind if kind["version"] else {**kind, **own}, "verbs": verbs}
        for name, kind, verbs in _subresources(resource)
    ]
    if subresources:
        entry["subresources"] = subresources
    return entry
