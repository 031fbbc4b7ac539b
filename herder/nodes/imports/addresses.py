"""Where an import may come from. What is asked is the address that is connected to: names and redirects can lead anywhere."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

AddressInfo = tuple[Any, Any, int, str, tuple[Any, ...]]


def is_local(address: str) -> bool:
    """The machine itself, or its link, where clouds keep their secrets."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return True
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour or _nat64(found)
        if inner is not None:
            return is_local(str(inner))
    # fd00:ec2::254 is the metadata service of a large cloud.
    return found.is_loopback or found.is_link_local or found.is_unspecified or found.is_multicast or str(found) == "fd00:ec2::254"


def _nat64(found: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    inside = found in ipaddress.IPv6Network("64:ff9b::/96")
    return ipaddress.IPv4Address(int(found) & 0xFFFFFFFF) if inside else None


class Gate:
    """Makes the sockets of a client; remembers whom it did not let through, because the client wraps what is raised here."""

    def __init__(self, allow_local: bool) -> None:
        self._allow_local = allow_local
        self.refused = ""

    def __call__(self, info: AddressInfo) -> socket.socket:
        family, kind, protocol, _, address = info
        if not self._allow_local and is_local(str(address[0])):
            self.refused = str(address[0])
            raise OSError(f"{self.refused} is a local address")
        return socket.socket(family, kind, protocol)
