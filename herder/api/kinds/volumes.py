"""Volumes and networks of a machine: where its disks, its seed data and its cards get their content from."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from herder.api.meta import LocalObjectReference
from herder.api.views import NAME, PRINTABLE, STAYS_INSIDE, ObjectName, Quantity, View, at_most_one, doc, exactly_one, spelled

_CIDR = spelled(r"^[0-9a-fA-F.:]+/[0-9]{1,3}$", "a range of addresses such as 10.0.2.0/24")


class DataVolumeSource(View, frozen=True, kw_only=True):
    """A DataVolume, and through it the claim of the same name."""

    name: Annotated[ObjectName, doc("Name of the DataVolume in the same namespace.")]
    hotpluggable: Annotated[bool, doc("Whether the volume may come and go while the guest runs.")] | None = None


class ClaimSource(View, frozen=True, kw_only=True):
    """A PersistentVolumeClaim."""

    claim_name: Annotated[ObjectName, doc("Name of the claim in the same namespace.")]
    read_only: Annotated[bool, doc("Whether the guest may only read.")] | None = None
    hotpluggable: Annotated[bool, doc("Whether the volume may come and go while the guest runs.")] | None = None


class EmptyDiskSource(View, frozen=True, kw_only=True):
    """An empty disk that lives as long as the instance."""

    capacity: Annotated[Quantity, doc("Size of the disk, for example 2Gi.")]


class ContainerDiskSource(View, frozen=True, kw_only=True):
    """A disk from a container image; changes are lost when the instance ends. A runtime may not support it and says so."""

    image: Annotated[str, doc("Image that holds the disk.", min_length=1, max_length=1024, rules=(PRINTABLE,))]
    path: Annotated[str, doc("Path of the disk in the image.", max_length=1024, rules=(STAYS_INSIDE,))] | None = None
    image_pull_secret: Annotated[ObjectName, doc("Secret with the credentials for the image.")] | None = None


class CloudInitSource(View, frozen=True, kw_only=True):
    """User data and network data that cloud-init finds at boot, written here or taken from Secrets."""

    RULES = (
        at_most_one("userData", "userDataBase64", "secretRef"),
        at_most_one("networkData", "networkDataBase64", "networkDataSecretRef"),
    )

    user_data: Annotated[str, doc("User data, in clear.", max_length=65536)] | None = None
    user_data_base64: Annotated[str, doc("User data, base64.", max_length=131072)] | None = field(
        default=None, name="userDataBase64"
    )
    secret_ref: Annotated[LocalObjectReference, doc("Secret whose key userdata (or userData) holds the user data.")] | None = None
    network_data: Annotated[str, doc("Network data, in clear.", max_length=65536)] | None = None
    network_data_base64: Annotated[str, doc("Network data, base64.", max_length=131072)] | None = field(
        default=None, name="networkDataBase64"
    )
    network_data_secret_ref: (
        Annotated[LocalObjectReference, doc("Secret whose key networkdata (or networkData) holds the network data.")] | None
    ) = None


class SecretSource(View, frozen=True, kw_only=True):
    """A Secret as a small read-only disk of files."""

    secret_name: Annotated[ObjectName, doc("Name of the Secret in the same namespace.")]
    optional: Annotated[bool, doc("Whether the machine starts without it; false when absent.")] | None = None
    volume_label: Annotated[str, doc("Label of the disk in the guest.", max_length=32, rules=(PRINTABLE,))] | None = None


class ConfigMapSource(View, frozen=True, kw_only=True):
    """A ConfigMap as a small read-only disk of files."""

    name: Annotated[ObjectName, doc("Name of the ConfigMap in the same namespace.")]
    optional: Annotated[bool, doc("Whether the machine starts without it; false when absent.")] | None = None
    volume_label: Annotated[str, doc("Label of the disk in the guest.", max_length=32, rules=(PRINTABLE,))] | None = None


class SysprepSource(View, frozen=True, kw_only=True):
    """Answer files for Windows setup, from a Secret or a ConfigMap."""

    RULES = (exactly_one("secret", "configMap"),)

    secret: Annotated[LocalObjectReference, doc("Secret with the answer files.")] | None = None
    config_map: Annotated[LocalObjectReference, doc("ConfigMap with the answer files.")] | None = None


class Volume(View, frozen=True, kw_only=True):
    """Content for a disk: a name and exactly one source."""

    RULES = (
        exactly_one(
            "dataVolume",
            "persistentVolumeClaim",
            "emptyDisk",
            "containerDisk",
            "cloudInitNoCloud",
            "cloudInitConfigDrive",
            "secret",
            "configMap",
            "sysprep",
        ),
    )

    name: Annotated[str, doc("Name by which disks refer to it.", rules=(NAME,), max_length=63)]
    data_volume: Annotated[DataVolumeSource, doc("A DataVolume.")] | None = None
    persistent_volume_claim: Annotated[ClaimSource, doc("A claim that exists already.")] | None = None
    empty_disk: Annotated[EmptyDiskSource, doc("An empty disk that goes with the instance.")] | None = None
    container_disk: Annotated[ContainerDiskSource, doc("A disk from a container image.")] | None = None
    cloud_init_no_cloud: Annotated[CloudInitSource, doc("A cloud-init seed in the NoCloud format.")] | None = None
    cloud_init_config_drive: Annotated[CloudInitSource, doc("A cloud-init seed in the ConfigDrive format.")] | None = None
    secret: Annotated[SecretSource, doc("A Secret.")] | None = None
    config_map: Annotated[ConfigMapSource, doc("A ConfigMap.")] | None = None
    sysprep: Annotated[SysprepSource, doc("Answer files for Windows setup.")] | None = None


class PodNetwork(View, frozen=True, kw_only=True):
    """The network of the machine's pod."""

    vm_network_cidr: (
        Annotated[str, doc("Addresses inside the machine, for example 10.0.2.0/24.", max_length=43, rules=(_CIDR,))] | None
    ) = field(default=None, name="vmNetworkCIDR")


class Network(View, frozen=True, kw_only=True):
    """A network that a card can be on."""

    RULES = (exactly_one("pod"),)

    name: Annotated[str, doc("Name by which interfaces refer to it.", rules=(NAME,), max_length=63)]
    pod: Annotated[PodNetwork, doc("The network of the pod.")] | None = None
