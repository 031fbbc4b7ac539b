"""DataVolume: a claim together with where its content comes from."""

from __future__ import annotations

from typing import Annotated, Literal

from herder.api.kinds.base import Kind
from herder.api.kinds.domain import ResourceRequirements
from herder.api.meta import Condition, LabelSelector
from herder.api.views import (
    NAME_OR_NONE,
    SUBDOMAIN_OR_NONE,
    Bytes,
    Count,
    ObjectName,
    Rule,
    View,
    doc,
    exactly_one,
    limited,
    spelled,
)

AccessMode = Literal["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]
DataVolumePhase = Literal[
    "Pending",
    "WaitForFirstConsumer",
    "PVCBound",
    "ImportScheduled",
    "ImportInProgress",
    "CloneScheduled",
    "CloneInProgress",
    "Succeeded",
    "Failed",
    "Paused",
    "Unknown",
]
_URL = spelled(r"^https?://[^\x00-\x20\x7f]+$", "an address such as https://example.com/disk.qcow2, without blanks")
_CHECKSUM = spelled(r"^(sha256:[0-9a-fA-F]{64}|sha512:[0-9a-fA-F]{128})$", "sha256: and 64, or sha512: and 128 hexadecimal digits")
# What one of them must look like no schema says: there may be too many of them for a rule each.
_Header = Annotated[str, limited(4096)]
UNCHANGED_SPEC = Rule("self == oldSelf", "spec is immutable: delete this DataVolume and create another")


class HTTPSource(View, frozen=True, kw_only=True):
    """An image that is fetched by HTTP or HTTPS."""

    url: Annotated[str, doc("Where the image is, http:// or https://.", rules=(_URL,), max_length=4096)]
    secret_ref: (
        Annotated[
            str,
            doc("Secret with keys accessKeyId and secretKey for basic authentication.", max_length=253, rules=(SUBDOMAIN_OR_NONE,)),
        ]
        | None
    ) = None
    cert_config_map: (
        Annotated[str, doc("ConfigMap with the certificates to trust.", max_length=253, rules=(SUBDOMAIN_OR_NONE,))] | None
    ) = None
    extra_headers: Annotated[tuple[_Header, ...], doc("Further headers of the request, 'Name: value'.", max_length=64)] | None = (
        None
    )
    checksum: (
        Annotated[
            str,
            doc("What the image must add up to, for example sha256:….", rules=(_CHECKSUM,), max_length=160),
        ]
        | None
    ) = None


class BlankSource(View, frozen=True, kw_only=True):
    """An empty volume."""


class CloneSource(View, frozen=True, kw_only=True):
    """A claim whose content is copied."""

    name: Annotated[ObjectName, doc("Name of the claim.")]
    namespace: (
        Annotated[str, doc("Namespace of the claim; the own one when absent.", max_length=63, rules=(NAME_OR_NONE,))] | None
    ) = None


class DataVolumeContent(View, frozen=True, kw_only=True):
    """Where the content comes from."""

    RULES = (exactly_one("http", "blank", "pvc"),)

    http: Annotated[HTTPSource, doc("Fetch an image.")] | None = None
    blank: Annotated[BlankSource, doc("Start empty.")] | None = None
    pvc: Annotated[CloneSource, doc("Copy a claim.")] | None = None


class ClaimSpec(View, frozen=True, kw_only=True):
    """The claim that is made."""

    access_modes: Annotated[tuple[AccessMode, ...], doc("How the claim may be used.", max_length=4)] | None = None
    resources: Annotated[ResourceRequirements, doc("How large it must be: requests.storage.")] | None = None
    storage_class_name: (
        Annotated[str, doc("StorageClass; the cluster's default when absent.", max_length=253, rules=(SUBDOMAIN_OR_NONE,))] | None
    ) = None
    volume_mode: Annotated[Literal["Filesystem", "Block"], doc("Filesystem when absent.")] | None = None
    volume_name: Annotated[str, doc("A certain PersistentVolume.", max_length=253, rules=(SUBDOMAIN_OR_NONE,))] | None = None
    selector: Annotated[LabelSelector, doc("Selects PersistentVolumes by label.")] | None = None


class DataVolumeSpec(View, frozen=True, kw_only=True):
    """A claim and its content."""

    RULES = (exactly_one("pvc", "storage"),)

    source: Annotated[DataVolumeContent, doc("Where the content comes from.")]
    pvc: Annotated[ClaimSpec, doc("The claim, exactly as written.")] | None = None
    storage: Annotated[ClaimSpec, doc("The claim, with what is absent chosen to suit the StorageClass.")] | None = None
    content_type: Annotated[Literal["kubevirt", "archive"], doc("kubevirt (a disk image, the default) or archive.")] | None = None
    preallocation: Annotated[bool, doc("Whether all room is taken at once.")] | None = None
    priority_class_name: (
        Annotated[str, doc("PriorityClass of the pods that do the work.", max_length=253, rules=(SUBDOMAIN_OR_NONE,))] | None
    ) = None


class DataVolumeStatus(View, frozen=True, kw_only=True):
    """How far the content is."""

    observed_generation: Annotated[Bytes, doc("Generation of the spec that this status describes.")] | None = None
    phase: Annotated[DataVolumePhase, doc("Where it is on its way.")] | None = None
    progress: Annotated[str, doc("How much of the content is there, for example 45.0%; N/A before.", max_length=16)] | None = None
    reason: Annotated[str, doc("One CamelCase word saying why.", max_length=1024)] | None = None
    message: Annotated[str, doc("A sentence saying why.", max_length=32768)] | None = None
    claim_name: Annotated[str, doc("Name of the claim.", max_length=253)] | None = None
    restart_count: Annotated[Count, doc("How often the work was started again.")] | None = None
    conditions: Annotated[tuple[Condition, ...], doc("Bound, Running, Ready.", max_length=64, list_keys=("type",))] | None = None


class DataVolume(Kind, frozen=True, kw_only=True):
    """A claim together with where its content comes from."""

    spec: Annotated[DataVolumeSpec, doc("What is wanted. It cannot be changed later.", rules=(UNCHANGED_SPEC,))]
    status: Annotated[DataVolumeStatus, doc("What is.")] | None = None
