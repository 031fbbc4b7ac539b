"""When which certificate is made, signed and trusted. Years pass here."""

import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from herder.kube.webhook import keeping
from herder.kube.webhook.keeping import Kept
from herder.kube.webhook.settings import DAY, BadUrl, Settings
from herder.pki import reading
from herder.pki.authority import Authority

NOW = 1_750_000_000.0
SETTINGS = Settings(url="https://127.0.0.1:9443")


def _days(certificate: bytes, now: float) -> int:
    return round((reading.ends(certificate) - now) / DAY)


def _is_trusted(kept: Kept) -> bool:
    return any(reading.is_signed_by(kept.serving.certificate, one) for one in reading.split(kept.bundle()))


def test_the_first_to_come_makes_an_authority_and_a_certificate_for_the_address() -> None:
    kept = keeping.plan(None, NOW, SETTINGS, False)
    assert reading.hosts(kept.serving.certificate) == ("127.0.0.1",)
    assert (_days(kept.serving.certificate, NOW), _days(kept.authority.certificate, NOW)) == (90, 1825)
    assert _is_trusted(kept)


def test_inside_a_cluster_the_certificate_is_for_the_service() -> None:
    kept = keeping.plan(None, NOW, Settings(), False)
    assert reading.hosts(kept.serving.certificate)[0] == "herder-webhook.herder-system.svc"


def test_what_was_kept_is_read_back_as_it_was() -> None:
    kept = keeping.plan(None, NOW, SETTINGS, False)
    later = keeping.plan(kept, NOW + 4.8 * 365 * DAY, SETTINGS, False)
    for one in (kept, later):
        assert keeping.read(_stored(one)) == one
    assert later.coming is not None


def _stored(kept: Kept) -> dict[str, bytes]:
    return {name: value for name, value in kept.data().items() if value is not None}


@pytest.mark.parametrize("days", [0, 1, 30, 59])
def test_nothing_changes_while_nothing_is_due(days: int) -> None:
    kept = keeping.plan(None, NOW, SETTINGS, False)
    assert keeping.plan(kept, NOW + days * DAY, SETTINGS, True) is kept


def test_a_certificate_is_renewed_when_a_third_of_its_life_is_left() -> None:
    kept = keeping.plan(None, NOW, SETTINGS, False)
    later = keeping.plan(kept, NOW + 60 * DAY, SETTINGS, True)
    assert _days(later.serving.certificate, NOW + 60 * DAY) == 90
    assert later.authority == kept.authority
    assert _is_trusted(later)


def test_in_twenty_years_there_is_no_day_without_a_certificate_that_is_trusted_already() -> None:
    """What a server shows is signed by what was in yesterday's bundle: the API server has had a day to learn of it."""
    kept = keeping.plan(None, NOW, SETTINGS, False)
    authorities = {kept.authority.certificate}
    for day in range(1, 20 * 365):
        now = NOW + day * DAY
        trusted = reading.split(kept.bundle())
        after = keeping.plan(kept, now, SETTINGS, True)
        if after is not kept:
            assert any(reading.is_signed_by(after.serving.certificate, one) and reading.ends(one) > now for one in trusted), day
            # What other replicas still show stays trusted.
            assert any(reading.is_signed_by(kept.serving.certificate, one) for one in reading.split(after.bundle())), day
            assert len(reading.split(after.bundle())) <= 3
        assert reading.ends(after.serving.certificate) > now + 29 * DAY
        authorities.add(after.authority.certificate)
        kept = after
    assert len(authorities) == 5


def test_a_next_authority_that_the_api_server_does_not_trust_yet_signs_nothing() -> None:
    kept = keeping.plan(None, NOW, SETTINGS, False)
    now = NOW + SETTINGS.authority_life - 150 * DAY
    waiting = keeping.plan(keeping.plan(kept, now, SETTINGS, False), now, SETTINGS, False)
    assert waiting.coming is not None
    assert waiting.authority == kept.authority
    due = keeping.plan(waiting, now + 70 * DAY, SETTINGS, trusted=False)
    assert reading.is_signed_by(due.serving.certificate, kept.authority.certificate)
    # Its own end comes near: now it changes as soon as it may, although the certificate itself is not due.
    near = now + 125 * DAY
    assert keeping.plan(due, near, SETTINGS, trusted=False) is due
    changed = keeping.plan(due, near, SETTINGS, trusted=True)
    assert reading.is_signed_by(changed.serving.certificate, waiting.coming.certificate)
    assert kept.authority.certificate in changed.bundle()


def test_a_next_authority_must_settle_before_it_signs() -> None:
    kept = keeping.plan(None, NOW, SETTINGS, False)
    now = NOW + SETTINGS.authority_life - 29 * DAY
    waiting = keeping.plan(kept, now, SETTINGS, True)
    assert reading.is_signed_by(waiting.serving.certificate, kept.authority.certificate)
    assert keeping.plan(waiting, now + SETTINGS.settling - 1, SETTINGS, True) is waiting
    changed = keeping.plan(waiting, now + SETTINGS.settling, SETTINGS, True)
    assert waiting.coming is not None
    assert changed.authority == waiting.coming


@pytest.mark.parametrize("years", [1, 4.9, 6, 30])
def test_after_a_long_absence_there_is_a_good_certificate_at_once(years: float) -> None:
    kept = keeping.plan(None, NOW, SETTINGS, False)
    now = NOW + years * 365 * DAY
    after = keeping.plan(kept, now, SETTINGS, False)
    assert min(reading.ends(after.serving.certificate), reading.ends(after.authority.certificate)) > now
    assert _is_trusted(after)


def test_a_next_authority_that_is_trusted_already_takes_over_when_the_present_one_has_ended() -> None:
    kept = keeping.plan(None, NOW, SETTINGS, False)
    waiting = keeping.plan(kept, NOW + SETTINGS.authority_life - 100 * DAY, SETTINGS, False)
    after = keeping.plan(waiting, NOW + SETTINGS.authority_life + DAY, SETTINGS, False)
    assert after.authority == waiting.coming


def test_replicas_that_are_called_by_different_names_do_not_undo_each_others_work() -> None:
    here, there = SETTINGS, Settings(url="https://other.example.com")
    kept = keeping.plan(keeping.plan(None, NOW, here, False), NOW, there, False)
    assert set(reading.hosts(kept.serving.certificate)) == {"127.0.0.1", "other.example.com"}
    assert keeping.plan(kept, NOW, here, False) is kept
    assert keeping.plan(kept, NOW, there, False) is kept


def test_what_is_not_whole_is_made_anew() -> None:
    good = _stored(keeping.plan(None, NOW, SETTINGS, False))
    other = _stored(keeping.plan(None, NOW, SETTINGS, False))
    assert keeping.read({}) is None
    for name in good:
        assert keeping.read({key: value for key, value in good.items() if key != name}) is None
        assert keeping.read({**good, name: b"garbage"}) is None
        assert keeping.read({**good, name: other[name]}) is None


def test_an_authority_of_another_make_is_replaced() -> None:
    """An RSA key, as other tools make them, whole and fitting: we could not sign with it."""
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "other")])
    begins = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, begins, begins + datetime.timedelta(days=900))
    certificate = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    form = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    private = key.private_bytes(serialization.Encoding.PEM, *form)
    assert keeping.read({"ca.crt": certificate, "ca.key": private, "tls.crt": certificate, "tls.key": private}) is None


def test_the_key_of_an_authority_that_came_later_is_not_that_of_the_former() -> None:
    first, second = Authority.make(), Authority.make()
    assert not reading.is_signed_by(first.server(("a",)).certificate, second.pair.certificate)


@pytest.mark.parametrize(
    "url",
    [
        *("http://a:1", "a:1", "https://", "https://a:x", "https://a:99999", "https://a/?q=1", "https://a/#f"),
        *("https://bücher.example", "https://u@a", "https://a/validate", "https://[::1"),
    ],
)
def test_an_address_that_the_api_server_could_not_call_is_refused_in_words(url: str) -> None:
    with pytest.raises(BadUrl, match="https://HOST:PORT"):
        Settings(url=url)
