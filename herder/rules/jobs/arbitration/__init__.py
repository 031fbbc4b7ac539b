"""Which jobs may begin: all that wait are looked at together, each pass, from one snapshot (seed 004, "arbitration mechanism").

filters/      pods that no job may move
limits/       what holds a job for now
sorters.py    who goes first
arbitrate.py  one pass over all of them
standing.py   what is kept from one pass to the next
candidate.py  what is read of jobs and pods; history.py of finished jobs
"""

from herder.rules.jobs.arbitration.arbitrate import Arbitration, Refused, arbitrate
from herder.rules.jobs.arbitration.limits import Wait
from herder.rules.jobs.arbitration.snapshot import ArbitrationSnapshot, Candidate, CandidatePod, Migrating, WorkloadState

__all__ = [
    "Arbitration",
    "ArbitrationSnapshot",
    "Candidate",
    "CandidatePod",
    "Migrating",
    "Refused",
    "Wait",
    "WorkloadState",
    "arbitrate",
]
