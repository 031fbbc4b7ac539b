"""Who our own processes are to the engine. None of them may do everything: what they need is in roles, as in any cluster.

They come in by sockets of their own, whose users the engine knows: nothing has to be renewed, or kept secret beside the directory,
and nothing is encrypted on its way from one process of this machine to the next.
"""

from __future__ import annotations

from pathlib import Path

from herder.api import account, simulated_account
from herder.app.data_directory import DataDirectory
from herder.kube.transport import Transport
from herder.kube.unix import SocketTransport
from herder.server.access.accounts import account_groups, account_name
from herder.server.access.nodes.identity import NODES, PREFIX
from herder.server.request import AUTHENTICATED, User

ACCOUNTS = (account.ACCOUNT, simulated_account.ACCOUNT)


def doors(directory: DataDirectory, nodes: tuple[str, ...]) -> dict[Path, User]:
    """For the engine: its sockets for our accounts, and for each node that has an agent of its own."""
    accounts = {directory.socket_named(name): _account(name) for name in ACCOUNTS}
    return accounts | {_node_socket(directory, node): User(PREFIX + node, (NODES, AUTHENTICATED)) for node in nodes}


def _account(name: str) -> User:
    namespace = account.SYSTEM_NAMESPACE
    return User(account_name(namespace, name), (*account_groups(namespace), AUTHENTICATED))


def controllers_transport(directory: DataDirectory, agent: str) -> Transport:
    return SocketTransport(directory.socket_named(account.ACCOUNT), agent)


def fleet_transport(directory: DataDirectory, agent: str) -> Transport:
    return SocketTransport(directory.socket_named(simulated_account.ACCOUNT), agent)


def node_names(count: int) -> tuple[str, ...]:
    return tuple(f"node-{number}" for number in range(1, count + 1))


def node_transport(directory: DataDirectory, node: str, agent: str) -> Transport:
    """For the agent of one node: it is that node, and no other."""
    return SocketTransport(_node_socket(directory, node), agent)


def _node_socket(directory: DataDirectory, node: str) -> Path:
    return directory.socket_named(f"agent-{node}")
