"""From settings to a transport, in kubectl's order: the file that was named, $KUBECONFIG, ~/.kube/config, the pod's own account."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import msgspec
from multidict import CIMultiDict

from herder.api.world import RealWorld
from herder.kube.access import Access, choose, impersonation
from herder.kube.credentials import Anonymous, Credentials, Kept, always, basic, bearer, from_file
from herder.kube.errors import Misconfigured
from herder.kube.exec_plugin import FromPlugin, Plugin
from herder.kube.http import HttpTransport
from herder.kube.kubeconfig import Kubeconfig, merged, read
from herder.kube.transport import Transport
from herder.kube.trust import Material, Trust

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
VARIABLE = "KUBECONFIG"


class Surroundings(msgspec.Struct, frozen=True):
    """Where settings are looked for that nobody named."""

    environment: Mapping[str, str]
    home: Path
    account: Path = ACCOUNT

    @classmethod
    def here(cls) -> Surroundings:
        return cls(os.environ, Path(os.environ.get("HOME") or "/"))


class Connection(msgspec.Struct, frozen=True):
    """The way to a server, and the namespace that is meant where none is named."""

    transport: HttpTransport
    namespace: str
    server: str = ""
    # By which the server is known; nothing where everybody knows it.
    authority: Material = Material("certificate-authority")


def connect(kubeconfig: Path | None, context: str | None, agent: str, surroundings: Surroundings | None = None) -> Transport:
    """Nothing is sent yet. Raises Misconfigured, with a sentence, for settings that cannot be used."""
    return connection(kubeconfig, context, agent, surroundings).transport


def connection(
    kubeconfig: Path | None,
    context: str | None,
    agent: str,
    surroundings: Surroundings | None = None,
    *,
    otherwise: Path | None = None,
) -> Connection:
    """The same. `otherwise` is a kubeconfig to try where nobody named one and there is none at the usual places."""
    around = surroundings or Surroundings.here()
    files, config = _named(kubeconfig, around)
    if config.is_empty and kubeconfig is None and context is None and _is_inside(around):
        authority = _authority_of_account(around)
        return Connection(_from_account(around, agent), _namespace_of_account(around), _server_of_account(around), authority)
    if config.is_empty:
        files, config = _otherwise(files, kubeconfig, around, otherwise)
    listed = ", ".join(str(file) for file in files)
    if config.is_empty:
        raise Misconfigured(_nothing_there(kubeconfig, listed))
    access = choose(config, context, listed)
    return Connection(_over(access, agent), access.namespace, access.cluster.server, _trust(access).authority)


def known_contexts(
    kubeconfig: Path | None, surroundings: Surroundings | None = None, *, otherwise: Path | None = None
) -> list[str]:
    """The names among which a context may be chosen."""
    around = surroundings or Surroundings.here()
    files, config = _named(kubeconfig, around)
    return sorted((_otherwise(files, kubeconfig, around, otherwise)[1] if config.is_empty else config).contexts)


def _named(kubeconfig: Path | None, around: Surroundings) -> tuple[list[Path], Kubeconfig]:
    """What is looked for first, and where that was."""
    if kubeconfig is not None:
        return [kubeconfig], read(kubeconfig)
    files = _default_files(around)
    return files, merged(read(file) for file in files if file.exists())


def _otherwise(
    files: list[Path], kubeconfig: Path | None, around: Surroundings, otherwise: Path | None
) -> tuple[list[Path], Kubeconfig]:
    if kubeconfig is None and otherwise is not None and _nobody_named_one(around) and otherwise.exists():
        return [otherwise], read(otherwise)
    return files, Kubeconfig()


def shown(kubeconfig: Path | None, context: str | None, surroundings: Surroundings | None = None) -> Trust:
    """Which certificates the settings name now, for those who show them to others than the server. Nothing for a pod's account."""
    around = surroundings or Surroundings.here()
    files, config = _named(kubeconfig, around)
    return Trust() if config.is_empty else _trust(choose(config, context, ", ".join(str(file) for file in files)))


def _nobody_named_one(around: Surroundings) -> bool:
    """Who named a file that is not there may have misspelt it, and does not mean another cluster."""
    return not around.environment.get(VARIABLE)


def _nothing_there(kubeconfig: Path | None, listed: str) -> str:
    if kubeconfig is not None:
        return f"{kubeconfig}: is empty; it should hold clusters, users and contexts"
    return f"there is no kubeconfig at {listed}, and this is no pod of a cluster; name one with --kubeconfig or ${VARIABLE}"


def _default_files(around: Surroundings) -> list[Path]:
    """Those of $KUBECONFIG, each once; files that are not there yet are no mistake in it."""
    named = [name for name in around.environment.get(VARIABLE, "").split(os.pathsep) if name]
    return [Path(name) for name in dict.fromkeys(named)] or [around.home / ".kube" / "config"]


def _over(access: Access, agent: str) -> HttpTransport:
    cluster = access.cluster
    return HttpTransport.over_tcp(
        cluster.server,
        agent,
        _credentials(access),
        headers=CIMultiDict(impersonation(access.user)),
        server_name=cluster.tls_server_name,
        proxy=cluster.proxy_url or _proxy_of_environment(cluster.server),
    )


def _credentials(access: Access) -> Credentials:
    """Nothing of ourselves is shown to a server without TLS."""
    if urlsplit(access.cluster.server).scheme == "http":
        return Anonymous()
    if access.user.exec is not None:
        return FromPlugin(Plugin(access, access.user.exec), _trust(access), RealWorld())
    return Kept(_trust(access), _authorization(access))


def _trust(access: Access) -> Trust:
    cluster, user = access.cluster, access.user

    def material(at: str, field: str, data: bytes, path: str) -> Material:
        return Material(f"{at}: {field}-data" if data else f"{at}: {field}", data, path)

    return Trust(
        material(access.at_cluster, "certificate-authority", cluster.certificate_authority_data, cluster.certificate_authority),
        material(access.at_user, "client-certificate", user.client_certificate_data, user.client_certificate),
        material(access.at_user, "client-key", user.client_key_data, user.client_key),
        cluster.insecure_skip_tls_verify,
    )


def _authorization(access: Access) -> Callable[[], str]:
    user = access.user
    if user.token_file:
        return from_file(user.token_file, f"{access.at_user}: tokenFile", otherwise=user.token)
    if user.username or user.password:
        return always(basic(user.username, user.password))
    return always(bearer(user.token))


def _is_inside(around: Surroundings) -> bool:
    named = all(around.environment.get(f"KUBERNETES_SERVICE_{part}") for part in ("HOST", "PORT"))
    return named and (around.account / "token").is_file()


def _from_account(around: Surroundings, agent: str) -> HttpTransport:
    """The pod's own service account. Its token is renewed by the kubelet, so it is read again."""
    server, trust = _server_of_account(around), Trust(_authority_of_account(around))
    token = from_file(str(around.account / "token"), "token")
    return HttpTransport.over_tcp(server, agent, Kept(trust, token), proxy=_proxy_of_environment(server))


def _server_of_account(around: Surroundings) -> str:
    host, port = (around.environment[f"KUBERNETES_SERVICE_{part}"] for part in ("HOST", "PORT"))
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def _authority_of_account(around: Surroundings) -> Material:
    return Material("ca.crt", path=str(around.account / "ca.crt"))


def _namespace_of_account(around: Surroundings) -> str:
    try:
        return (around.account / "namespace").read_text().strip() or "default"
    except OSError:
        return "default"


def _proxy_of_environment(server: str) -> str:
    """HTTPS_PROXY and NO_PROXY as Go reads them: never for this machine itself."""
    split = urlsplit(server)
    host = split.hostname or ""
    if host == "localhost" or _is_loopback(host) or proxy_bypass(host):
        return ""
    return getproxies().get(split.scheme, "")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
