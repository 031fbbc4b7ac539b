"""How the engine's open files are shared out: connections of clients, those to nodes, our own, and what the store needs."""

from __future__ import annotations

import msgspec

from herder.server.http import MOST_CONNECTIONS

# The database and its log, readers of old history, listening sockets, what the program itself is read from.
STORE = 64
MOST_NODE_WAITS = 1000
# However few there are: then somebody waits, but nobody is locked out for good.
LEAST = 16


class Shares(msgspec.Struct, frozen=True):
    clients: int
    # At one node, and in all.
    node_waits: tuple[int, int]


def share_out(files: int, own: int) -> Shares:
    """`files` is how many the process may have open, `own` how many our own processes need."""
    waits = max(LEAST, min(MOST_NODE_WAITS, files // 8))
    clients = max(LEAST, min(MOST_CONNECTIONS, files - STORE - own - waits))
    return Shares(clients, (max(LEAST // 2, waits // 4), waits))
