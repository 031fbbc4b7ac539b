"""Names that the machines of a pool get: whatever gets a machine's number must still be a name with the longest one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from herder.api import labels
from herder.api.problems import Problem, invalid
from herder.api.reading import Json, indexed, part, text
from herder.api.validation.made import definition_problems

# `<pool>-<number>` is a machine's name and must fit into a label's value of 63 characters. No pool has more replicas, and of the
# numbers that detached machines hold there are six digits' worth.
LONGEST_NUMBER: Final = 6
LONGEST_POSTFIX: Final = "-" + "9" * LONGEST_NUMBER
LONGEST_POOL: Final = 63 - len(LONGEST_POSTFIX)
# Of DataVolumes, claims, Secrets and ConfigMaps.
LONGEST_OBJECT: Final = 253 - len(LONGEST_POSTFIX)
# Where a volume can name a claim, a Secret or a ConfigMap.
Path = tuple[str, ...]
CLAIMS: Final[tuple[Path, ...]] = (("dataVolume", "name"), ("persistentVolumeClaim", "claimName"))
_CLOUD_INIT: Final = tuple(
    (source, reference, "name")
    for source in ("cloudInitNoCloud", "cloudInitConfigDrive")
    for reference in ("secretRef", "networkDataSecretRef")
)
SECRETS: Final[tuple[Path, ...]] = (("secret", "secretName"), ("sysprep", "secret", "name"), *_CLOUD_INIT)
CONFIG_MAPS: Final[tuple[Path, ...]] = (("configMap", "name"), ("sysprep", "configMap", "name"))


def pool_name_problems(pool: Json) -> list[Problem]:
    name = text(part(pool, "metadata"), "name")
    if len(name) <= LONGEST_POOL:
        return []
    return [invalid("metadata.name", name, f"must be at most {LONGEST_POOL} characters: machines are called {name}-<number>")]


def number_problems(spec: Json) -> list[Problem]:
    """`spec`: a pool's."""
    machine, path = part(spec, "template", "spec"), "spec.template.spec"
    templates = [(place, text(part(one, "metadata"), "name")) for place, one in indexed(machine, "dataVolumeTemplates")]
    named = [(f"{path}.{place}.metadata.name", name) for place, name in templates]
    named += [(f"{path}.template.spec.{place}", name) for place, name in _references(spec)]
    problems = [_too_long(field, name) for field, name in named if len(name) > LONGEST_OBJECT]
    return problems or _size_problems(spec, {name for _, name in templates}, f"{path}.template.spec")


def _references(spec: Json) -> Iterator[tuple[str, str]]:
    """Secrets and ConfigMaps that get the number, each with its place."""
    for place, volume in indexed(part(spec, "template", "spec", "template", "spec"), "volumes"):
        for path in _postfixed(spec):
            if name := _name_at(volume, path):
                yield ".".join((place, *path)), name


def _postfixed(spec: Json) -> tuple[Path, ...]:
    flags = part(spec, "nameGeneration")
    secrets = SECRETS if flags.get("appendPostfixToSecretReferences") else ()
    return (*secrets, *(CONFIG_MAPS if flags.get("appendPostfixToConfigMapReferences") else ()))


def _too_long(field: str, name: str) -> Problem:
    return invalid(field, name, f"must be at most {LONGEST_OBJECT} characters: each machine gets {name}-<number>")


def _size_problems(spec: Json, owned: set[str], path: str) -> list[Problem]:
    """As the machine with the longest number will be judged, with the label that its pool gives it (names of labels count)."""
    machine = part(spec, "template", "spec")
    instance, metadata = part(machine, "template", "spec"), part(machine, "template", "metadata")
    labelled = {**metadata, "labels": {**part(metadata, "labels"), labels.POOL_REVISION: ""}}
    volumes: list[Json] = []
    for _, volume in indexed(instance, "volumes"):
        paths = [*_postfixed(spec), *(claim for claim in CLAIMS if _name_at(volume, claim) in owned)]
        for name_path in paths:
            volume = _numbered(volume, name_path)
        volumes.append(volume)
    return definition_problems({**instance, "volumes": volumes}, labelled, path)


def _name_at(volume: Json, path: Path) -> str:
    return text(part(volume, *path[:-1]), path[-1])


def _numbered(document: Json, path: Path) -> Json:
    """The same, with the longest number behind the name that is there."""
    head, rest = path[0], path[1:]
    if not text(part(document, *path[:-1]), path[-1]):
        return document
    return {**document, head: _numbered(document[head], rest) if rest else document[head] + LONGEST_POSTFIX}
