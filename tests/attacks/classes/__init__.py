"""A generator per class of what a client decides the size of. Importing this registers them all."""

from tests.attacks.classes import access, definitions, documents, formats, history, metadata, orders, patches, questions

__all__ = ["access", "definitions", "documents", "formats", "history", "metadata", "orders", "patches", "questions"]
