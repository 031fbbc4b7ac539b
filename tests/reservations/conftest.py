"""The herd of the machines' tests, with nodes of each test's own."""

from tests.machines.conftest import api, engine, herd

__all__ = ["api", "engine", "herd"]
