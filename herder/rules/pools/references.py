"""Which names in a template get the machine's number: of its DataVolumes, and of Secrets and ConfigMaps where that is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from herder.api.reading import entries, part, text
from herder.rules.plans import Document
from herder.rules.pools.naming import with_postfix

Rename = Callable[[str], str]
Places = tuple[tuple[tuple[str, ...], str], ...]

# Where a volume may name a Secret or a ConfigMap: the path to the object that names it, and the field.
_SECRETS: Places = (
    (("secret",), "secretName"),
    (("sysprep", "secret"), "name"),
    *(
        ((kind, field), "name")
        for kind in ("cloudInitNoCloud", "cloudInitConfigDrive")
        for field in ("secretRef", "networkDataSecretRef")
    ),
)
_CONFIG_MAPS: Places = ((("configMap",), "name"), (("sysprep", "configMap"), "name"))
_DATA_VOLUMES: Places = ((("dataVolume",), "name"), (("persistentVolumeClaim",), "claimName"))


def volume_names(template: Document) -> list[str]:
    """Of its dataVolumeTemplates, before any number."""
    return [name for one in entries(template, "spec", "dataVolumeTemplates") if (name := text(part(one, "metadata"), "name"))]


def renamed_template(template: Document, number: int) -> Document:
    metadata = part(template, "metadata")
    return {**template, "metadata": {**metadata, "name": with_postfix(text(metadata, "name"), number)}}


def instance_spec(template: Document, name_generation: Document, number: int) -> Document:
    """The template's instance, as the machine of this number has it."""
    spec = part(template, "spec", "template", "spec")
    if "volumes" not in spec:
        return spec
    owned = frozenset(volume_names(template))
    appended = _appended(number)
    renames: list[tuple[Places, Rename]] = [
        # A claim that the template does not own is never renamed.
        (_DATA_VOLUMES, lambda name: appended(name) if name in owned else name)
    ]
    if name_generation.get("appendPostfixToSecretReferences"):
        renames.append((_SECRETS, appended))
    if name_generation.get("appendPostfixToConfigMapReferences"):
        renames.append((_CONFIG_MAPS, appended))
    return {**spec, "volumes": [_renamed_volume(volume, renames) for volume in entries(spec, "volumes")]}


def _appended(number: int) -> Rename:
    return lambda name: with_postfix(name, number)


def _renamed_volume(volume: Document, renames: list[tuple[Places, Rename]]) -> Document:
    for places, rename in renames:
        for path, field in places:
            named = text(part(volume, *path), field)
            if named:
                volume = replaced(volume, (*path, field), rename(named))
    return volume


def replaced(document: Document, path: tuple[str, ...], value: Any) -> Document:
    """A copy along the path, and nowhere else."""
    if len(path) == 1:
        return {**document, path[0]: value}
    return {**document, path[0]: replaced(part(document, path[0]), path[1:], value)}
