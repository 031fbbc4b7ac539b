"""Who our own processes are to the engine. None of them may do everything: what they need is in roles, as in any cluster.

Controllers and the fleet of simulated nodes come in by sockets of their own, whose users the engine knows: nothing has to be
renewed, or kept secret beside the directory. Agents of real nodes have a certificate, as they would have anywhere.
"""

from __future__ import annotations

from pathlib import Path

from herder.api import account, simulated_account
from herder.app.cluster import connect_to
from herder.app.data_directory import DataDirectory
from herder.app.kubeconfig import write_for
from herder.kube.http import HttpTransport
from herder.kube.transport import Transport
from herder.pki.authority import Authority
from herder.server.access.accounts import account_groups, account_name
from herder.server.access.nodes.identity import NODES, PREFIX
from herder.server.request import AUTHENTICATED, User

ACCOUNTS = (account.ACCOUNT, simulated_account.ACCOUNT)


def doors(directory: DataDirectory) -> dict[Path, User]:
    """For the engine: its sockets for our accounts."""
    return {directory.socket_named(name): _user(name) for name in ACCOUNTS}


def _user(name: str) -> User:
    namespace = account.SYSTEM_NAMESPACE
    return User(account_name(namespace, name), (*account_groups(namespace), AUTHENTICATED))


def controllers_transport(directory: DataDirectory, agent: str) -> Transport:
    return HttpTransport.over_socket(directory.socket_named(account.ACCOUNT), agent)


def fleet_transport(directory: DataDirectory, agent: str) -> Transport:
    return HttpTransport.over_socket(directory.socket_named(simulated_account.ACCOUNT), agent)


# --- nodes of their own ----------------------------------------------------------------------------------------------------------


def node_names(count: int) -> tuple[str, ...]:
    return tuple(f"node-{number}" for number in range(1, count + 1))


def write_node_identities(directory: DataDirectory, server: str, authority: Authority, nodes: tuple[str, ...]) -> None:
    """New at each start, as the server's own certificate is, and good for as long."""
    (directory.path / "identities").mkdir(mode=0o700, exist_ok=True)
    for node in nodes:
        name = PREFIX + node
        write_for(_kubeconfig(directory, node), server, authority, name, authority.client(name, (NODES,)))


def node_transport(directory: DataDirectory, node: str, agent: str) -> Transport:
    """For the agent of one node: it is that node, and no other."""
    return connect_to(_kubeconfig(directory, node), None, agent)


def _kubeconfig(directory: DataDirectory, node: str) -> Path:
    return directory.path / "identities" / f"{node}.kubeconfig"
