"""PodMigrationJobs: which may begin, and what there is of a pod's workload and of its budgets, as the rules ask for it.

workloads.py  the workload of a pod and its replicas, kept ready from caches
scales.py     how many replicas controllers of somebody else's want, read through their scale subresource
budgets.py    the budgets of a pod and the pods of a budget, kept ready from caches
arbitrator.py   which jobs may begin: the pass over all that wait
candidates.py   what it looks at, kept ready from caches; history.py what finished jobs tell
decisions.py    writes down what it decided
second_look.py  the look right before a pod is disturbed
metrics.py      what is counted of arbitration
"""
