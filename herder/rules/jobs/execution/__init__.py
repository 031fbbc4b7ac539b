"""Carrying out a job that was admitted (seed 004, "Execute PodMigrationJob"): one look is a pure function, snapshot → plan.

snapshot.py           what one look sees: the job, its pod, its reservation, who took it
plan.py               what it leads to: writes, a status, events, the next look
strategy.py           which way a job goes, and the shape of a way
lifecycle.py          what all ways share: time, pause, abort, deletion, the end
reservation_first.py  reserve room, evict, see that the replacement took it
evict_directly.py     evict
placement.py          room for a pod that has no node yet
surge.py              another pod first, and only then evict
pod_release.py        how a pod is taken from its ReplicaSet and given back
live_migration.py     move the guest that runs in the pod
guest.py              where that guest is
room.py               the reservation of a job, made or given
replacement.py        who takes the place of the evicted pod, and whether anybody is to
eviction.py           how a pod is ended, and how far that is
ttl.py                the time that a job has
outcome.py            plans that only tell
status.py             the job's status, whole each time
"""
