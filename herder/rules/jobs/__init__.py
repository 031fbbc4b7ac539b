"""PodMigrationJobs (seed 004).

admission.py  what a new job may not be because of its pod, its creator and other jobs
"""
