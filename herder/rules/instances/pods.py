"""Which of an instance's pods has its guest: the launcher that it was started in, or one that it was moved to."""

from __future__ import annotations

from herder.api import labels
from herder.api.core import Pod
from herder.api.guest import ENDED, report_of

FINISHED = ("Succeeded", "Failed")


def active_pod(pods: tuple[Pod, ...], known: str | None = None) -> Pod | None:
    """The one that the guest runs in, or ran in last: targets of migrations are somebody else's business until they take over.

    `pods` are ordered by age. `known` is the launcher that the instance names: it had the guest, whatever it reports today. A node
    that lost a guest has forgotten when it was started, too.
    """
    had = [pod for pod in pods if labels.MIGRATION_UID not in pod.labels or pod.name == known or took_over(pod)]
    # A target only runs with its source's leave: of two that seem to run it is the younger.
    candidates = (
        [pod for pod in had if not gave_away(pod) and not has_ended(pod)] or [pod for pod in had if not gave_away(pod)] or had
    )
    return candidates[-1] if candidates else None


def heir(pods: tuple[Pod, ...]) -> Pod | None:
    """A target that will have the guest: it was given away to it, or it has all that the guest needs and waits to be told."""
    given_away = any(gave_away(pod) for pod in pods)
    targets = [pod for pod in pods if labels.MIGRATION_UID in pod.labels and not _over(pod) and not took_over(pod)]
    return next((pod for pod in targets if given_away or _has_memory(pod)), None)


def has_ended(pod: Pod) -> bool:
    """Nothing of it runs, says its node."""
    report = report_of(pod)
    return pod.status.phase in FINISHED or (report is not None and report.state in ENDED)


def _over(pod: Pod) -> bool:
    return pod.being_deleted or has_ended(pod)


def _has_memory(pod: Pod) -> bool:
    report = report_of(pod)
    return report is not None and report.migration is not None and report.migration.has_memory


def took_over(pod: Pod) -> bool:
    """A guest that came here has been started here; one that never came has not, however it ended."""
    report = report_of(pod)
    if report is None or report.state in ("Preparing", "Incoming"):
        return False
    return report.state in ("Running", "Paused") or report.started_at is not None


def gave_away(pod: Pod) -> bool:
    report = report_of(pod)
    return report is not None and report.state == "HandedOver"
