"""Which of an instance's pods has its guest: the launcher that it was started in, or one that it was moved to."""

from __future__ import annotations

from herder.api import labels
from herder.api.core import Pod
from herder.api.guest import ENDED, report_of


def active_pod(pods: tuple[Pod, ...]) -> Pod | None:
    """The one that the guest runs in: targets of migrations are somebody else's business until they take over.

    Of those that have had the guest, the one that has not given it away; the last one where all have.
    """
    had = [pod for pod in pods if labels.MIGRATION_UID not in pod.labels or _took_over(pod)]
    return next((pod for pod in had if not gave_away(pod)), None) or next(reversed(had), None)


def heir(pods: tuple[Pod, ...]) -> Pod | None:
    """A target that will have the guest: it was given away to it, or it has all that the guest needs and waits to be told."""
    given_away = any(gave_away(pod) for pod in pods)
    targets = [pod for pod in pods if labels.MIGRATION_UID in pod.labels and not _over(pod) and not _took_over(pod)]
    return next((pod for pod in targets if given_away or _has_memory(pod)), None)


def _over(pod: Pod) -> bool:
    report = report_of(pod)
    return pod.being_deleted or pod.status.phase in ("Succeeded", "Failed") or (report is not None and report.state in ENDED)


def _has_memory(pod: Pod) -> bool:
    report = report_of(pod)
    return report is not None and report.migration is not None and report.migration.has_memory


def _took_over(pod: Pod) -> bool:
    """A guest that came here has been started here; one that never came has not, however it ended."""
    report = report_of(pod)
    if report is None or report.state in ("Preparing", "Incoming"):
        return False
    return report.state in ("Running", "Paused") or report.started_at is not None


def gave_away(pod: Pod) -> bool:
    report = report_of(pod)
    return report is not None and report.state == "HandedOver"
