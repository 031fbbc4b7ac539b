"""A certificate authority of our own, and what it signs. The time is given by those who have a clock of their own."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from herder.pki.files import write_private

AUTHORITY_LIFE = datetime.timedelta(days=3650)
LEAF_LIFE = datetime.timedelta(days=365)
# For machines whose clocks disagree a little.
SLACK = datetime.timedelta(hours=1)


class Pair(NamedTuple):
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes


class Authority:
    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self._certificate = x509.load_pem_x509_certificate(pair.certificate)
        key = serialization.load_pem_private_key(pair.key, None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("the authority's key is none on an elliptic curve, and so not one that was made here")
        self._key = key

    @classmethod
    def make(cls, now: datetime.datetime | None = None, life: datetime.timedelta = AUTHORITY_LIFE) -> Authority:
        return cls(_make_authority(now, life))

    @classmethod
    def open(cls, folder: Path) -> Authority:
        """The one of this data directory; made where there is none yet."""
        certificate, key = folder / "ca.crt", folder / "ca.key"
        if not (certificate.exists() and key.exists()):
            pair = cls.make().pair
            write_private(key, pair.key)
            write_private(certificate, pair.certificate)
        return cls(Pair(certificate.read_bytes(), key.read_bytes()))

    @property
    def until(self) -> datetime.datetime:
        return self._certificate.not_valid_after_utc

    def client(
        self,
        name: str,
        groups: tuple[str, ...],
        days: int = LEAF_LIFE.days,
        hosts: tuple[str, ...] = (),
        life: datetime.timedelta | None = None,
    ) -> Pair:
        """With hosts it may also be shown to those who come there. `life` is for less than days."""
        subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject.append(x509.NameAttribute(NameOID.COMMON_NAME, name))
        usages = (ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH) if hosts else (ExtendedKeyUsageOID.CLIENT_AUTH,)
        alternatives = x509.SubjectAlternativeName([_alternative(host) for host in hosts]) if hosts else None
        return self._sign(x509.Name(subject), usages, alternatives, None, life or datetime.timedelta(days=days))

    def server(
        self,
        hosts: tuple[str, ...],
        now: datetime.datetime | None = None,
        life: datetime.timedelta = LEAF_LIFE,
        name: str = "herder",
    ) -> Pair:
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        alternatives = x509.SubjectAlternativeName([_alternative(host) for host in hosts])
        return self._sign(subject, (ExtendedKeyUsageOID.SERVER_AUTH,), alternatives, now, life)

    def _sign(
        self,
        subject: x509.Name,
        usages: tuple[x509.ObjectIdentifier, ...],
        alternatives: x509.SubjectAlternativeName | None,
        now: datetime.datetime | None,
        life: datetime.timedelta,
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(subject, self._certificate.subject, key, now, life)
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        if alternatives is not None:
            builder = builder.add_extension(alternatives, critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return _pair(builder.add_extension(issuer, critical=False).sign(self._key, hashes.SHA256()), key)


def _make_authority(now: datetime.datetime | None, life: datetime.timedelta) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "herder-ca")])
    builder = _builder(name, name, key, now, life)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
    builder = builder.add_extension(usage, critical=True)
    subject = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return _pair(builder.add_extension(subject, critical=False).sign(key, hashes.SHA256()), key)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime.datetime | None,
    life: datetime.timedelta,
) -> x509.CertificateBuilder:
    now = now or datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SLACK)
        .not_valid_after(now + life)
    )


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Pair(certificate.public_bytes(serialization.Encoding.PEM), private)


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
