"""Volumes of a pod: where its files come from."""

from __future__ import annotations

from msgspec import field

from herder.api.core.containers import FieldSelector, ResourceFieldSelector
from herder.api.core.storage import ClaimTemplate
from herder.api.views import Quantity, View


class KeyToPath(View, frozen=True, kw_only=True):
    key: str = ""
    path: str = ""
    mode: int | None = None


class SecretVolumeSource(View, frozen=True, kw_only=True):
    secret_name: str = ""
    items: tuple[KeyToPath, ...] = ()
    default_mode: int | None = None
    optional: bool | None = None


class ConfigMapVolumeSource(View, frozen=True, kw_only=True):
    name: str = ""
    items: tuple[KeyToPath, ...] = ()
    default_mode: int | None = None
    optional: bool | None = None


class DownwardAPIVolumeFile(View, frozen=True, kw_only=True):
    path: str = ""
    field_ref: FieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    mode: int | None = None


class ProjectedDownwardAPI(View, frozen=True, kw_only=True):
    items: tuple[DownwardAPIVolumeFile, ...] = ()


class DownwardAPIVolumeSource(ProjectedDownwardAPI, frozen=True, kw_only=True):
    default_mode: int | None = None


class ServiceAccountTokenProjection(View, frozen=True, kw_only=True):
    path: str = ""
    audience: str = ""
    expiration_seconds: int | None = None


class ProjectedSecret(View, frozen=True, kw_only=True):
    """A Secret or a ConfigMap inside a projected volume."""

    name: str = ""
    items: tuple[KeyToPath, ...] = ()
    optional: bool | None = None


class VolumeProjection(View, frozen=True, kw_only=True):
    secret: ProjectedSecret | None = None
    config_map: ProjectedSecret | None = None
    downward_api: ProjectedDownwardAPI | None = field(default=None, name="downwardAPI")
    service_account_token: ServiceAccountTokenProjection | None = None


class ProjectedVolumeSource(View, frozen=True, kw_only=True):
    sources: tuple[VolumeProjection, ...] | None = None
    default_mode: int | None = None


class EmptyDirVolumeSource(View, frozen=True, kw_only=True):
    medium: str = ""
    size_limit: Quantity | None = None


class HostPathVolumeSource(View, frozen=True, kw_only=True):
    path: str = ""
    type: str | None = None


class ClaimVolumeSource(View, frozen=True, kw_only=True):
    claim_name: str = ""
    read_only: bool = False


class EphemeralVolumeSource(View, frozen=True, kw_only=True):
    volume_claim_template: ClaimTemplate | None = None


class CSIVolumeSource(View, frozen=True, kw_only=True):
    driver: str = ""
    read_only: bool | None = None
    volume_attributes: dict[str, str] = field(default_factory=dict)


class NFSVolumeSource(View, frozen=True, kw_only=True):
    server: str = ""
    path: str = ""
    read_only: bool = False


class Volume(View, frozen=True, kw_only=True):
    name: str = ""
    empty_dir: EmptyDirVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    secret: SecretVolumeSource | None = None
    config_map: ConfigMapVolumeSource | None = None
    downward_api: DownwardAPIVolumeSource | None = field(default=None, name="downwardAPI")
    projected: ProjectedVolumeSource | None = None
    persistent_volume_claim: ClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    nfs: NFSVolumeSource | None = None
