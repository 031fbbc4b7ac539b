"""What one context of a kubeconfig says, checked as kubectl checks it, each fault in a sentence."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from herder.kube.errors import Misconfigured
from herder.kube.kubeconfig import Cluster, Context, Entry, Exec, Kubeconfig, User

API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
T = TypeVar("T")
INTERACTIVE = ("Never", "IfAvailable", "Always")


class Access(msgspec.Struct, frozen=True):
    """Where to go and as whom. `at_cluster` and `at_user` say where it is written."""

    context: str
    namespace: str
    cluster: Cluster
    user: User
    at_cluster: str
    at_user: str


def choose(config: Kubeconfig, context: str | None, files: str) -> Access:
    """That of a context by name, or of the current one. `files` is where it was looked for."""
    name = config.current_context if context is None else context
    if not name:
        raise Misconfigured(f"{files}: has no current-context; name one with --context{_known(config.contexts)}")
    found = config.contexts.get(name)
    if found is None:
        raise Misconfigured(f"{files}: there is no context {name!r}{_known(config.contexts)}")
    cluster = _named(found, name, "cluster", found.value.cluster, config.clusters)
    user = _named(found, name, "user", found.value.user, config.users) if found.value.user else Entry(User(), found.path)
    at_cluster, at_user = f"{cluster.path}: cluster {found.value.cluster!r}", f"{user.path}: user {found.value.user!r}"
    _check_cluster(cluster.value, at_cluster)
    _check_user(user.value, at_user)
    return Access(name, found.value.namespace or "default", cluster.value, user.value, at_cluster, at_user)


def _named(context: Entry[Context], context_name: str, part: str, name: str, entries: Mapping[str, Entry[T]]) -> Entry[T]:
    if name in entries:
        return entries[name]
    raise Misconfigured(f"{context.path}: context {context_name!r}: {part}: there is no {part} {name!r}{_known(entries)}")


def _known(entries: Mapping[str, object]) -> str:
    return f" (there is: {', '.join(sorted(entries))})" if entries else " (there is none)"


def _check_cluster(cluster: Cluster, at: str) -> None:
    split = _split(cluster.server)
    if split is None or split[0] not in ("http", "https"):
        raise Misconfigured(f"{at}: server: {cluster.server!r}: should be an address such as https://10.0.0.1:6443")
    if cluster.certificate_authority and cluster.certificate_authority_data:
        raise Misconfigured(f"{at}: has certificate-authority and certificate-authority-data; keep one of them")
    if cluster.insecure_skip_tls_verify and (cluster.certificate_authority or cluster.certificate_authority_data):
        raise Misconfigured(f"{at}: insecure-skip-tls-verify is true, so the certificate authority is of no use; keep one of them")
    if cluster.proxy_url:
        _check_proxy(cluster.proxy_url, at)


def _check_proxy(proxy: str, at: str) -> None:
    split = _split(proxy)
    if split is None or split[0] not in ("http", "https"):
        raise Misconfigured(f"{at}: proxy-url: {proxy!r}: should be an HTTP proxy such as http://10.0.0.1:3128")


def _split(address: str) -> tuple[str, str] | None:
    """Scheme and host, of an address that has both."""
    try:
        split = urlsplit(address)
        _ = split.port  # raises for one that is no number
    except ValueError:
        return None
    fits = (
        split.scheme and split.hostname and not split.query and not split.fragment and address.isprintable() and " " not in address
    )
    return (split.scheme, split.hostname or "") if fits else None


def _check_user(user: User, at: str) -> None:
    if user.auth_provider is not None:
        raise Misconfigured(f"{at}: auth-provider: is gone since Kubernetes 1.26; use an exec plugin")
    if user.token and (user.username or user.password):
        raise Misconfigured(f"{at}: has a token and a username or password; keep one of them")
    _check_certificate(user, at)
    if user.exec is not None:
        _check_exec(user.exec, f"{at}: exec")
    for value in (user.token, user.as_user, user.as_uid, *user.as_groups):
        if not value.isprintable():
            raise Misconfigured(f"{at}: token, as, as-uid and as-groups should be printable characters")
    if (user.as_groups or user.as_uid or user.as_user_extra) and not user.as_user:
        raise Misconfigured(f"{at}: as: is missing; as-groups, as-uid and as-user-extra go with it")


def _check_certificate(user: User, at: str) -> None:
    for name, path, data in (
        ("client-certificate", user.client_certificate, user.client_certificate_data),
        ("client-key", user.client_key, user.client_key_data),
    ):
        if path and data:
            raise Misconfigured(f"{at}: has {name} and {name}-data; keep one of them")
    has_certificate = user.client_certificate or user.client_certificate_data
    has_key = user.client_key or user.client_key_data
    if bool(has_certificate) != bool(has_key):
        missing = "client-key" if has_certificate else "client-certificate"
        raise Misconfigured(f"{at}: {missing}: is missing; a certificate and its key go together")


def _check_exec(asked: Exec, at: str) -> None:
    if not asked.command:
        raise Misconfigured(f"{at}: command: is missing; it is the program that is asked for credentials")
    if asked.api_version not in API_VERSIONS:
        raise Misconfigured(f"{at}: apiVersion: {asked.api_version!r}: should be {' or '.join(API_VERSIONS)}")
    if any(not variable.name for variable in asked.env):
        raise Misconfigured(f"{at}: env: a variable has no name")
    if any("\0" in word for word in (asked.command, *asked.args, *(v.name + v.value for v in asked.env))):
        raise Misconfigured(f"{at}: command, args and env cannot hold a NUL")
    needed = asked.api_version == API_VERSIONS[0]
    if asked.interactive_mode not in INTERACTIVE and (needed or asked.interactive_mode):
        raise Misconfigured(
            f"{at}: interactiveMode: {asked.interactive_mode!r}: should be {', '.join(INTERACTIVE[:2])} or {INTERACTIVE[2]}"
        )


def impersonation(user: User) -> list[tuple[str, str]]:
    """The headers that ask to be taken for somebody else."""
    if not user.as_user:
        return []
    headers = [("Impersonate-User", user.as_user), *(("Impersonate-Group", group) for group in user.as_groups)]
    if user.as_uid:
        headers.append(("Impersonate-Uid", user.as_uid))
    extra = ((quote(key.lower(), safe="!#$&'*+-.^_`|~"), value) for key, values in user.as_user_extra.items() for value in values)
    return [*headers, *((f"Impersonate-Extra-{key}", value) for key, value in extra)]


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()
