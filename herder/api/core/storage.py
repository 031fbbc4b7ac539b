"""Disks: claims, the volumes that fill them, and the classes that make volumes."""

from __future__ import annotations

from msgspec import field

from herder.api.core.base import Object
from herder.api.core.containers import ResourceList
from herder.api.meta import LabelSelector, NodeSelector, ObjectMeta, ObjectReference
from herder.api.views import Time, View


class VolumeResources(View, frozen=True, kw_only=True):
    requests: ResourceList = field(default_factory=dict)
    limits: ResourceList = field(default_factory=dict)


class DataSource(View, frozen=True, kw_only=True):
    api_group: str | None = None
    kind: str = ""
    name: str = ""


class DataSourceRef(DataSource, frozen=True, kw_only=True):
    namespace: str | None = None


class PersistentVolumeClaimSpec(View, frozen=True, kw_only=True):
    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: VolumeResources = VolumeResources()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    data_source: DataSource | None = None
    data_source_ref: DataSourceRef | None = None
    volume_attributes_class_name: str | None = None


class ClaimCondition(View, frozen=True, kw_only=True):
    type: str = ""
    status: str = "Unknown"
    last_probe_time: Time | None = None
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""


class PersistentVolumeClaimStatus(View, frozen=True, kw_only=True):
    phase: str = ""
    access_modes: tuple[str, ...] = ()
    capacity: ResourceList = field(default_factory=dict)
    conditions: tuple[ClaimCondition, ...] = ()
    allocated_resources: ResourceList = field(default_factory=dict)
    allocated_resource_statuses: dict[str, str] = field(default_factory=dict)


class PersistentVolumeClaim(Object, frozen=True, kw_only=True):
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class ClaimTemplate(View, frozen=True, kw_only=True):
    """A claim to be made: for an ephemeral volume, or for each replica of a StatefulSet."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class VolumeNodeAffinity(View, frozen=True, kw_only=True):
    required: NodeSelector | None = None


class HostPathSource(View, frozen=True, kw_only=True):
    path: str = ""
    type: str | None = None


class LocalSource(View, frozen=True, kw_only=True):
    path: str = ""
    fs_type: str | None = None


class NFSSource(View, frozen=True, kw_only=True):
    server: str = ""
    path: str = ""
    read_only: bool = False


class CSISource(View, frozen=True, kw_only=True):
    driver: str = ""
    volume_handle: str = ""
    read_only: bool = False
    fs_type: str = ""
    volume_attributes: dict[str, str] = field(default_factory=dict)


class PersistentVolumeSpec(View, frozen=True, kw_only=True):
    capacity: ResourceList = field(default_factory=dict)
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None
    persistent_volume_reclaim_policy: str = ""
    storage_class_name: str = ""
    mount_options: tuple[str, ...] = ()
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    host_path: HostPathSource | None = None
    local: LocalSource | None = None
    nfs: NFSSource | None = None
    csi: CSISource | None = None


class PersistentVolumeStatus(View, frozen=True, kw_only=True):
    phase: str = ""
    message: str = ""
    reason: str = ""


class PersistentVolume(Object, frozen=True, kw_only=True):
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class TopologyRequirement(View, frozen=True, kw_only=True):
    key: str = ""
    values: tuple[str, ...] = ()


class TopologyTerm(View, frozen=True, kw_only=True):
    match_label_expressions: tuple[TopologyRequirement, ...] = ()


class StorageClass(Object, frozen=True, kw_only=True):
    provisioner: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    reclaim_policy: str | None = None
    mount_options: tuple[str, ...] = ()
    allow_volume_expansion: bool | None = None
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologyTerm, ...] = ()
