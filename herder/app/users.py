"""`herder user add`: a client certificate in a kubeconfig, and roles where they are asked for. Nothing else is kept of a user."""

from __future__ import annotations

import asyncio
import datetime
import re
import shlex
from pathlib import Path

import msgspec

from herder.api.names import dns_subdomain
from herder.app.certificates import open_authority
from herder.app.data_directory import DataDirectory
from herder.app.kubeconfig import check_holds_only, write_for
from herder.app.refusal import CANNOT_USE_DATA, WRONG_USE, Refusal
from herder.app.supervisor import server_at
from herder.app.user_roles import bind_roles, check_roles, listed
from herder.pki import reading
from herder.pki.authority import Authority, Pair
from herder.server.access.nodes.identity import NODES, PREFIX

# As much as a certificate's subject holds.
LONGEST_NAME = 64
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]*")
DEFAULT_PORT = 6443


class NewUser(msgspec.Struct, frozen=True):
    name: str
    groups: tuple[str, ...]
    days: int
    # Ready roles, bound in the namespace, or everywhere.
    roles: tuple[str, ...] = ()
    namespace: str = ""
    everywhere: bool = False


def add(user: NewUser, directory: DataDirectory, kubeconfig: Path | None) -> str:
    """What to tell whoever asked. Works whether or not the engine runs, unless roles are to be bound there: all it needs is the
    directory's authority."""
    node = _node(user)
    if node and user.roles:
        raise Refusal(f"--role {user.roles[0]}: {user.name} has the rights of a node, and needs no role", WRONG_USE)
    check_roles(user)
    if not node:
        _check_name(user.name)
    for group in user.groups:
        _check_group(group)
    path = kubeconfig or Path(f"{node or user.name}.kubeconfig")
    check_holds_only(path, user.name)
    if not all((directory.pki / name).exists() for name in ("ca.crt", "ca.key")):
        raise Refusal(f"--data {directory.path}: is no data directory of herder; `herder up` makes one", CANNOT_USE_DATA)
    try:
        authority = open_authority(directory.pki)
    except OSError as error:
        raise Refusal(f"--data {directory.path}: cannot be read: {error.strerror}", CANNOT_USE_DATA) from None
    longest = (authority.until - datetime.datetime.now(datetime.UTC)).days
    if user.days > longest:
        raise Refusal(f"--days {user.days}: the authority itself ends in {longest} days", WRONG_USE)
    if user.roles:
        asyncio.run(bind_roles(user, directory))
    pair = _pair(authority, user, directory)
    write_for(path, _server(directory), authority, user.name, pair, user.namespace)
    return _told(user, path)


def _pair(authority: Authority, user: NewUser, directory: DataDirectory) -> Pair:
    """Other nodes come to a node with guests: so its certificate is one for servers as well, by the node's name. Not where
    the engine itself is known by that name: nobody may pose as it."""
    node, engine = _node(user), directory.pki / "server.crt"
    taken = ("localhost", *(reading.hosts(engine.read_bytes()) if engine.exists() else ()))
    return authority.client(user.name, user.groups, user.days, (node,) if node and node not in taken else ())


def _node(user: NewUser) -> str:
    """The node that the user is to be, if any: name and group say it together, and one without the other would be nobody."""
    name = user.name.removeprefix(PREFIX)
    if not user.name.startswith(PREFIX) and NODES not in user.groups:
        return ""
    if name == user.name or NODES not in user.groups:
        raise Refusal(f"{user.name}: a node is {PREFIX}NAME with --group {NODES}: give both", WRONG_USE)
    longest = LONGEST_NAME - len(PREFIX)
    problems = dns_subdomain(name) if len(name) <= longest else (f"at most {longest} characters",)
    if problems:
        raise Refusal(f"{user.name}: {name!r} cannot be the name of a node: {problems[0]}", WRONG_USE)
    return name


def _check_name(name: str) -> None:
    if name.startswith("system:"):
        raise Refusal(f"{name}: names that begin with system: belong to the engine; choose another", WRONG_USE)
    if len(name) > LONGEST_NAME or not _NAME.fullmatch(name):
        how = f"at most {LONGEST_NAME} letters, digits and . _ @ + -, of which the first is a letter or a digit"
        raise Refusal(f"{name!r} cannot be the name of a user: {how}", WRONG_USE)


def _check_group(group: str) -> None:
    if not group or len(group) > LONGEST_NAME or not group.isprintable() or group != group.strip():
        how = f"at most {LONGEST_NAME} printable characters, without spaces at the ends"
        raise Refusal(f"--group {group!r}: cannot be the name of a group: {how}", WRONG_USE)


def _server(directory: DataDirectory) -> str:
    holder = directory.last_holder()
    host, _, port = holder.listen.rpartition(":") if holder else ("", "", "")
    return server_at(host or "127.0.0.1", int(port) if port.isdigit() and int(port) else DEFAULT_PORT)


def _told(user: NewUser, path: Path) -> str:
    until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=user.days)
    groups = f" in {', '.join(user.groups)}" if user.groups else ""
    told = f"{path}: {user.name}{groups}, good until {until:%Y-%m-%d}"
    if "system:masters" in user.groups:
        return f"{told}. May do everything."
    if node := _node(user):
        return f"{told}. Run its agent:\n\n  {shlex.join(['herder', 'node', '--kubeconfig', str(path), '--name', node])}"
    if user.roles:
        where = f"in namespace {user.namespace}" if user.namespace else "in all namespaces"
        return f"{told}: {', '.join(user.roles)} {where}."
    binding = shlex.join(["kubectl", "create", "rolebinding", f"{user.name}-vms", "--clusterrole=vm-owner", f"--user={user.name}"])
    example = f"Give it a role, for example:\n\n  {binding} --namespace=default"
    return f"{told}. {example}\n\nReady roles, which --role gives at once (docs/access.md says more):\n\n{listed()}"
