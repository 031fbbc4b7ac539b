"""Addresses: IP, CIDR, URL."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qs, urlsplit

from herder.server.schema.cel.errors import CelError
from herder.server.schema.cel.functions import function
from herder.server.schema.cel.values import register_type
from herder.server.schema.formats import string_format

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Cidr:
    """An address with the length of its prefix; bits beyond the prefix are kept."""

    address: Address
    bits: int

    @property
    def network(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        return ipaddress.ip_network(f"{self.address}/{self.bits}", strict=False)

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"


register_type(ipaddress.IPv4Address, "net.IP")
register_type(ipaddress.IPv6Address, "net.IP")
register_type(Cidr, "net.CIDR")
register_type(SplitResult, "kubernetes.URL")


@function("ip(string) ip")
def parse_ip(text: str) -> Address:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise CelError(f"IP Address '{text}' parse error during conversion from string") from None
    if "%" in text or (isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped):
        raise CelError(f"IP Address '{text}' with a zone, or IPv4-mapped IPv6, is not allowed")
    return address


@function("isIP(string) bool")
def _is_ip(text: str) -> bool:
    try:
        parse_ip(text)
    except CelError:
        return False
    return True


@function("ip::isCanonical(string) bool")
def _is_canonical(text: str) -> bool:
    return str(parse_ip(text)) == text


@function("string(ip) string", "string(cidr) string")
def _text(value: Address | Cidr) -> str:
    return str(value)


@function("ip.family() int")
def _family(address: Address) -> int:
    return address.version


@function("ip.isUnspecified() bool")
def _is_unspecified(address: Address) -> bool:
    return address.is_unspecified


@function("ip.isLoopback() bool")
def _is_loopback(address: Address) -> bool:
    return address.is_loopback


@function("ip.isLinkLocalMulticast() bool")
def _is_link_local_multicast(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return address in ipaddress.ip_network("224.0.0.0/24")
    return address.is_multicast and address.packed[1] & 0x0F == 2


@function("ip.isLinkLocalUnicast() bool")
def _is_link_local_unicast(address: Address) -> bool:
    return address.is_link_local


@function("ip.isGlobalUnicast() bool")
def _is_global_unicast(address: Address) -> bool:
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not special and str(address) != "255.255.255.255"


@function("cidr(string) cidr")
def parse_cidr(text: str) -> Cidr:
    address, _, bits = text.partition("/")
    check = string_format("cidr")
    if check is None or not check(text):
        raise CelError(f"network address parse error during conversion from string: invalid CIDR '{text}'")
    return Cidr(parse_ip(address), int(bits))


@function("isCIDR(string) bool")
def _is_cidr(text: str) -> bool:
    try:
        parse_cidr(text)
    except CelError:
        return False
    return True


@function("cidr.containsIP(ip) bool", "cidr.containsIP(string) bool")
def _contains_ip(cidr: Cidr, address: Address | str) -> bool:
    return (parse_ip(address) if isinstance(address, str) else address) in cidr.network


@function("cidr.containsCIDR(cidr) bool", "cidr.containsCIDR(string) bool")
def _contains_cidr(cidr: Cidr, other: Cidr | str) -> bool:
    inner = parse_cidr(other) if isinstance(other, str) else other
    return (
        inner.address.version == cidr.address.version and inner.bits >= cidr.bits and inner.network.network_address in cidr.network
    )


@function("cidr.ip() ip")
def _ip_of(cidr: Cidr) -> Address:
    return cidr.address


@function("cidr.prefixLength() int")
def _prefix_length(cidr: Cidr) -> int:
    return cidr.bits


@function("cidr.masked() cidr")
def _masked(cidr: Cidr) -> Cidr:
    return Cidr(cidr.network.network_address, cidr.bits)


@function("url(string) url")
def parse_url(text: str) -> SplitResult:
    check = string_format("uri")
    if check is None or not check(text):
        raise CelError(f"URL parse error during conversion from string: invalid URI '{text}'")
    return urlsplit(text)


@function("isURL(string) bool")
def _is_url(text: str) -> bool:
    try:
        parse_url(text)
    except CelError:
        return False
    return True


@function("url.getScheme() string")
def _scheme(url: SplitResult) -> str:
    return url.scheme


@function("url.getHost() string")
def _host(url: SplitResult) -> str:
    return url.netloc.rpartition("@")[2]


@function("url.getHostname() string")
def _hostname(url: SplitResult) -> str:
    return _host(url).partition("]")[0].lstrip("[") if "[" in url.netloc else _host(url).partition(":")[0]


@function("url.getPort() string")
def _port(url: SplitResult) -> str:
    return "" if url.port is None else str(url.port)


@function("url.getEscapedPath() string")
def _path(url: SplitResult) -> str:
    return url.path


@function("url.getQuery() map(string, list(string))")
def _query(url: SplitResult) -> dict[str, list[str]]:
    return parse_qs(url.query, keep_blank_values=True)
