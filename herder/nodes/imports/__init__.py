"""Filling volumes, and clearing them: the work of importer pods."""

from herder.nodes.imports.failure import ImportFailed
from herder.nodes.imports.folder import StorageFolder
from herder.nodes.imports.mounted import FromCluster
from herder.nodes.imports.simulated import SimulatedImports
from herder.nodes.imports.verifying import Verification
from herder.nodes.imports.work import Imports, ImportSettings

__all__ = ["FromCluster", "ImportFailed", "ImportSettings", "Imports", "SimulatedImports", "StorageFolder", "Verification"]
