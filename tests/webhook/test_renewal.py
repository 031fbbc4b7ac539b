"""Certificates end. The API server, which has a clock of its own, must never meet one that it does not trust."""

import asyncio
import ssl
from urllib.parse import urlsplit

import msgspec
import pytest

from herder.kube.client import Client
from herder.kube.resources import SECRETS, Key
from herder.kube.webhook import Settings
from herder.kube.webhook.certificates import Certificates
from herder.kube.webhook.settings import DAY, SECRET
from tests.engines.api import Api
from tests.webhook.replicas import BROKEN, FINE, MovedWorld, registered, running, some_settings, write

pytestmark = pytest.mark.kubernetes


async def _judges(api: Api) -> None:
    """Both answers come from the webhook: without it neither would be this one."""
    (await write(api, BROKEN, dryRun="All")).refused(422, "Invalid")
    (await write(api, FINE, dryRun="All")).ok  # noqa: B018


async def _connect(settings: Settings, trusting: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    address = urlsplit(settings.url)
    context = ssl.create_default_context(cadata=trusting.decode())
    return await asyncio.open_connection(address.hostname, address.port, ssl=context)


async def _shown(settings: Settings, trusting: bytes) -> bytes:
    """The certificate that a new connection is shown, and which must be trusted by this bundle."""
    _, writer = await _connect(settings, trusting)
    certificate: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return ssl.DER_cert_to_PEM_cert(certificate).encode()


async def test_an_authority_is_replaced_and_no_write_is_held_up(client: Client, api: Api) -> None:
    world = MovedWorld(20 * DAY)
    settings = some_settings(serving_life=30 * DAY, authority_life=61 * DAY)
    certificates = Certificates(client, world, settings)
    first = await certificates.look()
    async with running(client, world, settings) as replica, registered(client, world, settings, api) as registration:
        await _judges(api)

        world.behind = 9 * DAY
        await replica.look()
        coming = await certificates.look()
        assert coming.coming is not None
        assert coming.serving == first.serving
        # Due, but the API server has not been told of the next one: the present one signs.
        world.behind = 0
        await replica.look()
        renewed = await certificates.look()
        assert (renewed.authority, renewed.coming) == (first.authority, coming.coming)
        assert renewed.serving != first.serving
        assert await _shown(settings, first.bundle()) == renewed.serving.certificate
        await _judges(api)

        await registration.register()
        # Due again, although no time has passed: what our clock made any later would not be valid yet for the API server.
        changed = await Certificates(client, world, msgspec.structs.replace(settings, serving_life=200 * DAY)).look()
        assert changed.authority == coming.coming
        assert first.authority.certificate in changed.former
        # What the replica still shows is trusted until it looks again.
        await registration.register()
        await _judges(api)
        await replica.look()
        assert await _shown(settings, changed.authority.certificate) == changed.serving.certificate
        await _judges(api)
    # Another one on the same address: the API server has to shake hands anew, and sees only the new certificate.
    async with running(client, world, settings), registered(client, world, settings, api):
        await _judges(api)


async def test_a_connection_outlives_the_certificate_that_it_began_with(client: Client, api: Api) -> None:
    world = MovedWorld(70 * DAY)
    settings = some_settings()
    certificates = Certificates(client, world, settings)
    async with running(client, world, settings) as replica:
        before = await certificates.look()
        reader, writer = await _connect(settings, before.bundle())
        assert await _healthy(reader, writer)
        world.behind = 0
        assert await replica.look()
        after = await certificates.look()
        assert after.serving != before.serving
        assert await _healthy(reader, writer)
        assert await _shown(settings, before.bundle()) == after.serving.certificate
        writer.close()
    await certificates.remove()


async def _healthy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: webhook\r\n\r\n")
    return (await reader.readuntil(b"\r\n\r\nok")).startswith(b"HTTP/1.1 200 ")


async def test_replicas_that_start_together_share_what_the_first_of_them_made(client: Client, api: Api) -> None:
    settings = some_settings()
    world = MovedWorld(0)
    kept = await asyncio.gather(*(Certificates(client, world, settings).look() for _ in range(8)))
    assert len({one.serving.certificate for one in kept}) == 1
    secret = await client.get(SECRETS, Key(settings.namespace, SECRET))
    assert secret.data["tls.crt"] == kept[0].serving.certificate
    await Certificates(client, world, settings).remove()


async def test_replicas_that_renew_together_agree(client: Client, api: Api) -> None:
    settings = some_settings()
    world = MovedWorld(70 * DAY)
    before = await Certificates(client, world, settings).look()
    world.behind = 0
    kept = await asyncio.gather(*(Certificates(client, world, settings).look() for _ in range(8)))
    assert {one.serving.certificate for one in kept} - {before.serving.certificate} == {kept[0].serving.certificate}
    await Certificates(client, world, settings).remove()


async def test_a_secret_that_somebody_spoilt_is_made_anew(client: Client, api: Api) -> None:
    settings = some_settings()
    certificates = Certificates(client, MovedWorld(0), settings)
    before = await certificates.look()
    await client.patch(SECRETS, Key(settings.namespace, SECRET), {"data": {"tls.key": "c3BvaWx0"}})
    after = await certificates.look()
    assert after.serving != before.serving
    assert await certificates.look() == after
    await certificates.remove()
