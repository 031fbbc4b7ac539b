"""Which certificates there should be now. Pure: what there is goes in, what there should be comes out.

A serving certificate is renewed when a third of its life is left. An authority is replaced in steps, so that at no moment
something is shown that the API server does not trust yet, or no longer:

1. well before its end a next authority is made, and trusted beside the present one;
2. the first serving certificate that is due after that is signed by the next one, if the API server is known to trust it;
3. the former one stays trusted until it ends: other replicas may still show what it signed.
"""

from __future__ import annotations

import datetime
import hashlib

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm

from herder.kube.webhook.settings import Settings
from herder.pki import reading
from herder.pki.authority import SLACK, Authority, Pair

RENEW_AT = 1 / 3


class Kept(msgspec.Struct, frozen=True):
    """What the Secret holds."""

    authority: Pair
    serving: Pair
    coming: Pair | None = None
    former: tuple[bytes, ...] = ()

    def bundle(self) -> bytes:
        """All that the API server should trust."""
        coming = [self.coming.certificate] if self.coming else []
        return b"".join([self.authority.certificate, *coming, *self.former])

    @property
    def words(self) -> tuple[str, ...]:
        """Who knows one of these has read the registration: questions whose answers have effects are asked under that path. The
        first is the one that is registered; the next is known beforehand, so that nobody is turned away when it comes."""
        keys = [self.authority.key, *([self.coming.key] if self.coming else [])]
        return tuple(hashlib.sha256(b"herder evictions\n" + key).hexdigest()[:32] for key in keys)

    def data(self) -> dict[str, bytes | None]:
        """As the data of a Secret of the type kubernetes.io/tls."""
        return {
            "ca.crt": self.bundle(),
            "ca.key": self.authority.key,
            "tls.crt": self.serving.certificate,
            "tls.key": self.serving.key,
            "next.crt": self.coming.certificate if self.coming else None,
            "next.key": self.coming.key if self.coming else None,
        }


def read(data: dict[str, bytes]) -> Kept | None:
    """None for what was never written by us, or by halves: then all is made anew."""
    try:
        first, *others = reading.split(data["ca.crt"])
        kept = Kept(
            Pair(first, data["ca.key"]),
            Pair(data["tls.crt"], data["tls.key"]),
            Pair(data["next.crt"], data["next.key"]) if data.get("next.crt") else None,
            tuple(one for one in others if one != data.get("next.crt")),
        )
        return kept if _is_whole(kept) else None
    except (KeyError, ValueError, TypeError, UnsupportedAlgorithm):
        return None


def _is_whole(kept: Kept) -> bool:
    """Raises where something is not even a certificate or a key that we could use."""
    for certificate in kept.former:
        reading.ends(certificate)
    for pair in (kept.authority, kept.coming):
        if pair is not None:
            Authority(pair)
    pairs = [kept.authority, kept.serving, *([kept.coming] if kept.coming else [])]
    keys_fit = all(reading.fits(*pair) for pair in pairs)
    return keys_fit and reading.is_signed_by(kept.serving.certificate, kept.authority.certificate)


def plan(kept: Kept | None, now: float, settings: Settings, trusted: bool) -> Kept:
    """What should be kept now; the same value where nothing is due. `trusted`: the API server trusts the next authority already."""
    if kept is None or _has_ended(kept.authority, now):
        return _anew(kept, now, settings)
    kept = _without_ended(_with_coming(kept, now, settings), now)
    missing = [host for host in settings.hosts if host not in reading.hosts(kept.serving.certificate)]
    change = trusted and _has_settled(kept, now, settings)
    if not (missing or _is_due(kept.serving, now, settings) or (change and _is_due(kept.authority, now, settings))):
        return kept
    # Another replica may be called by another name: what it added stays, or the two would undo each other's work for ever.
    hosts = (*reading.hosts(kept.serving.certificate), *missing) if missing else settings.hosts
    if change:
        kept = _changed(kept)
    return msgspec.structs.replace(kept, serving=_signed(kept.authority, now, settings, hosts))


def _anew(kept: Kept | None, now: float, settings: Settings) -> Kept:
    """There is nothing valid to hand over from: we were away for long. The next one may be trusted already, though."""
    coming = kept.coming if kept is not None else None
    authority = coming if coming is not None and not _has_ended(coming, now) else _new_authority(now, settings)
    return Kept(authority, _signed(authority, now, settings, settings.hosts))


def _with_coming(kept: Kept, now: float, settings: Settings) -> Kept:
    """Two lives of a serving certificate before the end: whatever the present one signs until the change fits into its own."""
    left = reading.ends(kept.authority.certificate) - now
    if kept.coming is not None or left >= 2 * settings.serving_life:
        return kept
    return msgspec.structs.replace(kept, coming=_new_authority(now, settings))


def _without_ended(kept: Kept, now: float) -> Kept:
    former = tuple(one for one in kept.former if reading.ends(one) > now)
    return kept if former == kept.former else msgspec.structs.replace(kept, former=former)


def _has_ended(pair: Pair, now: float) -> bool:
    return reading.ends(pair.certificate) <= now


def _is_due(pair: Pair, now: float, settings: Settings) -> bool:
    return reading.ends(pair.certificate) - now <= settings.serving_life * RENEW_AT


def _has_settled(kept: Kept, now: float, settings: Settings) -> bool:
    if kept.coming is None:
        return False
    made = reading.begins(kept.coming.certificate) + SLACK.total_seconds()
    return now - made >= settings.settling


def _changed(kept: Kept) -> Kept:
    assert kept.coming is not None
    return Kept(kept.coming, kept.serving, None, (*kept.former, kept.authority.certificate))


def _new_authority(now: float, settings: Settings) -> Pair:
    return Authority.make(_date(now), datetime.timedelta(seconds=settings.authority_life)).pair


def _signed(authority: Pair, now: float, settings: Settings, hosts: tuple[str, ...]) -> Pair:
    return Authority(authority).server(hosts, _date(now), datetime.timedelta(seconds=settings.serving_life))


def _date(now: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(now, datetime.UTC)
