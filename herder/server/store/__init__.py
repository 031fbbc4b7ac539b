"""Durable objects: an append-only log in SQLite, the current state in memory, and everyone who watches it."""

from herder.server.store.database import Database, DataError, NewerFormatError
from herder.server.store.history import CompactedError
from herder.server.store.records import ADDED, DELETED, MODIFIED, Change, Record
from herder.server.store.room import Room
from herder.server.store.store import Store, StoreStopped
from herder.server.store.writer import InlineWriter, StorageFullError, ThreadWriter, Writer

__all__ = [
    "ADDED",
    "DELETED",
    "MODIFIED",
    "Change",
    "CompactedError",
    "DataError",
    "Database",
    "InlineWriter",
    "NewerFormatError",
    "Record",
    "Room",
    "StorageFullError",
    "Store",
    "StoreStopped",
    "ThreadWriter",
    "Writer",
]
