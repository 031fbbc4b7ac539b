"""Has pods moved from another program: files PodMigrationJobs and follows them (docs/client.md).

connection.py  `connect`, and the calls
job.py         what a job is and how far, as a value
"""

from herder.client.connection import Herder, JobGone, connect
from herder.client.job import Job, Mode, Phase, Step
from herder.kube.errors import (
    AlreadyExists,
    ApiStatusError,
    Forbidden,
    Invalid,
    KubeError,
    Misconfigured,
    NotFound,
    Unreachable,
)

__all__ = [
    "AlreadyExists",
    "ApiStatusError",
    "Forbidden",
    "Herder",
    "Invalid",
    "Job",
    "JobGone",
    "KubeError",
    "Misconfigured",
    "Mode",
    "NotFound",
    "Phase",
    "Step",
    "Unreachable",
    "connect",
]
