"""What the QEMU of this machine can do: asked once, a plain value from then on."""

from __future__ import annotations

import msgspec

from herder.nodes.runtimes.base import Host, HostCPU

# The model that every 64-bit guest can do with.
BASELINE = "qemu64"
# Earlier ones forget pages that were written to after their first copy, without KVM.
MIGRATES_SINCE = (8, 2)
SAVES_SINCE = (8, 2)
# Earlier ones have no option for where a console that goes to a file is typed to.
TYPES_SINCE = (8, 1)


class Firmware(msgspec.Struct, frozen=True):
    """UEFI, as two flash images: its code, and a fresh store of its variables."""

    code: str
    variables: str


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    program: str
    version: str
    accelerator: str  # kvm or tcg
    # Versioned names by what they are also called; a versioned name stands for itself.
    machine_types: dict[str, str]
    # Each model with what it lacks here.
    models: dict[str, tuple[str, ...]]
    features: tuple[str, ...]
    vendor: str
    host_model: str
    host_model_features: tuple[str, ...]
    # Empty where a guest can come here by post-copy; else the sentence that says why not.
    cannot_post_copy: str = ""
    efi: Firmware | None = None

    @property
    def usable_models(self) -> tuple[str, ...]:
        return tuple(sorted(name for name, lacking in self.models.items() if not lacking))


def runs_baseline(facts: Facts) -> bool:
    """Whether the plainest 64-bit processor can be had. A KVM may boot a few bytes, and have too little for any guest."""
    return not facts.models.get(BASELINE, (BASELINE,))


def cannot_migrate(facts: Facts) -> str:
    if facts.accelerator == "kvm" or number(facts.version) >= MIGRATES_SINCE:
        return ""
    return f"QEMU {facts.version} loses memory when it migrates a guest without KVM; 8.2 or newer does not"


def cannot_save_memory(facts: Facts) -> str:
    """Earlier ones know no files to migrate to."""
    if number(facts.version) >= SAVES_SINCE:
        return ""
    return f"QEMU {facts.version} cannot save the memory of a guest to a file; 8.2 or newer can"


def can_type(facts: Facts) -> bool:
    return number(facts.version) >= TYPES_SINCE


def number(version: str) -> tuple[int, int]:
    major, _, rest = version.partition(".")
    minor = rest.partition(".")[0]
    return (int(major) if major.isdigit() else 0, int(minor) if minor.isdigit() else 0)


def describe(facts: Facts) -> Host:
    cpu = HostCPU(
        model=facts.host_model,
        vendor=facts.vendor,
        required_features=facts.host_model_features,
        features=facts.features,
        models=facts.usable_models,
    )
    return Host(
        runtime="qemu",
        version=facts.version,
        accelerator=facts.accelerator,
        cpu=cpu,
        machine_types=tuple(sorted(set(facts.machine_types.values()))),
        cannot_migrate=cannot_migrate(facts),
        cannot_save_memory=cannot_save_memory(facts),
        cannot_post_copy=facts.cannot_post_copy,
    )
