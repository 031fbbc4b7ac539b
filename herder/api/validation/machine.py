"""VirtualMachine and VirtualMachineInstance, beyond their schemas."""

from __future__ import annotations

from herder.api import labels
from herder.api.builtin.resources import check_requirements
from herder.api.problems import Problem, duplicate, invalid, not_supported
from herder.api.quantity import BINARY_SI, Quantity, of
from herder.api.reading import Json, entries, indexed, part, positive, positive_bytes, quantity_at, text
from herder.api.validation.data_volume import data_volume_problems
from herder.api.validation.devices import device_problems
from herder.api.validation.made import definition_problems, metadata_problems
from herder.api.validation.placement import placement_problems

# The label by which its instance and pods name their machine holds no more.
LONGEST_NAME = 63
# What VirtualMachine.status.observedStartRequest holds.
LONGEST_REQUEST = 1024
SCALE_IN_VALUES = (labels.SCALE_IN_FIRST, labels.SCALE_IN_NEVER)
# No board of QEMU has more.
MOST_PROCESSORS = 4096
SMALLEST_MEMORY = of(1 << 20, BINARY_SI)
LARGEST_MEMORY = of(1 << 50, BINARY_SI)


def validate_machine(machine: Json, old: Json | None = None) -> list[Problem]:
    problems = _name_problems(machine) if old is None else []
    problems += _request_problems(machine) + scale_in_problems(part(machine, "metadata"), "metadata")
    return problems + machine_problems(part(machine, "spec"), "spec")


def validate_instance(instance: Json, old: Json | None = None) -> list[Problem]:
    spec = part(instance, "spec")
    return instance_problems(spec, "spec") + definition_problems(spec, part(instance, "metadata"), "spec")


def _request_problems(machine: Json) -> list[Problem]:
    """What is asked for is written down in the status, once it is done."""
    request = text(part(machine, "metadata", "annotations"), labels.START_REQUEST)
    if len(request) <= LONGEST_REQUEST:
        return []
    where = f"metadata.annotations[{labels.START_REQUEST}]"
    return [invalid(where, f"{request[:32]}…", f"must be at most {LONGEST_REQUEST} characters: any new value will do")]


def scale_in_problems(metadata: Json, path: str) -> list[Problem]:
    """A misspelled `never` would protect nobody, and be noticed only when the machine is gone."""
    value = part(metadata, "annotations").get(labels.SCALE_IN)
    if value is None or value in SCALE_IN_VALUES:
        return []
    return [not_supported(f"{path}.annotations[{labels.SCALE_IN}]", value, SCALE_IN_VALUES)]


def _name_problems(machine: Json) -> list[Problem]:
    name = text(part(machine, "metadata"), "name")
    if len(name) <= LONGEST_NAME:
        return []
    return [
        invalid("metadata.name", name, f"must be at most {LONGEST_NAME} characters: it is the value of a label of its instance")
    ]


def machine_problems(spec: Json, path: str) -> list[Problem]:
    """A machine's spec, wherever it stands: in a VirtualMachine, or in the template of a pool."""
    problems = _template_volume_problems(spec, path)
    metadata, instance = part(spec, "template", "metadata"), part(spec, "template", "spec")
    problems += metadata_problems(metadata, f"{path}.template.metadata")
    problems += instance_problems(instance, f"{path}.template.spec")
    return problems + definition_problems(instance, metadata, f"{path}.template.spec")


def instance_problems(spec: Json, path: str) -> list[Problem]:
    problems = _resource_problems(part(spec, "domain"), f"{path}.domain")
    problems += _processor_problems(part(spec, "domain", "cpu"), f"{path}.domain.cpu")
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
        problems += metadata_problems(part(template, "metadata"), f"{where}.metadata")
        problems += data_volume_problems(part(template, "spec"), f"{where}.spec")
    return problems


def _used_claims(instance: Json) -> set[str]:
    volumes = entries(instance, "volumes")
    by_volume = {text(part(volume, "dataVolume"), "name") for volume in volumes}
    return by_volume | {text(part(volume, "persistentVolumeClaim"), "claimName") for volume in volumes}


def _resource_problems(domain: Json, path: str) -> list[Problem]:
    problems: list[Problem] = []
    requests, limits = part(domain, "resources", "requests"), part(domain, "resources", "limits")
    guest = _memory(part(domain, "memory"), "guest", f"{path}.memory", problems)
    for place, amounts in (("requests", requests), ("limits", limits)):
        positive(amounts, "cpu", f"{path}.resources.{place}", problems)
        _memory(amounts, "memory", f"{path}.resources.{place}", problems)
        for name in amounts.keys() - {"cpu", "memory"}:
            quantity_at(amounts, name, f"{path}.resources.{place}", problems)
    problems += _above_limit_problems(requests, limits, f"{path}.resources")
    if not problems:
        # They become its pod's.
        check_requirements(part(domain, "resources"), f"{path}.resources", problems)
    most = quantity_at(limits, "memory", "", [])
    if guest is not None and most is not None and guest > most:
        shown = part(domain, "memory")["guest"]
        problems.append(invalid(f"{path}.memory.guest", shown, f"must be at most the memory limit, {limits['memory']}"))
    return problems


def _processor_problems(cpu: Json, path: str) -> list[Problem]:
    sockets, cores, threads = (value if isinstance(value := cpu.get(name), int) else 1 for name in ("sockets", "cores", "threads"))
    count = sockets * cores * threads
    if count <= MOST_PROCESSORS:
        return []
    said = f"must be at most {MOST_PROCESSORS} processors: sockets, cores and threads are multiplied"
    return [invalid(path, f"{sockets} x {cores} x {threads} = {count}", said)]


def _memory(amounts: Json, name: str, path: str, problems: list[Problem]) -> Quantity | None:
    """Less than a mebibyte holds no guest, and more than a pebibyte no node."""
    amount = positive_bytes(amounts, name, path, problems)
    if amount is not None and not SMALLEST_MEMORY <= amount <= LARGEST_MEMORY:
        said = f"must be from {SMALLEST_MEMORY} to {LARGEST_MEMORY}: without a unit it is a number of bytes"
        problems.append(invalid(f"{path}.{name}", amounts[name], said))
        return None
    return amount


def _above_limit_problems(requests: Json, limits: Json, path: str) -> list[Problem]:
    problems: list[Problem] = []
    for name in requests.keys() & limits.keys():
        wanted, most = _amount(requests, name), _amount(limits, name)
        if wanted is not None and most is not None and wanted > most:
            problems.append(invalid(f"{path}.requests[{name}]", requests[name], f"must be at most the limit, {limits[name]}"))
    return sorted(problems, key=lambda problem: problem.field)


def _amount(amounts: Json, name: str) -> Quantity | None:
    return quantity_at(amounts, name, "", [])
