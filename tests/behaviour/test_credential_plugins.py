"""Credential plugins as kubectl runs them: real programs, tokens and certificates, the end of both."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from herder.kube.errors import Misconfigured, Unauthorized
from herder.kube.resources import CONFIG_MAPS
from tests.behaviour.clients import Json, cluster_of, connected, who, write_kubeconfig
from tests.engines.api import Api
from tests.engines.credentials import sign, token_for
from tests.engines.engine import Engine
from tests.engines.resources import SERVICE_ACCOUNTS

V1, V1BETA1 = "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"
SCRIPT = """#!/bin/sh
here=$(dirname "$0")
printf '%s' "$KUBERNETES_EXEC_INFO" > "$here/info"
echo "$GREETING $*" >> "$here/calls"
cat "$here/answer"
exit $(cat "$here/code")
"""


class Plugin:
    """A program whose answer the test decides, and which keeps count."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        (folder / "get token").write_text(SCRIPT)
        (folder / "get token").chmod(0o755)
        (folder / "code").write_text("0")

    def answers(self, version: str = V1, **status: Any) -> None:
        document = {"apiVersion": version, "kind": "ExecCredential", "status": status}
        (self.folder / "answer").write_text(json.dumps(document))

    @property
    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()

    @property
    def info(self) -> Json:
        return json.loads((self.folder / "info").read_text())

    def user(self, version: str = V1, **more: Any) -> Json:
        mode = {"interactiveMode": "Never"} if version == V1 else {}
        return {"exec": {"apiVersion": version, "command": f"{self.folder.name}/get token", **mode, **more}}


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path / "plug ins")


@pytest.fixture
async def tokens(api: Api, namespace: str) -> Callable[..., Any]:
    for name in ("one", "two"):
        (await api.create(SERVICE_ACCOUNTS, {"metadata": {"name": name}}, namespace)).ok  # noqa: B018
    return lambda name: token_for(api, namespace, name)


async def account(client: Any) -> str:
    return (await who(client.transport))[0].rpartition(":")[2]


@pytest.mark.parametrize("version", [V1, V1BETA1])
async def test_a_plugin_is_asked_once_for_its_token(
    engine: Engine, plugin: Plugin, tokens: Callable[..., Any], tmp_path: Path, version: str
) -> None:
    plugin.answers(version, token=await tokens("one"))
    user = plugin.user(version, args=["a b", "c"], env=[{"name": "GREETING", "value": "hello"}])
    async with connected(write_kubeconfig(tmp_path / "config", cluster_of(engine), user)) as client:
        assert [await account(client) for _ in range(3)] == ["one"] * 3
    assert plugin.calls == ["hello a b c"]
    assert plugin.info == {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}


async def test_a_plugin_may_return_a_certificate(engine: Engine, plugin: Plugin, tmp_path: Path) -> None:
    pair = sign(engine, tmp_path, "jane", "devs")
    plugin.answers(clientCertificateData=pair.certificate.read_text(), clientKeyData=pair.key.read_text())
    async with connected(write_kubeconfig(tmp_path / "config", cluster_of(engine), plugin.user())) as client:
        assert await who(client.transport) == ("jane", ["devs", "system:authenticated"])


async def test_a_token_that_the_server_does_not_take_is_asked_for_again_once(
    engine: Engine, plugin: Plugin, tokens: Callable[..., Any], tmp_path: Path
) -> None:
    plugin.answers(token="bad")
    async with connected(write_kubeconfig(tmp_path / "config", cluster_of(engine), plugin.user())) as client:
        with pytest.raises(Unauthorized):
            await client.list(CONFIG_MAPS)
        assert len(plugin.calls) == 2
        plugin.answers(token=await tokens("two"))
        assert await account(client) == "two"
    assert len(plugin.calls) == 3


async def test_a_watch_too_asks_again(
    engine: Engine, plugin: Plugin, api: Api, namespace: str, tokens: Callable[..., Any], tmp_path: Path
) -> None:
    plugin.answers(token="bad")
    async with connected(write_kubeconfig(tmp_path / "config", cluster_of(engine), plugin.user())) as client:
        with pytest.raises(Unauthorized):
            async for _ in client.watch(CONFIG_MAPS, "0", seconds=1):
                pass
    assert len(plugin.calls) == 2


async def test_what_has_ended_is_asked_for_again_and_what_has_not_is_kept(
    engine: Engine, plugin: Plugin, tokens: Callable[..., Any], tmp_path: Path
) -> None:
    plugin.answers(token=await tokens("one"), expirationTimestamp="2020-01-01T00:00:00Z")
    async with connected(write_kubeconfig(tmp_path / "config", cluster_of(engine), plugin.user())) as client:
        assert await account(client) == "one"
        plugin.answers(token=await tokens("two"), expirationTimestamp="2999-01-01T00:00:00Z")
        assert [await account(client), await account(client)] == ["two", "two"]
    assert len(plugin.calls) == 2


async def test_a_plugin_that_asks_for_it_hears_of_the_cluster(
    engine: Engine, plugin: Plugin, tokens: Callable[..., Any], tmp_path: Path
) -> None:
    plugin.answers(token=await tokens("one"))
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "us"}}
    cluster = cluster_of(engine, extensions=[extension])
    path = write_kubeconfig(tmp_path / "config", cluster, plugin.user(provideClusterInfo=True))
    async with connected(path) as client:
        assert await account(client) == "one"
    told = plugin.info["spec"]["cluster"]
    assert (told["server"], told["config"]) == (engine.server, {"audience": "us"})
    assert told["certificate-authority-data"]


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        ("", "should print an ExecCredential as JSON"),
        ("[]", "should print an ExecCredential as JSON"),
        ('{"apiVersion": "v1", "kind": "Status"}', "printed 'v1 Status' where client.authentication.k8s.io/v1 ExecCredential"),
        (f'{{"apiVersion": "{V1}", "kind": "ExecCredential"}}', "status: should hold a token"),
        (f'{{"apiVersion": "{V1}", "kind": "ExecCredential", "status": {{"clientCertificateData": "x"}}}}', "go together"),
        (
            f'{{"apiVersion": "{V1}", "kind": "ExecCredential", "status": {{"clientCertificateData": "x", "clientKeyData": "y"}}}}',
            "no certificate and its key in PEM",
        ),
        (
            f'{{"apiVersion": "{V1}", "kind": "ExecCredential", "status": {{"token": "t", "expirationTimestamp": "soon"}}}}',
            "'soon': should be a time as in RFC 3339",
        ),
    ],
)
async def test_an_answer_that_is_none_is_refused_in_a_sentence(
    engine: Engine, plugin: Plugin, tmp_path: Path, answer: str, complaint: str
) -> None:
    (plugin.folder / "answer").write_text(answer)
    async with connected(write_kubeconfig(tmp_path / "config", cluster_of(engine), plugin.user())) as client:
        with pytest.raises(Misconfigured) as refused:
            await client.list(CONFIG_MAPS)
    assert complaint in str(refused.value)
    assert f"{tmp_path / 'config'}: user 'u': exec: " in str(refused.value)


async def test_a_plugin_that_fails_or_is_missing_says_how_to_get_it(engine: Engine, plugin: Plugin, tmp_path: Path) -> None:
    (plugin.folder / "answer").write_text("")
    (plugin.folder / "code").write_text("3")
    hint = {"installHint": "get it from\n  the shelf"}
    for more, complaint in (({}, "ended with 3 and no credentials"), ({"command": "no-such-program"}, "No such file or directory")):
        path = write_kubeconfig(tmp_path / "config", cluster_of(engine), plugin.user(**hint, **more))
        async with connected(path) as client:
            with pytest.raises(Misconfigured, match=complaint) as refused:
                await client.list(CONFIG_MAPS)
        assert str(refused.value).endswith("(get it from the shelf)")


async def test_a_plugin_that_needs_a_person_is_not_run_without_one(engine: Engine, plugin: Plugin, tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path / "config", cluster_of(engine), plugin.user(interactiveMode="Always"))
    async with connected(path) as client:
        with pytest.raises(Misconfigured, match="there is no terminal here to ask at"):
            await client.list(CONFIG_MAPS)
    assert not (plugin.folder / "calls").exists()
