"""Moves guests: one migration at a time through its phases, as many at once as the limits allow."""

from herder.controllers.migration.migrations import Migrations

__all__ = ["Migrations"]
