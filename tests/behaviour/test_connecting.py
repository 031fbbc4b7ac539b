"""How our client finds a server and says who it is: kubeconfigs, contexts, tokens, a pod's own account."""

import base64
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from herder.kube.errors import Forbidden, Misconfigured, Unauthorized, Unreachable
from herder.kube.resources import CONFIG_MAPS, NODES, Key
from tests.behaviour.clients import admin_of, around, cluster_of, connected, who, write_kubeconfig
from tests.engines.api import Api
from tests.engines.credentials import sign, token_for
from tests.engines.engine import Engine
from tests.engines.processes import free_ports
from tests.engines.resources import SERVICE_ACCOUNTS


@pytest.fixture
async def robot(api: Api, namespace: str) -> Callable[..., str]:
    (await api.create(SERVICE_ACCOUNTS, {"metadata": {"name": "robot"}}, namespace)).ok  # noqa: B018
    return lambda: f"system:serviceaccount:{namespace}:robot"


async def test_the_kubeconfig_of_the_engine_leads_to_it(engine: Engine) -> None:
    async with connected(engine.kubeconfig) as client:
        assert "system:masters" in (await who(client.transport))[1]


async def test_certificates_may_be_held_in_the_kubeconfig(engine: Engine, tmp_path: Path) -> None:
    held = {
        "certificate-authority-data": base64.b64encode(engine.ca.read_bytes()).decode(),
        "server": engine.server,
    }
    user = {
        "client-certificate-data": base64.b64encode(engine.client_certificate.read_bytes()).decode(),
        "client-key-data": base64.b64encode(engine.client_key.read_bytes()).decode(),
    }
    async with connected(write_kubeconfig(tmp_path / "config", held, user)) as client:
        assert "system:masters" in (await who(client.transport))[1]


async def test_paths_start_where_the_kubeconfig_is_whatever_its_name(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "schöne Schlüssel ☸"
    folder.mkdir()
    for source, name in ((engine.ca, "die ca.crt"), (engine.client_certificate, "ich.crt"), (engine.client_key, "ich.key")):
        shutil.copy(source, folder / name)
    cluster = {"server": engine.server, "certificate-authority": "die ca.crt"}
    path = write_kubeconfig(folder / "meine config", cluster, {"client-certificate": "ich.crt", "client-key": "./ich.key"})
    async with connected(path) as client:
        assert "system:masters" in (await who(client.transport))[1]


async def test_a_token_says_who_we_are(engine: Engine, api: Api, namespace: str, robot: Callable[[], str], tmp_path: Path) -> None:
    token = await token_for(api, namespace, "robot")
    async with connected(write_kubeconfig(tmp_path / "config", cluster_of(engine), {"token": token})) as client:
        assert (await who(client.transport))[0] == robot()
        with pytest.raises(Forbidden, match=r'cannot get resource "nodes"'):
            await client.get(NODES, Key("", "n"))


async def test_a_token_that_is_none_is_unauthorized(engine: Engine, tmp_path: Path) -> None:
    async with connected(write_kubeconfig(tmp_path / "config", cluster_of(engine), {"token": "nonsense"})) as client:
        with pytest.raises(Unauthorized):
            await client.list(CONFIG_MAPS)


async def test_a_context_is_chosen_by_name(engine: Engine, tmp_path: Path) -> None:
    nowhere = write_kubeconfig(tmp_path / "a", {"server": "https://127.0.0.1:1"}, {})
    real = tmp_path / "b"
    write_kubeconfig(real, cluster_of(engine), admin_of(engine))
    real.write_text(real.read_text().replace('"x"', '"real"').replace('"c"', '"real"').replace('"u"', '"real"'))
    where = around(tmp_path, {"KUBECONFIG": f"{nowhere}:{tmp_path / 'missing'}:{real}"})
    async with connected(None, "real", where) as client:
        assert "system:masters" in (await who(client.transport))[1]
    async with connected(None, None, where) as client:
        with pytest.raises(Unreachable):
            await client.list(NODES)
    with pytest.raises(Misconfigured, match=r"there is no context 'other' \(there is: real, x\)"):
        async with connected(None, "other", where):
            pass


async def test_the_file_in_the_home_directory_is_the_last_kubeconfig(engine: Engine, tmp_path: Path) -> None:
    write_kubeconfig(tmp_path / ".kube" / "config", cluster_of(engine), admin_of(engine))
    async with connected(None, None, around(tmp_path)) as client:
        assert "system:masters" in (await who(client.transport))[1]


async def test_a_pod_uses_its_own_account_and_reads_the_token_again(
    engine: Engine, api: Api, namespace: str, robot: Callable[[], str], tmp_path: Path
) -> None:
    account = tmp_path / "serviceaccount"
    account.mkdir()
    shutil.copy(engine.ca, account / "ca.crt")
    (account / "token").write_text(await token_for(api, namespace, "robot"))
    port = engine.server.rpartition(":")[2]
    where = around(tmp_path, {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": port}, account)
    async with connected(None, None, where) as client:
        assert (await who(client.transport))[0] == robot()
        _replace(account / "token", "no-longer-good")
        with pytest.raises(Unauthorized):
            await client.list(CONFIG_MAPS)
        _replace(account / "token", await token_for(api, namespace, "robot"))
        assert (await who(client.transport))[0] == robot()


async def test_a_token_file_is_read_again_when_it_changes_and_outlives_its_loss(
    engine: Engine, api: Api, namespace: str, robot: Callable[[], str], tmp_path: Path
) -> None:
    (tmp_path / "the token").write_text("not-yet-good\n")
    async with connected(write_kubeconfig(tmp_path / "config", cluster_of(engine), {"tokenFile": "the token"})) as client:
        with pytest.raises(Unauthorized):
            await client.list(CONFIG_MAPS)
        _replace(tmp_path / "the token", await token_for(api, namespace, "robot") + "\n")
        assert (await who(client.transport))[0] == robot()
        (tmp_path / "the token").unlink()
        assert (await who(client.transport))[0] == robot()


async def test_a_certificate_that_is_rotated_is_used_by_the_next_request(engine: Engine, tmp_path: Path) -> None:
    def show(name: str) -> None:
        pair = sign(engine, tmp_path, name)
        _replace(tmp_path / "me.key", pair.key.read_text())
        _replace(tmp_path / "me.crt", pair.certificate.read_text())

    show("before")
    user = {"client-certificate": "me.crt", "client-key": "me.key"}
    async with connected(write_kubeconfig(tmp_path / "config", cluster_of(engine), user)) as client:
        assert (await who(client.transport))[0] == "before"
        show("after")
        assert (await who(client.transport))[0] == "after"


async def test_somebody_else_can_be_impersonated(engine: Engine, tmp_path: Path) -> None:
    user = admin_of(engine, **{"as": "jane", "as-groups": ["devs", "ops"]})
    async with connected(write_kubeconfig(tmp_path / "config", cluster_of(engine), user)) as client:
        assert await who(client.transport) == ("jane", ["devs", "ops", "system:authenticated"])


async def test_a_server_with_another_name_is_known_by_it(engine: Engine, tmp_path: Path) -> None:
    named = cluster_of(engine, **{"tls-server-name": "no.such.name"})
    async with connected(write_kubeconfig(tmp_path / "a", named, admin_of(engine))) as client:
        with pytest.raises(Unreachable, match="certificate"):
            await client.list(NODES)
    named = cluster_of(engine, **{"tls-server-name": "localhost"})
    async with connected(write_kubeconfig(tmp_path / "b", named, admin_of(engine))) as client:
        assert "system:masters" in (await who(client.transport))[1]


async def test_a_server_that_nobody_vouches_for_is_not_spoken_to_unless_told_so(engine: Engine, tmp_path: Path) -> None:
    async with connected(write_kubeconfig(tmp_path / "a", {"server": engine.server}, admin_of(engine))) as client:
        with pytest.raises(Unreachable, match="certificate"):
            await client.list(NODES)
    told = {"server": engine.server, "insecure-skip-tls-verify": True}
    async with connected(write_kubeconfig(tmp_path / "b", told, admin_of(engine))) as client:
        assert "system:masters" in (await who(client.transport))[1]


async def test_a_server_that_is_not_there_is_unreachable(tmp_path: Path, engine: Engine) -> None:
    (port,) = free_ports(1)
    cluster = cluster_of(engine, server=f"https://127.0.0.1:{port}")
    async with connected(write_kubeconfig(tmp_path / "config", cluster, admin_of(engine))) as client:
        with pytest.raises(Unreachable, match=str(port)):
            await client.list(NODES)


def _replace(path: Path, text: str) -> None:
    """In one step, as those who rotate do it."""
    beside = path.with_name(".new")
    beside.write_text(text)
    os.replace(beside, path)
