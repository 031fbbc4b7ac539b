"""Certificates that are renewed on disk."""

import datetime
import ssl
from pathlib import Path

import pytest
import yaml

from herder.app.certificates import write_pair
from herder.app.kubeconfig import ADMIN, renew_kubeconfig, write_for
from herder.app.refusal import Refusal
from herder.app.reloading import Reloading
from herder.pki.authority import Authority

AUTHORITY = Authority.make()
LONGER = datetime.timedelta(days=400)


def _handshake(server: ssl.SSLContext) -> bytes:
    """What a client is shown, in memory."""
    client = ssl.create_default_context(cadata=AUTHORITY.pair.certificate.decode())
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname="localhost")
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (ours, theirs):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    shown = ours.getpeercert(binary_form=True)
    assert shown is not None
    return ssl.DER_cert_to_PEM_cert(shown).encode()


@pytest.fixture
def context(tmp_path: Path) -> ssl.SSLContext:
    write_pair(tmp_path, "server", AUTHORITY.server(("localhost",)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    return context


def test_new_connections_are_shown_the_new_certificate(tmp_path: Path, context: ssl.SSLContext) -> None:
    ends: list[float] = []
    reloading = Reloading(context, tmp_path, "server", ends.append)
    before = _handshake(context)
    renewed = AUTHORITY.server(("localhost",), life=LONGER)
    write_pair(tmp_path, "server", renewed)
    reloading.look()
    assert _handshake(context) == renewed.certificate != before
    assert len(ends) == 2 and ends[0] < ends[1] == reloading.ends


def test_half_of_a_renewal_leaves_the_old_one_in_use(tmp_path: Path, context: ssl.SSLContext) -> None:
    reloading = Reloading(context, tmp_path, "server")
    before, renewed = _handshake(context), AUTHORITY.server(("localhost",))
    (tmp_path / "server.crt").write_bytes(renewed.certificate)
    with pytest.raises(ValueError, match="the key is that of another certificate"):
        reloading.look()
    assert _handshake(context) == before
    (tmp_path / "server.key").write_bytes(renewed.key)
    reloading.look()
    assert _handshake(context) == renewed.certificate


def test_a_kubeconfig_that_somebody_changed_keeps_what_they_put_there(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    write_for(path, "https://127.0.0.1:1", AUTHORITY, ADMIN, AUTHORITY.client(ADMIN, ()))
    document = yaml.safe_load(path.read_text())
    document["users"].append({"name": "other", "user": {"token": "t"}})
    document["current-context"] = "elsewhere"
    path.write_text(yaml.safe_dump(document))
    renew_kubeconfig(path, "https://127.0.0.1:1", AUTHORITY, AUTHORITY.client(ADMIN, ()))
    renewed = yaml.safe_load(path.read_text())
    assert (renewed["current-context"], renewed["users"][1]) == ("elsewhere", {"name": "other", "user": {"token": "t"}})
    assert renewed["users"][0]["user"]["client-key-data"] != document["users"][0]["user"]["client-key-data"]


def test_a_kubeconfig_that_is_gone_is_written_anew_and_one_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    renew_kubeconfig(path, "https://127.0.0.1:1", AUTHORITY, AUTHORITY.client(ADMIN, ()))
    assert yaml.safe_load(path.read_text())["users"][0]["name"] == ADMIN
    path.write_text("users: [{name: other, user: {token: t}}]")
    with pytest.raises(Refusal, match=f"has no user {ADMIN} any more"):
        renew_kubeconfig(path, "https://127.0.0.1:1", AUTHORITY, AUTHORITY.client(ADMIN, ()))
    assert path.read_text() == "users: [{name: other, user: {token: t}}]"
