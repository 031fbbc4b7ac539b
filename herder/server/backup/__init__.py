"""All objects in one file, and back again."""

from herder.server.backup.file import FORMAT, Backup, BackupError, BackupWriter, Header, is_backup, read_backup
from herder.server.backup.restoring import Restored, Wanted, prepare, restore

__all__ = [
    "FORMAT",
    "Backup",
    "BackupError",
    "BackupWriter",
    "Header",
    "Restored",
    "Wanted",
    "is_backup",
    "prepare",
    "read_backup",
    "restore",
]
