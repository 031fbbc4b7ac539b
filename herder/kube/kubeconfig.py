"""Reads kubeconfigs as kubectl does: the first file that says something wins, and paths start where the file is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import yaml

from herder.kube.errors import Misconfigured

EXEC_EXTENSION = "client.authentication.k8s.io/exec"
LONGEST_SHOWN = 60
T = TypeVar("T")


class Extension(msgspec.Struct, frozen=True):
    name: str = ""
    extension: Any = None


class Cluster(msgspec.Struct, frozen=True, rename="kebab"):
    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: bytes = b""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: tuple[Extension, ...] = ()


class Variable(msgspec.Struct, frozen=True):
    name: str = ""
    value: str = ""


class Exec(msgspec.Struct, frozen=True, rename="camel"):
    """A program that is asked for credentials."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[Variable, ...] = ()
    api_version: str = ""
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class User(msgspec.Struct, frozen=True, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: bytes = b""
    client_key: str = ""
    client_key_data: bytes = b""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    as_user: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: tuple[str, ...] = ()
    as_user_extra: dict[str, tuple[str, ...]] = {}
    exec: Exec | None = None
    auth_provider: Any = None


class Context(msgspec.Struct, frozen=True, rename="kebab"):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(msgspec.Struct):
    name: str = ""
    cluster: Cluster = Cluster()


class _NamedUser(msgspec.Struct):
    name: str = ""
    user: User = User()


class _NamedContext(msgspec.Struct):
    name: str = ""
    context: Context = Context()


class _File(msgspec.Struct, rename="kebab"):
    clusters: tuple[_NamedCluster, ...] = ()
    users: tuple[_NamedUser, ...] = ()
    contexts: tuple[_NamedContext, ...] = ()
    current_context: str = ""


class Entry(msgspec.Struct, Generic[T], frozen=True):
    """Something of a kubeconfig, and the file that said it: whoever finds fault with it can say where."""

    value: T
    path: Path


class Kubeconfig(msgspec.Struct):
    clusters: dict[str, Entry[Cluster]] = {}
    users: dict[str, Entry[User]] = {}
    contexts: dict[str, Entry[Context]] = {}
    current_context: str = ""

    @property
    def is_empty(self) -> bool:
        return not (self.clusters or self.users or self.contexts or self.current_context)


def read(path: Path) -> Kubeconfig:
    """One file; raises Misconfigured with a sentence for one that is missing or is none."""
    file = _parse(path, _text_of(path))
    return Kubeconfig(
        _by_name(path, "clusters", ((one.name, _rooted_cluster(one.cluster, path)) for one in file.clusters)),
        _by_name(path, "users", ((one.name, _rooted_user(one.user, path)) for one in file.users)),
        _by_name(path, "contexts", ((one.name, one.context) for one in file.contexts)),
        file.current_context,
    )


def merged(configs: Iterable[Kubeconfig]) -> Kubeconfig:
    """Entries are taken whole: what a later file adds to an entry of the same name is not looked at."""
    whole = Kubeconfig({}, {}, {})
    for config in configs:
        whole.clusters = config.clusters | whole.clusters
        whole.users = config.users | whole.users
        whole.contexts = config.contexts | whole.contexts
        whole.current_context = whole.current_context or config.current_context
    return whole


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise Misconfigured(f"{path}: is not a kubeconfig: it is not text") from None
    except OSError as error:
        raise Misconfigured(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError:  # a NUL in the name
        raise Misconfigured(f"{str(path)!r}: cannot be the name of a kubeconfig") from None


def _parse(path: Path, text: str) -> _File:
    try:
        document = _without_nulls(yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError) as error:
        reason = re.sub(r"\s+", " ", str(error))
        raise Misconfigured(f"{path}: is not a kubeconfig: it is not YAML: {reason}") from None
    if not isinstance(document or {}, dict):
        shown = _shown(document)
        raise Misconfigured(f"{path}: is not a kubeconfig: it holds {shown}, and should hold clusters, users and contexts")
    kind = (document or {}).get("kind", "Config")
    if kind != "Config":
        raise Misconfigured(f"{path}: kind: {_shown(kind)}: is not a kubeconfig; the kind of one is Config")
    return _converted(path, document or {})


def _converted(path: Path, document: dict[Any, Any]) -> _File:
    try:
        return msgspec.convert(document, _File)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `")
        place = place.rstrip("`").removeprefix("$").lstrip(".")
        found = _at(document, place)
        raise Misconfigured(f"{path}: {place}: {_shown(found)}: {_what_is_right(what)}") from None


def _what_is_right(what: str) -> str:
    """msgspec's words in ours: it speaks of types of Python."""
    if "base64" in what:
        return "should be base64 of a PEM file"
    expected = re.search(r"Expected `([^`]+)`", what)
    names = {
        "str": "text",
        "array": "a list",
        "object": "fields with values",
        "bool": "true or false",
        "bytes": "base64 of a PEM file",
    }
    words = (
        [names.get(word.strip(), word.strip()) for word in expected.group(1).split("|") if word.strip() != "null"]
        if expected
        else []
    )
    return f"should be {' or '.join(words)}" if words else what


def _at(document: Any, place: str) -> Any:
    """What stands at a path such as clusters[0].cluster.server."""
    for name, number in re.findall(r"([^.\[\]]+)|\[(\d+|\.\.\.)\]", place):
        try:
            document = document[name] if name else document[int(number)]
        except (LookupError, TypeError, ValueError):
            return document
    return document


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def _without_nulls(value: Any) -> Any:
    """What is null was not said."""
    if isinstance(value, dict):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    if isinstance(value, list):
        return [_without_nulls(one) for one in value]
    return value


def _by_name(path: Path, part: str, entries: Iterable[tuple[str, T]]) -> dict[str, Entry[T]]:
    named: dict[str, Entry[T]] = {}
    for name, value in entries:
        if name in named:
            raise Misconfigured(f"{path}: {part}: {name!r} is there twice; give one of them another name")
        named[name] = Entry(value, path)
    return named


def _rooted_cluster(cluster: Cluster, path: Path) -> Cluster:
    return msgspec.structs.replace(cluster, certificate_authority=_rooted(cluster.certificate_authority, path))


def _rooted_user(user: User, path: Path) -> User:
    asked = user.exec
    if asked is not None and "/" in asked.command:
        asked = msgspec.structs.replace(asked, command=_rooted(asked.command, path))
    rooted: Callable[[str], str] = lambda name: _rooted(name, path)  # noqa: E731
    return msgspec.structs.replace(
        user,
        client_certificate=rooted(user.client_certificate),
        client_key=rooted(user.client_key),
        token_file=rooted(user.token_file),
        exec=asked,
    )


def _rooted(name: str, kubeconfig: Path) -> str:
    """Relative to the file that says it, not to where somebody happens to stand."""
    return str(kubeconfig.absolute().parent / name) if name else ""
