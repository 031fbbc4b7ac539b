"""VirtualMachine and VirtualMachineInstance, beyond their schemas."""

from __future__ import annotations

from herder.api.problems import Problem, duplicate, invalid
from herder.api.quantity import Quantity
from herder.api.reading import Json, entries, indexed, part, positive, quantity_at, text
from herder.api.selectors import validate_labels
from herder.api.validation.data_volume import data_volume_problems
from herder.api.validation.devices import device_problems
from herder.api.validation.placement import placement_problems


def validate_machine(machine: Json, old: Json | None = None) -> list[Problem]:
    return machine_problems(part(machine, "spec"), "spec")


def validate_instance(instance: Json, old: Json | None = None) -> list[Problem]:
    return instance_problems(part(instance, "spec"), "spec")


def machine_problems(spec: Json, path: str) -> list[Problem]:
    """A machine's spec, wherever it stands: in a VirtualMachine, or in the template of a pool."""
    problems = _template_volume_problems(spec, path)
    problems += validate_labels(part(spec, "template", "metadata", "labels"), f"{path}.template.metadata.labels")
    return problems + instance_problems(part(spec, "template", "spec"), f"{path}.template.spec")


def instance_problems(spec: Json, path: str) -> list[Problem]:
    problems = _resource_problems(part(spec, "domain"), f"{path}.domain")
    problems += device_problems(spec, path)
    return problems + placement_problems(spec, path)


def _template_volume_problems(spec: Json, path: str) -> list[Problem]:
    problems: list[Problem] = []
    seen: set[str] = set()
    used = _used_claims(part(spec, "template", "spec"))
    for place, template in indexed(spec, "dataVolumeTemplates"):
        name = text(part(template, "metadata"), "name")
        where = f"{path}.{place}"
        if name in seen:
            problems.append(duplicate(f"{where}.metadata.name", name))
        elif name not in used:
            message = "no volume uses it: name it in the dataVolume of an entry of template.spec.volumes, or take it out"
            problems.append(invalid(f"{where}.metadata.name", name, message))
        seen.add(name)
        problems += data_volume_problems(part(template, "spec"), f"{where}.spec")
    return problems


def _used_claims(instance: Json) -> set[str]:
    volumes = entries(instance, "volumes")
    by_volume = {text(part(volume, "dataVolume"), "name") for volume in volumes}
    return by_volume | {text(part(volume, "persistentVolumeClaim"), "claimName") for volume in volumes}


def _resource_problems(domain: Json, path: str) -> list[Problem]:
    problems: list[Problem] = []
    requests, limits = part(domain, "resources", "requests"), part(domain, "resources", "limits")
    guest = positive(part(domain, "memory"), "guest", f"{path}.memory", problems)
    for name in ("cpu", "memory"):
        positive(requests, name, f"{path}.resources.requests", problems)
        positive(limits, name, f"{path}.resources.limits", problems)
    problems += _above_limit_problems(requests, limits, f"{path}.resources")
    most = quantity_at(limits, "memory", "", [])
    if guest is not None and most is not None and guest > most:
        shown = part(domain, "memory")["guest"]
        problems.append(invalid(f"{path}.memory.guest", shown, f"must be at most the memory limit, {limits['memory']}"))
    return problems


def _above_limit_problems(requests: Json, limits: Json, path: str) -> list[Problem]:
    problems: list[Problem] = []
    for name in requests.keys() & limits.keys():
        wanted, most = _amount(requests, name), _amount(limits, name)
        if wanted is not None and most is not None and wanted > most:
            problems.append(invalid(f"{path}.requests[{name}]", requests[name], f"must be at most the limit, {limits[name]}"))
    return sorted(problems, key=lambda problem: problem.field)


def _amount(amounts: Json, name: str) -> Quantity | None:
    return quantity_at(amounts, name, "", [])
