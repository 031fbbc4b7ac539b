"""PodMigrationJobs: what there is of a pod's workload and of its budgets, as the rules ask for it.

workloads.py  the workload of a pod and its replicas, kept ready from caches
scales.py     how many replicas controllers of somebody else's want, read through their scale subresource
budgets.py    the budgets of a pod and the pods of a budget, kept ready from caches
"""
