"""PodMigrationJobs (seed 004): who may be moved, what a pod belongs to, and how many of it may be away at once.

admission.py  what a new job may not be because of its pod, its creator and other jobs
workload.py   the workload of a pod, found from the pod's controller upwards
rollout.py    whether a workload is in the middle of a rollout
replicas.py   the pods of a workload, and how many of them are missed
limits.py     how many of so many replicas may migrate, or be unavailable, at once
budgets.py    the disruption budgets of a pod, and what they allow
reservation.py  the reservation that a job makes from its pod; template_merge.py what the job says of it
arbitration/  which jobs may begin: filters, limits, sorters, one pass over all of them
"""
