"""The roles that `herder user add --role` gives: which there are, and how they are bound in an engine that runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

from herder.api.names import dns_label
from herder.app.data_directory import DataDirectory
from herder.app.refusal import CANNOT_USE_CLUSTER, WRONG_USE, Refusal

if TYPE_CHECKING:
    from herder.app.users import NewUser
    from herder.kube.resources import Anything

AGENT: Final = "herder-user-add"
# Kubernetes' own, which include our kinds by the roles herder:aggregate-to-*.
OF_KUBERNETES: Final = {
    "view": "Sees all of a namespace but Secrets and roles; our kinds too.",
    "edit": "Changes all of a namespace but roles, machines too. Sees its Secrets. May not migrate.",
    "admin": "The same, and gives roles there.",
}


def ready_roles() -> dict[str, str]:
    """Each with what it is for, in a line."""
    # Imported here: `herder --help` should not wait for all our kinds.
    from herder.api.roles import roles

    own = [role["metadata"] for role in roles() if ":" not in role["metadata"]["name"]]
    return {**{one["name"]: one["annotations"]["description"] for one in own}, **OF_KUBERNETES}


def listed(indent: str = "  ") -> str:
    known = ready_roles()
    width = max(map(len, known))
    return "\n".join(f"{indent}{name.ljust(width)}  {about}" for name, about in known.items())


class ReadyRole(click.ParamType[str]):
    name = "role"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in ready_roles():
            self.fail(f"{value!r} is none of the ready roles:\n\n{listed()}", param, ctx)
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name, help=about) for name, about in ready_roles().items() if name.startswith(incomplete)]


class ShowsRoles(click.Command):
    """Lists the ready roles below its options."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Ready roles"):
            formatter.write_dl(list(ready_roles().items()))


def check_roles(user: NewUser) -> None:
    if user.namespace and user.everywhere:
        raise Refusal("--namespace and --all-namespaces exclude each other: a role holds in one of them, or everywhere", WRONG_USE)
    where = user.namespace or user.everywhere
    if where and not user.roles:
        said = f"--namespace {user.namespace}" if user.namespace else "--all-namespaces"
        raise Refusal(f"{said}: says where a role holds; name it with --role: {', '.join(ready_roles())}", WRONG_USE)
    if user.namespace and (problems := dns_label(user.namespace)):
        raise Refusal(f"--namespace {user.namespace!r}: cannot be the name of a namespace: {problems[0]}", WRONG_USE)
    if user.roles and not where:
        raise Refusal(f"--role {user.roles[0]}: say where it holds: --namespace N, or --all-namespaces", WRONG_USE)


async def bind_roles(user: NewUser, directory: DataDirectory) -> None:
    """In the engine, as whoever holds its data directory. What is bound already stays so."""
    from herder.kube.client import Client
    from herder.kube.errors import ApiStatusError, KubeError
    from herder.kube.resources import NAMESPACES, Key, written
    from herder.kube.unix import SocketTransport

    try:
        async with Client(SocketTransport(directory.socket, AGENT), AGENT) as client:
            if user.namespace and await client.find(NAMESPACES, Key("", user.namespace)) is None:
                advice = f"`kubectl create namespace {user.namespace}` makes it"
                raise Refusal(f"--namespace {user.namespace}: there is no such namespace; {advice}", WRONG_USE)
            for resource, name, document in _bindings(user):
                await client.apply(written(resource), Key(user.namespace, name), document)
    except ApiStatusError as error:
        raise Refusal(f"--role {user.roles[0]}: {error}", CANNOT_USE_CLUSTER) from None
    except KubeError:
        advice = "start it with `herder up`, or leave --role out and bind the role later"
        said = f"the engine of --data {directory.path} does not run: {advice}"
        raise Refusal(f"--role {user.roles[0]}: {said}", CANNOT_USE_CLUSTER) from None


def _bindings(user: NewUser) -> Iterator[tuple[Anything, str, dict[str, Any]]]:
    from herder.kube.resources import CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS

    group = ROLE_BINDINGS.group
    for role in user.roles:
        reference = {"apiGroup": group, "kind": "ClusterRole", "name": role}
        subject = {"apiGroup": group, "kind": "User", "name": user.name}
        resource = ROLE_BINDINGS if user.namespace else CLUSTER_ROLE_BINDINGS
        yield resource, f"{user.name}-{role}", {"roleRef": reference, "subjects": [subject]}
