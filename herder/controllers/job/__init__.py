"""PodMigrationJobs (seed 004): which may begin, and how those that may are carried out.

jobs.py              the controller: one look at a job, from its snapshot to what is done
snapshot_builder.py  what a look sees; indexes.py finds the jobs that a change is about
writer.py            carries out what a look leads to; evictor.py ends the pod
flow_control.py      how fast pods are evicted; gate.py how many jobs are looked at at once
arbitrator.py        which jobs may begin: the pass over all that wait
candidates.py        what it looks at, kept ready from caches; looks.py one look at a job; history.py what finished jobs tell
decisions.py         writes down what it decided
second_look.py       the look right before a pod is disturbed
workloads.py         the workload of a pod and its replicas, kept ready from caches
scales.py            how many replicas controllers of somebody else's want, read through their scale subresource
budgets.py           the budgets of a pod and the pods of a budget, kept ready from caches
metrics.py           what is counted of arbitration; job_metrics.py of jobs
"""

from herder.controllers.job.jobs import PodMigrationJobs

__all__ = ["PodMigrationJobs"]
