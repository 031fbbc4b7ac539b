"""Reading kubeconfigs: kubectl is asked what it makes of the same files, and nonsense gets a sentence."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from herder.kube.access import choose, impersonation
from herder.kube.connect import Surroundings, connect
from herder.kube.errors import Misconfigured
from herder.kube.kubeconfig import Cluster, Kubeconfig, User, merged, read
from herder.kube.transport import Call
from tests.conftest import EngineMissing
from tests.engines.engine import Unavailable
from tests.engines.kubectl import find_kubectl
from tests.examples import examples

Json = dict[str, Any]
PEM = base64.b64encode(b"-----BEGIN CERTIFICATE-----\n").decode()


@pytest.fixture(scope="module")
def kubectl() -> Path:
    try:
        return find_kubectl()
    except Unavailable as reason:
        raise EngineMissing(str(reason)) from None


def named(part: str, name: str, **fields: Any) -> Json:
    return {"name": name, part: fields}


def config(**parts: Any) -> Json:
    return {"apiVersion": "v1", "kind": "Config", **{name.replace("_", "-"): value for name, value in parts.items()}}


def write(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else yaml.safe_dump(document, allow_unicode=True))
    return path


# Three files that contradict each other in every part, and whose paths are relative.
FIRST = config(
    clusters=[named("cluster", "red", **{"server": "https://red:1", "certificate-authority": "ca.crt"}), named("cluster", "alone")],
    users=[named("user", "jane", **{"client-certificate": "sub/jane.crt", "client-key": "../jane.key"})],
    contexts=[named("context", "work", cluster="red", user="jane", namespace="ns")],
)
SECOND = config(
    clusters=[
        named("cluster", "red", **{"server": "https://other:1", "proxy-url": "http://proxy:3128", "tls-server-name": "x"}),
        named("cluster", "blue", **{"server": "https://blue:2", "insecure-skip-tls-verify": True}),
    ],
    users=[
        named("user", "jane", token="second", tokenFile="secret"),
        named("user", "joe", **{"tokenFile": "/abs/token", "as": "root", "as-groups": ["a", "b"]}),
        named(
            "user",
            "exec",
            exec={"apiVersion": "client.authentication.k8s.io/v1", "command": "./get", "interactiveMode": "Never", "args": ["x"]},
        ),
    ],
    contexts=[named("context", "work", cluster="blue", user="joe"), named("context", "play", cluster="blue", user="joe")],
    current_context="play",
)
THIRD = config(users=[named("user", "exec2", exec={"command": "get", "apiVersion": "x"})], current_context="work")


def seen_by_kubectl(kubectl: Path, environment: dict[str, str], home: Path, *words: str) -> Json:
    command = [str(kubectl), "config", "view", "--raw", "-o", "json", *words]
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], **environment}
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=home, check=False)
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


def _shape(found: Kubeconfig) -> Json:
    """As much of it as kubectl prints, in its order."""
    return {
        "current-context": found.current_context,
        "clusters": {name: _fields(entry.value) for name, entry in found.clusters.items()},
        "users": {name: _fields(entry.value) for name, entry in found.users.items()},
        "contexts": {name: _fields(entry.value) for name, entry in found.contexts.items()},
    }


def _fields(value: Any) -> Json:
    document: Json = msgspec.to_builtins(value)
    if document.get("exec"):
        document["exec"] = {name: field for name, field in document["exec"].items() if field}
    return {name: field for name, field in document.items() if field}


def _shape_of_kubectl(document: Json) -> Json:
    parts = {"clusters": "cluster", "users": "user", "contexts": "context"}
    shape: Json = {"current-context": document["current-context"]}
    for part, field in parts.items():
        shape[part] = {one["name"]: _without_empty(one[field]) for one in document[part] or ()}
    return shape


def _without_empty(fields: Json) -> Json:
    if fields.get("exec"):
        fields["exec"] = {name: field for name, field in fields["exec"].items() if field}
    return {name: field for name, field in fields.items() if field}


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0), (2, 0, 1), (0,), (2, 2, 1)])
def test_files_are_merged_as_kubectl_merges_them(kubectl: Path, tmp_path: Path, order: tuple[int, ...]) -> None:
    folders = ("a b", "ü", "c/d")
    all_paths = [write(tmp_path / folder / "config", text) for folder, text in zip(folders, (FIRST, SECOND, THIRD), strict=True)]
    paths = [all_paths[number] for number in order]
    ours = _shape(merged(read(path) for path in paths))
    theirs = _shape_of_kubectl(seen_by_kubectl(kubectl, {"KUBECONFIG": ":".join(map(str, paths))}, tmp_path))
    prefixes = "|".join(re.escape(f"{tmp_path / folder}/") for folder in folders)
    assert re.sub(prefixes, "", json.dumps(ours, sort_keys=True, ensure_ascii=False)) == _shown_by(theirs)


def _shown_by(shape: Json) -> str:
    """kubectl shows paths as they were written."""
    return json.dumps(shape, sort_keys=True, ensure_ascii=False).replace('"./get"', '"get"')


def test_paths_lead_to_the_files_that_kubectl_reads(kubectl: Path, tmp_path: Path) -> None:
    for name in ("ca.crt", "sub/jane.crt", "../jane.key"):
        write(tmp_path / "schöne Dinge" / name, f"the content of {name}")
    write(tmp_path / "schöne Dinge" / "config", FIRST)
    # Relative to where we stand, as a person may write it.
    path = Path(os.path.relpath(tmp_path / "schöne Dinge" / "config"))
    theirs = seen_by_kubectl(kubectl, {"KUBECONFIG": str(path.absolute())}, tmp_path, "--flatten")
    config = read(path)
    (user, cluster) = config.users["jane"].value, config.clusters["red"].value
    shown = {**theirs["users"][0]["user"], **next(one["cluster"] for one in theirs["clusters"] if one["name"] == "red")}
    for field, ours in (
        ("client-certificate-data", user.client_certificate),
        ("client-key-data", user.client_key),
        ("certificate-authority-data", cluster.certificate_authority),
    ):
        assert base64.b64decode(shown[field]) == Path(ours).read_bytes()


@pytest.mark.parametrize("context", ["work", "play", "nowhere"])
def test_a_context_is_what_kubectl_takes_it_for(kubectl: Path, tmp_path: Path, context: str) -> None:
    paths = [write(tmp_path / name, text) for name, text in (("1", FIRST), ("2", SECOND))]
    environment = {"KUBECONFIG": ":".join(map(str, paths))}
    whole = merged(read(path) for path in paths)
    if context == "nowhere":
        with pytest.raises(Misconfigured, match=r"there is no context 'nowhere' \(there is: play, work\)"):
            choose(whole, context, "files")
        return
    theirs = seen_by_kubectl(kubectl, environment, tmp_path, "--minify", f"--context={context}")
    ours = choose(whole, context, "files")
    assert (ours.cluster.server, ours.namespace) == (
        theirs["clusters"][0]["cluster"]["server"],
        theirs["contexts"][0]["context"].get("namespace", "default"),
    )


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ("{", "is not a kubeconfig: it is not YAML: "),
        ("a: [1", "is not a kubeconfig: it is not YAML: "),
        ("hello", "is not a kubeconfig: it holds 'hello', and should hold clusters, users and contexts"),
        ("- a", "is not a kubeconfig: it holds ['a'], and should"),
        ("kind: Pod", "kind: 'Pod': is not a kubeconfig; the kind of one is Config"),
        ("clusters: 3", "clusters: 3: should be a list"),
        ("clusters: [3]", "clusters[0]: 3: should be fields with values"),
        ("clusters: [{name: a, cluster: {server: 7}}]", "clusters[0].cluster.server: 7: should be text"),
        (
            "clusters: [{name: a, cluster: {insecure-skip-tls-verify: perhaps}}]",
            "clusters[0].cluster.insecure-skip-tls-verify: 'perhaps': should be true or false",
        ),
        (
            "clusters: [{name: a, cluster: {certificate-authority-data: '%'}}]",
            "clusters[0].cluster.certificate-authority-data: '%': should be base64 of a PEM file",
        ),
        ("users: [{name: a}, {name: a}]", "users: 'a' is there twice; give one of them another name"),
        ("users: [{name: a, user: {as-groups: x}}]", "users[0].user.as-groups: 'x': should be a list"),
        ("current-context: [a]", "current-context: ['a']: should be text"),
        ("&a [*a]", "is not a kubeconfig: it"),
    ],
)
def test_a_file_that_is_none_gets_a_sentence(tmp_path: Path, document: str, sentence: str) -> None:
    path = write(tmp_path / "config", document)
    with pytest.raises(Misconfigured) as refused:
        read(path)
    assert str(refused.value).startswith(f"{path}: {sentence}")


def test_a_file_that_cannot_be_read_gets_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for path, sentence in (
        (tmp_path / "missing", "cannot be read: No such file or directory"),
        (tmp_path, "cannot be read: Is a directory"),
        (tmp_path / "binary", "is not a kubeconfig: it is not text"),
    ):
        with pytest.raises(Misconfigured) as refused:
            read(path)
        assert str(refused.value) == f"{path}: {sentence}"


V1 = "client.authentication.k8s.io/v1"


@pytest.mark.parametrize(
    ("cluster", "user", "sentence"),
    [
        ({}, {}, "cluster 'c': server: '': should be an address such as https://10.0.0.1:6443"),
        ({"server": "10.0.0.1:6443"}, {}, "server: '10.0.0.1:6443': should be an address"),
        ({"server": "ftp://x"}, {}, "server: 'ftp://x': should be an address"),
        ({"server": "https://x:port"}, {}, "server: 'https://x:port': should be an address"),
        ({"server": "https://[x"}, {}, "server: 'https://[x': should be an address"),
        ({"proxy-url": "socks5://x"}, {}, "proxy-url: 'socks5://x': should be an HTTP proxy such as"),
        ({"certificate-authority": "a", "certificate-authority-data": PEM}, {}, "has certificate-authority and certificate-auth"),
        ({"certificate-authority": "a", "insecure-skip-tls-verify": True}, {}, "insecure-skip-tls-verify is true, so"),
        ({}, {"token": "a", "username": "b"}, "user 'u': has a token and a username or password; keep one of them"),
        ({}, {"client-certificate": "a"}, "client-key: is missing; a certificate and its key go together"),
        ({}, {"client-key-data": PEM}, "client-certificate: is missing; a certificate"),
        ({}, {"client-key": "a", "client-key-data": PEM}, "has client-key and client-key-data; keep one"),
        ({}, {"auth-provider": {"name": "gcp"}}, "auth-provider: is gone since Kubernetes 1.26; use an exec plugin"),
        ({}, {"as-groups": ["a"]}, "as: is missing; as-groups, as-uid and as-user-extra go with it"),
        ({}, {"token": "a\nb"}, "should be printable"),
        ({}, {"exec": {}}, "exec: command: is missing"),
        (
            {},
            {"exec": {"command": "x", "apiVersion": "v2"}},
            "exec: apiVersion: 'v2': should be client.authentication.k8s.io/v1 or",
        ),
        ({}, {"exec": {"command": "x", "apiVersion": V1}}, "exec: interactiveMode: '': should be Never, IfAvailable or Always"),
        ({}, {"exec": {"command": "x", "apiVersion": V1, "interactiveMode": "No"}}, "interactiveMode: 'No': should be"),
        ({"certificate-authority": "no.crt"}, {}, "certificate-authority: "),
    ],
)
async def test_settings_that_cannot_work_get_a_sentence(tmp_path: Path, cluster: Json, user: Json, sentence: str) -> None:
    server = {} if "should be an address such as https" in sentence else {"server": "https://x"}
    document = config(
        clusters=[named("cluster", "c", **{**server, **cluster})],
        users=[named("user", "u", **user)],
        contexts=[named("context", "x", cluster="c", user="u")],
        current_context="x",
    )
    path = write(tmp_path / "config", document)
    with pytest.raises(Misconfigured) as refused:
        await _show(path)
    assert sentence in str(refused.value)
    assert str(refused.value).startswith(f"{path}: ")


async def _show(path: Path) -> None:
    transport = connect(path, None, "test")
    try:
        await transport.send(Call("GET", "/"))
    finally:
        await transport.close()


def test_what_is_missing_is_named_with_what_there_is(tmp_path: Path) -> None:
    dangling = config(contexts=[named("context", "x", cluster="c")], clusters=[named("cluster", "d")], current_context="x")
    path = write(tmp_path / "config", dangling)
    with pytest.raises(Misconfigured, match=r"context 'x': cluster: there is no cluster 'c' \(there is: d\)"):
        connect(path, None, "test")
    path = write(tmp_path / "config", config(contexts=[named("context", "x", cluster="c")]))
    with pytest.raises(Misconfigured, match=r"has no current-context; name one with --context \(there is: x\)"):
        connect(path, None, "test")
    with pytest.raises(Misconfigured, match="is empty; it should hold clusters"):
        connect(write(tmp_path / "config", ""), None, "test")
    nowhere = Surroundings({"KUBECONFIG": f"{tmp_path}/1:{tmp_path}/2"}, tmp_path, tmp_path)
    with pytest.raises(Misconfigured, match=r"there is no kubeconfig at .*/1, .*/2, and this is no pod of a cluster; name one"):
        connect(None, None, "test", nowhere)


def test_impersonation_becomes_headers() -> None:
    user = User(as_user="jane", as_uid="7", as_groups=("a", "b"), as_user_extra={"Scopes/x": ("1", "2")})
    assert impersonation(user) == [
        ("Impersonate-User", "jane"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Extra-scopes%2Fx", "1"),
        ("Impersonate-Extra-scopes%2Fx", "2"),
    ]
    assert impersonation(User(as_user="")) == []
    assert Cluster().server == ""


_NAMES = [
    "clusters",
    "users",
    "contexts",
    "current-context",
    "name",
    "cluster",
    "user",
    "context",
    "server",
    "token",
    "exec",
    "command",
    "args",
    "env",
    "as-groups",
    "certificate-authority-data",
    "client-key-data",
    "tokenFile",
    "namespace",
    "extensions",
    "kind",
    "apiVersion",
]
_FIELDS = st.sampled_from(_NAMES)
_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates() | st.binary()
_NONSENSE = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_FIELDS | st.text(), inner, max_size=4), max_leaves=20
)


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(document=_NONSENSE)
def test_no_document_does_more_than_be_refused(tmp_path: Path, document: Any) -> None:
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(document), encoding="utf-8", errors="surrogateescape")
    _try(path)


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary() | st.text(alphabet="{}[]:-?&*!|>'\"%@ \n\tabc01.~<=").map(str.encode))
def test_no_bytes_do_more_than_be_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "config"
    path.write_bytes(data)
    _try(path)


def _try(path: Path) -> None:
    try:
        found = read(path)
        for context in (None, *found.contexts):
            choose(found, context, str(path))
    except Misconfigured as refused:
        assert str(path) in str(refused)
