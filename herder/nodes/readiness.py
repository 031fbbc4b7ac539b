"""When the containers of a plain pod are started and ready. Nothing runs in them, so a probe passes whenever it is asked: the probe
itself says when that is. Pure."""

from __future__ import annotations

from herder.api.core import Pod
from herder.api.core.containers import Container, Probe
from herder.nodes.health import HEALTHY, Health
from herder.nodes.runtimes.base import GuestStatus


def plain_health(pod: Pod, status: GuestStatus | None, now: float) -> Health:
    """Without a status it is started in this moment."""
    began = status.started_at if status is not None and status.started_at is not None else now
    containers = _counted(pod)
    if all(one.startup_probe is None and one.readiness_probe is None for one in containers):
        return HEALTHY
    ran = now - began
    unready = tuple(one.name for one in containers if _ready_after(one) > ran)
    unstarted = tuple(one.name for one in containers if _started_after(one) > ran)
    ahead = [moment - ran for one in containers for moment in (_started_after(one), _ready_after(one)) if moment > ran]
    return Health(
        ready=not unready,
        not_ready_because=f"containers with unready status: [{' '.join(unready)}]" if unready else "",
        unready=unready,
        unstarted=unstarted,
        next_look=min(ahead, default=None),
    )


def _counted(pod: Pod) -> list[Container]:
    """Sidecars, too."""
    sidecars = [one for one in pod.spec.init_containers or () if one.restart_policy == "Always"]
    return [*sidecars, *(pod.spec.containers or ())]


def _started_after(container: Container) -> float:
    return _passes_after(container.startup_probe)


def _ready_after(container: Container) -> float:
    """It is not asked before it is started; its delay counts from the beginning."""
    return _passes_after(container.readiness_probe, _started_after(container))


def _passes_after(probe: Probe | None, earliest: float = 0.0) -> float:
    if probe is None:
        return earliest
    return max(earliest, probe.initial_delay_seconds) + (probe.success_threshold - 1) * probe.period_seconds
