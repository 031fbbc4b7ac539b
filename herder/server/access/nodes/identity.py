"""Who is a node: name and group must both say so."""

from __future__ import annotations

from typing import Final

from herder.server.request import User

NODES: Final = "system:nodes"
PREFIX: Final = "system:node:"


def node_of(user: User) -> str | None:
    """The node that the user is; empty where it does not say which, None for everybody else."""
    if NODES not in user.groups or not user.name.startswith(PREFIX):
        return None
    return user.name.removeprefix(PREFIX)
