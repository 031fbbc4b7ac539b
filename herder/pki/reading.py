"""Reading certificates: until when, for whom, by whom. Raises ValueError where something is none."""

from __future__ import annotations

import re

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----\n?", re.DOTALL)

_USAGES = {ExtendedKeyUsageOID.CLIENT_AUTH: "client auth", ExtendedKeyUsageOID.SERVER_AUTH: "server auth"}


def split(bundle: bytes) -> list[bytes]:
    """The certificates of a bundle, each by itself."""
    return [found.group().rstrip(b"\n") + b"\n" for found in _CERTIFICATE.finditer(bundle)]


def begins(certificate: bytes) -> float:
    return _load(certificate).not_valid_before_utc.timestamp()


def ends(certificate: bytes) -> float:
    """Seconds since the epoch."""
    return _load(certificate).not_valid_after_utc.timestamp()


def hosts(certificate: bytes) -> tuple[str, ...]:
    """The names and addresses that a server may show it for."""
    try:
        names = _load(certificate).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return (*names.get_values_for_type(x509.DNSName), *(str(one) for one in names.get_values_for_type(x509.IPAddress)))


def is_signed_by(certificate: bytes, authority: bytes) -> bool:
    try:
        _load(certificate).verify_directly_issued_by(_load(authority))
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def chains_to(bundle: bytes, authorities: bytes) -> bool:
    """Whether the first certificate of the bundle was signed by one of the authorities, or by the next in the bundle that was."""
    known = split(authorities)
    for place, certificate in enumerate(certificates := split(bundle)):
        if any(is_signed_by(certificate, one) for one in known):
            return True
        if place + 1 == len(certificates) or not is_signed_by(certificate, certificates[place + 1]):
            return False
    return False


def usages(certificate: bytes) -> frozenset[str]:
    """What for, in Kubernetes' words: client auth, server auth. One that does not say is for both."""
    try:
        found = set(_load(certificate).extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
    except x509.ExtensionNotFound:
        return frozenset(_USAGES.values())
    return frozenset(word for oid, word in _USAGES.items() if oid in found or ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE in found)


def fits(certificate: bytes, key: bytes) -> bool:
    """Whether the key is that of the certificate."""
    form = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    public = serialization.load_pem_private_key(key, None).public_key()
    return public.public_bytes(*form) == _load(certificate).public_key().public_bytes(*form)


def _load(certificate: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(certificate)
