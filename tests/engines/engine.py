"""What a test needs to know of an engine that runs: where it is, and who we are to it."""

from dataclasses import dataclass
from pathlib import Path

NAMES = ("embedded", "kubernetes")


@dataclass(frozen=True)
class Engine:
    name: str
    server: str
    ca: Path
    client_certificate: Path
    client_key: Path
    kubeconfig: Path


class Unavailable(Exception):
    """This machine cannot run the engine: the reason is for the person who reads the summary."""
