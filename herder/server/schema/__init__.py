"""Schemas of kinds, built-in and custom: what an object may hold, what is filled in, what is dropped, what is wrong.

schema = compile_schema(openapi)                # of a custom resource
schema = compile_schema(openapi, components())  # of a built-in kind
"""

from herder.server.schema.check import check_schema, unknown_keywords
from herder.server.schema.duplicates import duplicate_keys
from herder.server.schema.schema import Schema, compile_schema

__all__ = ["Schema", "check_schema", "compile_schema", "duplicate_keys", "unknown_keywords"]
