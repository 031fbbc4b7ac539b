"""Machines that are suspended: their memory goes to a claim, and their guests go on from there, once.

A machine that is suspended has no instance, and so takes nothing of any node. What it was is in its disks and in its claim
`<machine>-memory`. The controller of suspensions saves; the controller of machines ends and makes instances; the controller of
instances gives the claim to the pod that goes on from it.
"""
