"""What the agents of two nodes show each other: certificates of the cluster's authority that are those of nodes."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Protocol

import msgspec
from cryptography import x509
from cryptography.x509.oid import NameOID

from herder.pki import reading

PREFIX = "system:node:"
GROUP = "system:nodes"
CLIENT = "client auth"
SERVER = "server auth"


class Identity(msgspec.Struct, frozen=True):
    """Files: the node's certificate and key, and the authorities of its cluster."""

    certificate: Path
    key: Path
    authority: Path


class Expected(msgspec.Struct, frozen=True):
    """Of a node's certificate: whose it is, and by whom it is signed. `known_by` says where those authorities are from."""

    node: str
    authority: bytes
    known_by: str


class Lacking(Exception):
    """There is nothing that could be shown, for the time being. Says why, and what would help."""


class Papers(Protocol):
    """Looked at for each connection: certificates are renewed while we run."""

    def client(self) -> Identity:
        """As those see us that we go to. Raises `Lacking`."""
        ...

    def server(self) -> Identity:
        """As those see us that come to us. Raises `Lacking`."""
        ...


def node_in(certificate: x509.Certificate | None) -> str:
    """Empty for everybody who is no node."""
    if certificate is None:
        return ""
    groups = [one.value for one in certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    names = [str(one.value) for one in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    is_node = GROUP in groups and len(names) == 1 and names[0].startswith(PREFIX)
    return names[0].removeprefix(PREFIX) if is_node else ""


def problem_with(certificate: bytes, expected: Expected, usages: tuple[str, ...], now: float) -> str:
    """Why others would not take it for that node's; empty where they would."""
    try:
        found = x509.load_pem_x509_certificate(certificate)
    except ValueError:
        return "holds no certificate in PEM"
    if node_in(found) != expected.node:
        said = found.subject.rfc4514_string() or "nobody"
        return f"is the certificate of {said}, and should be that of CN={PREFIX}{expected.node},O={GROUP}"
    if problem := _use_problem(certificate, expected.node, usages):
        return problem
    if not reading.begins(certificate) <= now <= reading.ends(certificate):
        return f"is good from {_day(reading.begins(certificate))} to {_day(reading.ends(certificate))}, and not now"
    return "" if reading.chains_to(certificate, expected.authority) else f"was not signed by an authority of {expected.known_by}"


def _use_problem(certificate: bytes, node: str, usages: tuple[str, ...]) -> str:
    allowed = reading.usages(certificate)
    if missing := [one for one in usages if one not in allowed]:
        return f"may not be used for {' and '.join(missing)}; it needs the extended key usages {' and '.join(usages)}"
    if SERVER in usages and node not in (hosts := reading.hosts(certificate)):
        return f"is good for {', '.join(hosts) or 'no name'}, and should be for DNS:{node}, by which other nodes look for it"
    return ""


def _day(moment: float) -> str:
    return datetime.datetime.fromtimestamp(moment, datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
