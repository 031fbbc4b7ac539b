"""The Node object of a host: what it offers, and that it is there. Pure documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from herder.api import labels
from herder.api.core import Node
from herder.api.world import timestamp
from herder.nodes.runtimes.base import Host, HostCPU

CAPACITY = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
# Seconds; how long a Lease is good for, in so many times that.
RENEW_EVERY = 10.0
LEASE_LASTS = 4
Document = dict[str, Any]

Said = tuple[str, str, str, str]
NO_DISK_PRESSURE: Said = ("DiskPressure", "False", "AgentHasNoDiskPressure", "the agent has no disk pressure")
DISK_PRESSURE: Said = ("DiskPressure", "True", "AgentHasDiskPressure", "the storage has less left than is kept for the store")
CONDITIONS: tuple[Said, ...] = (
    ("MemoryPressure", "False", "AgentHasSufficientMemory", "the agent has sufficient memory available"),
    ("PIDPressure", "False", "AgentHasSufficientPID", "the agent has sufficient process ids available"),
    ("Ready", "True", "AgentReady", "the agent is posting ready status"),
)


class NodeSettings(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    capacity: dict[str, str] = msgspec.field(default_factory=lambda: dict(CAPACITY))
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    # So that nothing strays onto it, on a cluster that has other pods.
    tainted: bool = False
    address: str = "127.0.0.1"
    # Where the API server asks for logs and consoles; 0 for nowhere.
    port: int = 0
    # Nodes with the same value see the same volumes.
    storage: str = ""
    renew_every: float = RENEW_EVERY
    status_every: float = 300.0


def cpu_labels(cpu: HostCPU) -> dict[str, str]:
    """As KubeVirt's labeller writes them."""
    found = {
        labels.HOST_MODEL_CPU + cpu.model: "true",
        labels.CPU_MODEL_MIGRATION + cpu.model: "true",
    }
    if cpu.vendor:
        found[labels.CPU_VENDOR + cpu.vendor] = "true"
    found |= {labels.HOST_MODEL_REQUIRED_FEATURES + name: "true" for name in cpu.required_features}
    found |= {labels.CPU_FEATURE + name: "true" for name in cpu.features}
    found |= {labels.CPU_MODEL + name: "true" for name in cpu.models}
    return found | {labels.CPU_MODEL_MIGRATION + name: "true" for name in cpu.models}


def written_cpu(written: Mapping[str, str]) -> HostCPU | None:
    """The processor that labels describe; None where they say nothing of a host model."""

    def under(prefix: str) -> tuple[str, ...]:
        return tuple(sorted(key[len(prefix) :] for key, value in written.items() if key.startswith(prefix) and value == "true"))

    models = under(labels.HOST_MODEL_CPU)
    if not models:
        return None
    return HostCPU(
        model=models[0],
        vendor=next(iter(under(labels.CPU_VENDOR)), ""),
        required_features=under(labels.HOST_MODEL_REQUIRED_FEATURES),
        features=under(labels.CPU_FEATURE),
        models=under(labels.CPU_MODEL),
    )


def written_post_copy(written: Mapping[str, str]) -> str:
    """Why guests cannot come to a simulated node by post-copy, where its labels say that they cannot."""
    refused = written.get(labels.POST_COPY) == "false"
    return f'it is simulated without userfaultfd, as its label {labels.POST_COPY}: "false" says' if refused else ""


def as_written(written: Mapping[str, str]) -> tuple[HostCPU | None, str, str]:
    """Of a simulated node: its processor, and why it cannot do what its labels say that it cannot."""
    cannot_save = f'it is simulated so, as its label {labels.SAVE_MEMORY}: "false" says'
    return written_cpu(written), written_post_copy(written), cannot_save if written.get(labels.SAVE_MEMORY) == "false" else ""


def metadata_changes(settings: NodeSettings, host: Host, node: Node) -> dict[str, dict[str, str | None]]:
    """What the Node has to be told of itself: labels, and why it cannot do what it cannot."""
    # A simulated node is what its labels say at any time: they are reason enough.
    due = {} if host.runtime == "simulated" else why_not(host)
    annotations = {name: why or None for name, why in due.items() if node.annotations.get(name, "") != why}
    found = {"labels": label_changes(settings, host, node.labels), "annotations": annotations}
    return {name: changes for name, changes in found.items() if changes}


def label_changes(settings: NodeSettings, host: Host, known: Mapping[str, str]) -> dict[str, str | None]:
    """What is missing. Of the processor also what is not so any more: another QEMU, or another KVM, has other features. A simulated
    node has the processor that somebody wrote for it."""
    wanted = node_labels(settings, host)
    missing = {name: value for name, value in wanted.items() if name not in known or _is_another(name, value, known, host)}
    if host.runtime == "simulated" and written_cpu(known) is not None:
        return {name: value for name, value in missing.items() if not name.startswith(labels.CPU_LABELS)}
    stale = [name for name in known if name.startswith(labels.CPU_LABELS) and name not in wanted]
    return {**missing, **dict.fromkeys(stale)}


def _is_another(name: str, value: str, known: Mapping[str, str], host: Host) -> bool:
    """Only what was found out anew is corrected; what somebody wrote for a simulated node counts there."""
    return name in (labels.POST_COPY, labels.SAVE_MEMORY) and host.runtime != "simulated" and known[name] != value


def why_not(host: Host) -> dict[str, str]:
    """By the annotations that say it; empty where it can."""
    return {labels.NO_POST_COPY: host.cannot_post_copy, labels.NO_SAVE_MEMORY: host.cannot_save_memory}


def node_labels(settings: NodeSettings, host: Host) -> dict[str, str]:
    own = {
        "kubernetes.io/hostname": settings.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        labels.RUNTIME: host.runtime,
        labels.SCHEDULABLE: "true",
        labels.POST_COPY: "false" if host.cannot_post_copy else "true",
        labels.SAVE_MEMORY: "false" if host.cannot_save_memory else "true",
        **cpu_labels(host.cpu),
        **settings.labels,
    }
    return own | ({labels.STORAGE: settings.storage} if settings.storage else {})


def node_document(settings: NodeSettings, host: Host) -> Document:
    taint = {"key": labels.VM_HOST_TAINT, "effect": "NoSchedule"}
    cannot = {name: why for name, why in why_not(host).items() if why}
    return {
        "metadata": {
            "name": settings.name,
            "labels": node_labels(settings, host),
            "finalizers": [labels.NODE_FINALIZER],
            **({"annotations": cannot} if cannot else {}),
        },
        "spec": {"taints": [taint]} if settings.tainted else {},
    }


def node_status(settings: NodeSettings, host: Host, known: Node | None, now: float, *, disk_pressure: bool = False) -> Document:
    """What a user wrote of the capacity of a simulated node stays as it is written."""
    conditions = (*CONDITIONS[:-1], DISK_PRESSURE if disk_pressure else NO_DISK_PRESSURE, CONDITIONS[-1])
    capacity = {**settings.capacity, **(known.status.capacity if known else {})}
    status: Document = {
        "capacity": capacity,
        "allocatable": {**capacity, **(known.status.allocatable if known else {})},
        "conditions": [_condition(known, one, timestamp(now)) for one in conditions],
        "addresses": [
            {"type": "InternalIP", "address": settings.address},
            {"type": "Hostname", "address": settings.name},
        ],
        "nodeInfo": {
            **dict.fromkeys(("machineID", "systemUUID", "bootID", "kernelVersion", "osImage"), ""),
            "containerRuntimeVersion": f"{host.runtime}://{host.version}",
            "kubeletVersion": "herder",
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": "amd64",
        },
    }
    if settings.port:
        status["daemonEndpoints"] = {"kubeletEndpoint": {"Port": settings.port}}
        # Else an API server would speak SPDY to us for kubectl attach.
        status["declaredFeatures"] = ["ExtendWebSocketsToKubelet"]
    return status


def _condition(known: Node | None, wanted: Said, now: str) -> Document:
    kind, status, reason, message = wanted
    old = next((one for one in (known.status.conditions if known else ()) if one.type == kind), None)
    kept = old.last_transition_time if old is not None and old.status == status else None
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": now,
        "lastTransitionTime": timestamp(kept.timestamp()) if kept else now,
    }
