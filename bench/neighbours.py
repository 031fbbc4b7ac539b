"""Who else used the machine during a benchmark: figures from a busy machine are worth less, and should say so."""

import os
import resource
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
# Less than this share of all cores is a quiet machine.
QUIET = 0.1


class Neighbours:
    """From making one to asking it. Our servers count as ours once they have ended, so ask after they have."""

    def __init__(self) -> None:
        self._before = self._now()

    def share(self) -> float:
        """The share of all cores that went to processes which the benchmark did not start."""
        before, now = self._before, self._now()
        passed, busy, ours = (after - first for after, first in zip(now, before, strict=True))
        return max(0.0, busy - ours) / passed if passed else 0.0

    def notes(self) -> list[str]:
        share = self.share()
        if share < QUIET:
            return []
        return [f"others used {share:.0%} of this machine meanwhile: on a quiet one both sides, and their ratios, may differ"]

    @staticmethod
    def _now() -> tuple[float, float, float]:
        fields = [int(value) / _TICKS for value in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        idle = fields[3] + fields[4]
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(fields), sum(fields) - idle, sum(one.ru_utime + one.ru_stime for one in used)
