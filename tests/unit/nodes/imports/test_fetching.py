"""Images from the web: whole, or not at all."""

import gzip
import hashlib
import lzma
import os
import socket
from collections.abc import Callable
from typing import Any

import pytest

from herder.nodes.imports import addresses
from herder.nodes.imports.addresses import is_local
from herder.nodes.work import NotYet
from tests.unit.nodes.imports.site import MIB, VOLUME, Importing, Site

DISK = bytes(range(256)) * 4096


async def test_a_raw_disk_is_kept_and_is_as_large_as_the_volume(importing: Importing, site: Site) -> None:
    site.files["/disk.img"] = DISK
    assert (await importing.fetch(site.url("/disk.img"))).state == "ShutDown"
    assert importing.content == DISK + bytes(3 * MIB)
    assert importing.left == [f"{VOLUME}/disk.img", f"{VOLUME}/volume.json"]


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
async def test_a_packed_disk_is_unpacked_whatever_its_name(
    importing: Importing, site: Site, pack: Callable[[bytes], bytes]
) -> None:
    packed = pack(DISK)
    site.files["/disk.img"] = packed
    checksum = f"sha256:{hashlib.sha256(packed).hexdigest()}"
    assert (await importing.fetch(site.url("/disk.img"), checksum=checksum)).state == "ShutDown"
    assert importing.content[: len(DISK)] == DISK


@pytest.mark.parametrize("code,reason", [(404, "SourceNotFound"), (403, "SourceRefused"), (503, "SourceUnreachable")])
async def test_a_refusal_says_what_the_server_answered(importing: Importing, site: Site, code: int, reason: str) -> None:
    site.refused["/disk.img"] = code
    failed = await importing.fetch(site.url("/disk.img"))
    assert (failed.state, failed.reason) == ("Failed", reason)
    assert f"answered {code}" in failed.message
    assert importing.left == []


async def test_a_server_that_is_not_there_is_named(importing: Importing, site: Site) -> None:
    failed = await importing.fetch("http://127.0.0.1:1/disk.img")
    assert failed.reason == "SourceUnreachable"
    assert "127.0.0.1:1" in failed.message


async def test_a_checksum_that_does_not_match_leaves_nothing_visible(importing: Importing, site: Site) -> None:
    site.files["/disk.img"] = DISK
    failed = await importing.fetch(site.url("/disk.img"), checksum="sha256:" + "0" * 64)
    assert failed.reason == "ChecksumMismatch"
    assert hashlib.sha256(DISK).hexdigest() in failed.message
    assert not importing.folder.disk(VOLUME).exists()


@pytest.mark.slow
async def test_a_cut_connection_is_gone_on_with(importing: Importing, site: Site) -> None:
    site.files["/disk.img"] = DISK
    site.cuts["/disk.img"] = 300_000
    checksum = f"sha256:{hashlib.sha256(DISK).hexdigest()}"
    assert (await importing.fetch(site.url("/disk.img"), checksum=checksum)).state == "ShutDown"
    assert importing.content[: len(DISK)] == DISK
    assert len(site.asked) == 2
    assert site.asked[1].headers["If-Range"] == '"one"'


async def test_a_cut_connection_that_cannot_be_gone_on_with_says_how_far_it_was(importing: Importing, site: Site) -> None:
    site.files["/disk.img"] = DISK
    site.cuts["/disk.img"] = 300_000
    site.versioned = False
    failed = await importing.fetch(site.url("/disk.img"))
    assert failed.reason == "SourceCutShort"
    assert f"of {len(DISK)} bytes" in failed.message
    assert not importing.folder.disk(VOLUME).exists()


async def test_an_image_that_does_not_fit_is_refused(importing: Importing, site: Site) -> None:
    site.files["/disk.img"] = DISK
    assert (await importing.fetch(site.url("/disk.img"), capacity=MIB // 2)).reason == "VolumeTooSmall"


async def test_a_small_file_that_unpacks_to_very_much_is_refused_on_the_way(importing: Importing, site: Site) -> None:
    site.files["/disk.img"] = gzip.compress(bytes(64 * MIB))
    assert (await importing.fetch(site.url("/disk.img"))).reason == "VolumeTooSmall"
    assert sum(one.stat().st_blocks * 512 for one in importing.folder.root.rglob("*") if one.is_file()) < 16 * MIB


@pytest.mark.parametrize("content", [b"", b"<!DOCTYPE html><p>log in", b"KDMV" + bytes(1024), gzip.compress(DISK)[:-20]])
async def test_what_is_no_disk_is_refused(importing: Importing, site: Site, content: bytes) -> None:
    site.files["/disk.img"] = content
    assert (await importing.fetch(site.url("/disk.img"))).reason == "NotADiskImage"
    assert not importing.folder.disk(VOLUME).exists()


async def test_nothing_comes_from_the_machine_itself_unless_that_is_allowed(careful: Importing, site: Site) -> None:
    site.files["/disk.img"] = DISK
    for url in (
        site.url("/disk.img"),
        site.url("/disk.img").replace("127.0.0.1", "localhost"),
        "http://[::1]:1/",
        "http://0.0.0.0:1/",
    ):
        failed = await careful.fetch(url)
        assert failed.reason == "SourceForbidden", failed
        assert "--allow-local-imports" in failed.message
    assert site.asked == []


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.9.9.9",
        "::1",
        "169.254.169.254",
        "fe80::1",
        "fe80::1%eth0",
        "::ffff:127.0.0.1",
        "64:ff9b::a9fe:a9fe",
        "0.0.0.0",
    ],
)
def test_local_addresses_are_known_in_all_their_forms(address: str) -> None:
    assert is_local(address)


@pytest.mark.parametrize("address", ["10.0.0.1", "93.184.216.34", "2606:2800:220:1::1"])
def test_other_addresses_are_not_local(address: str) -> None:
    assert not is_local(address)


async def test_a_redirect_is_followed_and_what_is_secret_stays_behind(importing: Importing, site: Site) -> None:
    site.files["/disk.img"] = DISK
    site.moved["/moved"] = site.url("/disk.img").replace("127.0.0.1", "localhost")
    importing.given.secrets["login"] = {"accessKeyId": b"me", "secretKey": b"pw"}
    done = await importing.fetch(site.url("/moved"), secretRef="login", extraHeaders=["X-Token: secret"])
    assert done.state == "ShutDown", done
    first, second = site.asked
    assert (first.headers["Authorization"], first.headers["X-Token"]) == ("Basic bWU6cHc=", "secret")
    assert not {"Authorization", "X-Token"} & set(second.headers)


async def test_a_redirect_to_another_scheme_is_refused(importing: Importing, site: Site) -> None:
    site.moved["/moved"] = "file:///etc/passwd"
    assert (await importing.fetch(site.url("/moved"))).reason == "SourceForbidden"


async def test_a_redirect_to_the_machine_itself_is_refused_as_the_address_itself_is(
    careful: Importing, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A test has only addresses of its machine: of these, the first is taken for one of somebody else.
    monkeypatch.setattr(addresses, "is_local", lambda address: address != "127.0.0.1")
    site.files["/disk.img"] = DISK
    monkeypatch.setattr(socket, "getaddrinfo", _resolving("localhost.localdomain", "127.0.0.2"))
    for other in ("127.0.0.2", "localhost.localdomain", "[::1]"):
        site.moved["/moved"] = site.url("/disk.img").replace("127.0.0.1", other)
        failed = await careful.fetch(site.url("/moved"))
        assert failed.reason == "SourceForbidden", failed
    assert {one.path for one in site.asked} == {"/moved"}


async def test_no_proxy_of_the_environment_is_in_between(importing: Importing, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would resolve and connect in our place, and no address would be looked at."""
    site.files["/disk.img"] = DISK
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    done = await importing.fetch(site.url("/disk.img"))
    assert done.state == "ShutDown", done


def _resolving(name: str, address: str) -> Any:
    known = socket.getaddrinfo

    def resolve(host: Any, *arguments: Any, **named: Any) -> Any:
        return known(address if host == name else host, *arguments, **named)

    return resolve


async def test_a_secret_that_does_not_exist_is_waited_for(importing: Importing, site: Site) -> None:
    with pytest.raises(NotYet, match="Secret login"):
        await importing.fetch(site.url("/disk.img"), secretRef="login")


async def test_what_is_filled_already_is_not_touched_again(importing: Importing, site: Site) -> None:
    site.files["/disk.img"] = DISK
    await importing.fetch(site.url("/disk.img"))
    disk = importing.folder.disk(VOLUME)
    with disk.open("r+b") as file:
        file.write(b"the guest was here")
    assert (await importing.fetch(site.url("/disk.img"))).state == "ShutDown"
    assert disk.read_bytes().startswith(b"the guest was here")
    assert len(site.asked) == 1


async def test_an_import_that_is_removed_stops_and_the_next_starts_over(importing: Importing, site: Site) -> None:
    site.files["/disk.img"] = DISK
    left = importing.folder.prepare(VOLUME)
    left.write_bytes(b"of one who was killed")
    assert (await importing.fetch(site.url("/disk.img"))).state == "ShutDown"
    assert importing.content[: len(DISK)] == DISK
    assert sorted(os.listdir(importing.folder.root / VOLUME)) == ["disk.img", "volume.json"]
