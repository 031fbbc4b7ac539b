"""The pod in which a guest runs: asks for its room, mounts what it mounts, and tells its node what to run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from herder.api import defaults, labels, registry
from herder.api.guest import Started
from herder.api.inheritance import inherited, inherited_by_pods, note_of
from herder.api.kinds.domain import CPU
from herder.api.kinds.instance import VirtualMachineInstanceSpec
from herder.api.kinds.kubevirt import MigrationConfiguration
from herder.api.kinds.volumes import Volume
from herder.api.quantity import Quantity, of, of_milli, parse_quantity
from herder.api.reading import part, text
from herder.rules.inheritance import Given
from herder.rules.instances.needs import claims_of, cloud_init_secrets, needs_of
from herder.rules.instances.pool_label import labelled
from herder.rules.migratability.starting import is_host_model, required_level, with_levels
from herder.rules.plans import Document, plain, without_nothing

CONTAINER = "compute"
# Nothing is pulled: the node's agent runs the guest itself.
IMAGE = "herder.dev/guest"
# Of one guest beside its own memory: the emulator, its page tables, and what each processor takes.
OVERHEAD_BASE = 96 * 1024 * 1024
OVERHEAD_PER_CPU = 8 * 1024 * 1024
PAGE_TABLE_SHARE = 512
# Of a processor, for each that the guest sees, where nothing is asked for: most guests idle.
MILLI_PER_CPU = 100
# For the guest to be switched off and the node to say so, after its own time is over.
GRACE_BEYOND_GUEST = 15
# Of the spec: where it may run is the scheduler's business, and stands in the pod.
_FOR_THE_NODE = (
    "domain",
    "volumes",
    "networks",
    "terminationGracePeriodSeconds",
    "startStrategy",
    "livenessProbe",
    "readinessProbe",
    "hostname",
    "subdomain",
)


def pod_name(instance_name: str, uid: str, attempt: int = 0) -> str:
    """Follows from the instance: whoever makes it twice makes the same one."""
    # A dot before the hyphen would be the end of a part of the name.
    return f"virt-launcher-{instance_name[:200].rstrip('.')}-{uid[:8]}{attempt if attempt else ''}"


def launcher_pod(
    instance: Document,
    spec: VirtualMachineInstanceSpec,
    incoming: Started | None = None,
    settings: MigrationConfiguration | None = None,
    pool: str = "",
) -> Document:
    """`settings` are asked for the level of the node, where the guest is started and not moved; so is `pool` for its label."""
    own = part(instance, "metadata")
    given = given_to_pod(part(own, "labels"), part(own, "annotations"))
    levels = settings if incoming is None else None
    return {
        "metadata": {
            "name": pod_name(text(own, "name"), text(own, "uid")),
            "namespace": text(own, "namespace"),
            "labels": {
                **given.labels,
                **_machine_name(own),
                **labelled(pool),
                labels.APP: labels.LAUNCHER,
                labels.CREATED_BY: text(own, "uid"),
                labels.INSTANCE_NAME: text(own, "name")[:63].rstrip("-."),
            },
            "annotations": {
                **given.annotations,
                **without_nothing({labels.LAST_APPLIED: note_of(given.record)}),
                **_annotations(instance, incoming),
                **_required_level(spec, levels),
            },
            "ownerReferences": [_owner_reference(own)],
        },
        "spec": _pod_spec(part(instance, "spec"), spec, levels),
    }


def given_to_pod(own_labels: Mapping[str, str], own_annotations: Mapping[str, str]) -> Given:
    """What an instance gives to its pod, when that is made and ever after."""
    return Given(inherited(own_labels), inherited_by_pods(own_annotations))


def _machine_name(own: Document) -> dict[str, str]:
    name = text(part(own, "labels"), labels.MACHINE_NAME)
    return {labels.MACHINE_NAME: name} if name else {}


def _required_level(spec: VirtualMachineInstanceSpec, levels: MigrationConfiguration | None) -> dict[str, str]:
    """Written down: whoever asks why the pod waits need not guess which test of its affinity was the cluster's."""
    level = required_level(levels) if is_host_model(spec.domain.cpu) else 0
    return {labels.REQUIRED_LEVEL: str(level)} if level else {}


def _annotations(instance: Document, incoming: Started | None) -> Document:
    own = part(instance, "metadata")
    given = part(own, "annotations")
    definition: dict[str, Any] = {
        "instance": {"namespace": text(own, "namespace"), "name": text(own, "name"), "uid": text(own, "uid")},
        "spec": {name: value for name, value in part(instance, "spec").items() if name in _FOR_THE_NODE},
        "simulated": {
            key.removeprefix(labels.SIMULATED): value for key, value in given.items() if key.startswith(labels.SIMULATED)
        },
    }
    if given.get(labels.CLOUD_INIT_AGAIN) == "true":
        definition["cloudInitAgain"] = True
    if incoming is not None:
        definition["incoming"] = plain(incoming)
    paused = {labels.PAUSE: given[labels.PAUSE]} if labels.PAUSE in given else {}
    return {labels.GUEST: msgspec.json.encode(definition).decode(), **paused}


def _owner_reference(own: Document) -> Document:
    return {
        "apiVersion": registry.INSTANCE.api_version,
        "kind": registry.INSTANCE.kind,
        "name": text(own, "name"),
        "uid": text(own, "uid"),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _pod_spec(written: Document, spec: VirtualMachineInstanceSpec, levels: MigrationConfiguration | None) -> Document:
    """Rules about places are passed on as they are written, with the level that the cluster's settings ask for."""
    affinity = with_levels(written.get("affinity"), spec.domain.cpu, levels)
    grace = spec.termination_grace_period_seconds
    asked: Document = {
        "restartPolicy": "Never",
        "schedulerName": spec.scheduler_name or defaults.SCHEDULER_NAME,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": (defaults.TERMINATION_GRACE_PERIOD_SECONDS if grace is None else grace)
        + GRACE_BEYOND_GUEST,
        "nodeSelector": {**_cpu_selector(spec.domain.cpu), **part(written, "nodeSelector"), labels.SCHEDULABLE: "true"},
        "tolerations": [*written.get("tolerations", ()), {"key": labels.VM_HOST_TAINT, "operator": "Exists"}],
        # The console is a terminal that one can type into: kubectl attach looks here.
        "containers": [{"name": CONTAINER, "image": IMAGE, "resources": resources_of(spec), "stdin": True, "tty": True}],
        "volumes": _volumes(spec),
    }
    if affinity is not None:
        asked["affinity"] = affinity
    passed_on = ("topologySpreadConstraints", "priorityClassName", "hostname", "subdomain")
    return {**asked, **{name: written[name] for name in passed_on if name in written}}


def _cpu_selector(cpu: CPU | None) -> dict[str, str]:
    """A named model, and features that are required, can only run where the node says that it has them."""
    if cpu is None:
        return {}
    required = [one.name for one in cpu.features or () if one.policy in (None, "require")]
    selector = {labels.CPU_FEATURE + name: "true" for name in required}
    if cpu.model not in (None, "host-model", "host-passthrough"):
        selector[f"{labels.CPU_MODEL}{cpu.model}"] = "true"
    return selector


def resources_of(spec: VirtualMachineInstanceSpec) -> Document:
    """What is asked of the node: what is written, else made from processors and memory; memory always with what it takes beside."""
    domain = spec.domain
    asked = (domain.resources.requests if domain.resources else None) or {}
    limits = (domain.resources.limits if domain.resources else None) or {}
    overhead = of(overhead_bytes(spec))
    requests = {name: str(value) for name, value in asked.items()}
    requests["cpu"] = str(asked.get("cpu") or limits.get("cpu") or of_milli(MILLI_PER_CPU * vcpus(domain.cpu)))
    requests["memory"] = str(parse_quantity(asked.get("memory") or limits.get("memory") or str(guest_memory(spec))) + overhead)
    document: Document = {"requests": requests}
    if limits:
        document["limits"] = {name: str(value) for name, value in limits.items()}
        if "memory" in limits:
            document["limits"]["memory"] = str(parse_quantity(limits["memory"]) + overhead)
    return document


def guest_memory(spec: VirtualMachineInstanceSpec) -> Quantity:
    domain = spec.domain
    asked = (domain.resources.requests if domain.resources else None) or {}
    limits = (domain.resources.limits if domain.resources else None) or {}
    written = domain.memory.guest if domain.memory else None
    return parse_quantity(written or asked.get("memory") or limits.get("memory") or defaults.GUEST_MEMORY)


def vcpus(cpu: CPU | None) -> int:
    return (cpu.sockets or 1) * (cpu.cores or 1) * (cpu.threads or 1) if cpu else 1


def overhead_bytes(spec: VirtualMachineInstanceSpec) -> int:
    return OVERHEAD_BASE + OVERHEAD_PER_CPU * vcpus(spec.domain.cpu) + guest_memory(spec).value() // PAGE_TABLE_SHARE


def _volumes(spec: VirtualMachineInstanceSpec) -> list[Document]:
    """What the guest mounts, so that the node may read it and the scheduler knows where it is."""
    claims = [{"name": f"claim-{n}", "persistentVolumeClaim": {"claimName": c}} for n, c in enumerate(claims_of(needs_of(spec)))]
    secrets = _names(name for volume in spec.volumes or () for name in _mounted_secrets(volume))
    maps = _names(name for volume in spec.volumes or () for name in _mounted_config_maps(volume))
    return [
        *claims,
        *({"name": f"secret-{n}", "secret": {"secretName": name, "optional": True}} for n, name in enumerate(secrets)),
        *({"name": f"config-map-{n}", "configMap": {"name": name, "optional": True}} for n, name in enumerate(maps)),
    ]


def _mounted_secrets(volume: Volume) -> Iterable[str]:
    if volume.secret is not None:
        yield volume.secret.secret_name
    if volume.sysprep is not None and volume.sysprep.secret is not None:
        yield volume.sysprep.secret.name
    for source in (volume.cloud_init_no_cloud, volume.cloud_init_config_drive):
        yield from cloud_init_secrets(source)


def _mounted_config_maps(volume: Volume) -> Iterable[str]:
    if volume.config_map is not None:
        yield volume.config_map.name
    if volume.sysprep is not None and volume.sysprep.config_map is not None:
        yield volume.sysprep.config_map.name


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
