"""Where an instance is in its life, as its pod and its node show it."""

from __future__ import annotations

import msgspec

from herder.api import labels, reasons
from herder.api.core import Node, Pod
from herder.api.guest import GuestReport, report_of
from herder.api.kinds.instance import InstancePhase


class Observed(msgspec.Struct, frozen=True):
    phase: InstancePhase
    reason: str = ""
    message: str = ""
    report: GuestReport | None = None


def observe(pod: Pod, node: Node | None) -> Observed:
    """The node is the one that the pod is bound to; None where there is no such Node."""
    report = report_of(pod)
    # One that was handed over has not ended: who has it now decides.
    if pod.status.phase == "Succeeded" or (report is not None and report.state == "ShutDown"):
        return _ended("Succeeded", pod, report)
    if pod.status.phase == "Failed" or (report is not None and report.state in ("Crashed", "Failed")):
        return _ended("Failed", pod, report)
    if not pod.spec.node_name:
        return _unbound(pod)
    if not answers(node):
        message = f"node {pod.spec.node_name} does not answer; the guest may still run there, so it is started nowhere else"
        return Observed("Unknown", reasons.NODE_NOT_FENCED, f"{message} until the node is back or fenced", report)
    if report is None or report.state in ("Preparing", "Incoming"):
        return Observed("Scheduled", report.reason if report else "", report.message if report else "", report)
    if report.state == "HandedOver":
        return Observed("Running", report.reason, report.message, report)
    # A guest that runs has a reason only where its node has met an error.
    return Observed("Running", report.reason, report.message if report.reason else "", report)


def _unbound(pod: Pod) -> Observed:
    scheduled = next((one for one in pod.status.conditions if one.type == "PodScheduled"), None)
    if scheduled is not None and scheduled.status == "False":
        return Observed("Scheduling", scheduled.reason or reasons.UNSCHEDULABLE, scheduled.message)
    return Observed("Scheduling")


def _ended(phase: InstancePhase, pod: Pod, report: GuestReport | None) -> Observed:
    default = reasons.GUEST_SHUT_DOWN if phase == "Succeeded" else reasons.GUEST_CRASHED
    reason = (report.reason if report else "") or pod.status.reason or default
    message = (report.message if report else "") or pod.status.message
    return Observed(phase, reason, message, report)


def answers(node: Node | None) -> bool:
    # A node that never said anything is new, not lost.
    return node is not None and _ready(node) != "Unknown"


def fenced(node: Node | None) -> bool:
    """Whether it is certain that nothing runs there any more: the Node is gone, or someone vouches for it by the taint. A node that
    says itself that it is well is believed more than that: what it runs is ended by its agent."""
    if node is None:
        return True
    return _ready(node) != "True" and any(taint.key == labels.OUT_OF_SERVICE_TAINT for taint in node.spec.taints)


def trust(node: Node | None) -> tuple[bool, bool]:
    """What of all that a node says decides about guests: nodes speak often."""
    return (answers(node), fenced(node))


def _ready(node: Node) -> str | None:
    return next((one.status for one in node.status.conditions if one.type == "Ready"), None)
