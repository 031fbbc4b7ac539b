"""Filling volumes, and clearing them: the work of importer pods."""

from herder.nodes.imports.failure import ImportFailed
from herder.nodes.imports.folder import StorageFolder
from herder.nodes.imports.simulated import SimulatedImports
from herder.nodes.imports.work import Imports, ImportSettings

__all__ = ["ImportFailed", "ImportSettings", "Imports", "SimulatedImports", "StorageFolder"]
