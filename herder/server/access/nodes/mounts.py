"""What a pod names: the Secrets, ConfigMaps, claims and the account without which its node cannot run it.

Of a pod that fills or clears a volume also what it works for: by that its node finds out whether it may."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from herder.api import labels, registry

Document = dict[str, Any]
# A table and a name in the pod's namespace.
Named = tuple[str, str]
SECRETS, CONFIG_MAPS, CLAIMS, ACCOUNTS = "secrets", "configmaps", "persistentvolumeclaims", "serviceaccounts"
VOLUMES, DATA_VOLUMES = "persistentvolumes", registry.DATA_VOLUME.crd_name
# What importer pods work for.
_WORKED_FOR = {
    (registry.DATA_VOLUME.api_version, registry.DATA_VOLUME.kind): DATA_VOLUMES,
    ("v1", "PersistentVolume"): VOLUMES,
}
CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
# Where sources of volumes keep the name of a Secret.
_SECRET_FIELDS = ("secretRef", "nodePublishSecretRef")


def named_by(pod: Document) -> frozenset[Named]:
    spec: Document = pod.get("spec") or {}
    found = [*_of_spec(spec), *_of_importer(pod["metadata"])]
    for volume in spec.get("volumes") or ():
        found += _of_volume(volume, pod["metadata"]["name"])
    for field in CONTAINERS:
        for container in spec.get(field) or ():
            found += _of_container(container)
    return frozenset(one for one in found if one[1])


def _of_spec(spec: Document) -> Iterator[Named]:
    yield ACCOUNTS, spec.get("serviceAccountName") or ""
    for reference in spec.get("imagePullSecrets") or ():
        yield SECRETS, _name(reference)


def _of_importer(metadata: Document) -> Iterator[Named]:
    """Only our controllers make a pod with this annotation: whose it is can be believed."""
    if labels.IMPORT not in (metadata.get("annotations") or {}):
        return
    for owner in metadata.get("ownerReferences") or ():
        table = _WORKED_FOR.get((owner.get("apiVersion"), owner.get("kind")))
        if table is not None and owner.get("controller"):
            yield table, owner.get("name") or ""
            if table == DATA_VOLUMES:
                yield CLAIMS, owner.get("name") or ""


def _of_volume(volume: Document, pod: str) -> Iterator[Named]:
    if "ephemeral" in volume:
        yield CLAIMS, f"{pod}-{volume.get('name', '')}"
    for kind, source in volume.items():
        if not isinstance(source, dict):
            continue
        if kind == "projected":
            for one in source.get("sources") or ():
                yield SECRETS, _name(one.get("secret"))
                yield CONFIG_MAPS, _name(one.get("configMap"))
        elif kind == "configMap":
            yield CONFIG_MAPS, _name(source)
        elif kind == "persistentVolumeClaim":
            yield CLAIMS, source.get("claimName") or ""
        else:
            yield SECRETS, source.get("secretName") or ""
            yield from ((SECRETS, _name(source.get(field))) for field in _SECRET_FIELDS)


def _of_container(container: Document) -> Iterator[Named]:
    for source in container.get("envFrom") or ():
        yield SECRETS, _name(source.get("secretRef"))
        yield CONFIG_MAPS, _name(source.get("configMapRef"))
    for variable in container.get("env") or ():
        source = variable.get("valueFrom") or {}
        yield SECRETS, _name(source.get("secretKeyRef"))
        yield CONFIG_MAPS, _name(source.get("configMapKeyRef"))


def _name(reference: Document | None) -> str:
    return (reference or {}).get("name") or ""
