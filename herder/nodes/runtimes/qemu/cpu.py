"""Which processor a guest gets: a named model, or host-model made into one, with every feature that differs from it."""

from __future__ import annotations

import msgspec

from herder.api import reasons
from herder.api.kinds.domain import CPU, CPUFeature
from herder.api.kinds.instance import StartedCPU
from herder.nodes.runtimes.base import Refused
from herder.nodes.runtimes.qemu.facts import Facts

HOST_MODEL = "host-model"
PASSTHROUGH = "host-passthrough"


def resolve(cpu: CPU | None, facts: Facts) -> StartedCPU:
    """Written down as it is: a migration target is told to be exactly this."""
    cpu = cpu or CPU()
    model, features = _model(cpu.model or HOST_MODEL, facts)
    for wish in cpu.features or ():
        _apply(wish, features, facts)
    return StartedCPU(
        model=model,
        vendor=facts.vendor,
        features=tuple(features[name] for name in sorted(features)) or None,
        sockets=cpu.sockets or 1,
        cores=cpu.cores or 1,
        threads=cpu.threads or 1,
    )


def option(cpu: StartedCPU) -> str:
    """`-cpu`. QEMU starts without what it lacks unless it is told to enforce; what a user forces it may lack."""
    words = [cpu.model or "max"]
    policies = {one.name: one.policy or "require" for one in cpu.features or ()}
    words += [f"{name}={'on' if policy in ('require', 'force') else 'off'}" for name, policy in policies.items()]
    return ",".join(words if "force" in policies.values() else [*words, "enforce"])


def check(cpu: StartedCPU, facts: Facts) -> None:
    """Whether a guest that was started elsewhere can be exactly the same here."""
    needed = [one.name for one in cpu.features or () if one.policy in (None, "require")]
    if lacking := [name for name in needed if name not in facts.features]:
        raise Refused(reasons.MISSING_CPU_FEATURES, f"the guest was started with {', '.join(lacking)}, which this node lacks")
    if cpu.model not in ("host", "max"):
        _named(cpu.model or "", facts, "cpu.model")


def _model(wanted: str, facts: Facts) -> tuple[str, dict[str, CPUFeature]]:
    if wanted == HOST_MODEL:
        return facts.host_model, {name: CPUFeature(name=name, policy="require") for name in facts.host_model_features}
    if wanted == PASSTHROUGH:
        return ("host" if facts.accelerator == "kvm" else "max"), {}
    return _named(wanted, facts, "domain.cpu.model"), {}


def _named(wanted: str, facts: Facts, field: str) -> str:
    lacking = facts.models.get(wanted)
    if lacking is None:
        known = ", ".join(facts.usable_models)
        raise Refused(reasons.UNSUPPORTED, f"{field}: {wanted} is no model of QEMU {facts.version}; usable here are {known}")
    if lacking:
        raise Refused(reasons.MISSING_CPU_FEATURES, f"{field}: {wanted} needs {', '.join(lacking)}, which this node lacks")
    return wanted


def _apply(wish: CPUFeature, features: dict[str, CPUFeature], facts: Facts) -> None:
    """As libvirt understands the policies."""
    policy, here = wish.policy or "require", wish.name in facts.features
    if policy == "require" and not here:
        raise Refused(reasons.MISSING_CPU_FEATURES, f"domain.cpu.features: {wish.name} is required, and this node lacks it")
    if policy == "forbid" and here:
        raise Refused(reasons.MISSING_CPU_FEATURES, f"domain.cpu.features: {wish.name} is forbidden, and this node has it")
    if policy == "optional" and not here:
        return
    settled = {"optional": "require", "forbid": "disable"}.get(policy, policy)
    features[wish.name] = msgspec.convert({"name": wish.name, "policy": settled}, CPUFeature)
