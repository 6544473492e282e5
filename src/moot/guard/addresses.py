"""Classification of public network addresses, by an explicit table: `ipaddress.is_global` accepts a NAT64 form of 127.0.0.1.

The blocks are those of the IANA special-purpose registries (https://www.iana.org/assignments/iana-ipv4-special-registry and -ipv6-).
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

__all__ = ["Address", "Network", "literal", "refusal", "unwrapped"]

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

_BLOCKS: dict[str, str] = {
    "0.0.0.0/8": "this host",
    "10.0.0.0/8": "a private network",
    "100.64.0.0/10": "a provider's internal network",
    "127.0.0.0/8": "this machine",
    "168.63.129.16/32": "an internal cloud service",
    "169.254.0.0/16": "link-local or cloud metadata",
    "172.16.0.0/12": "a private network",
    "192.0.0.0/24": "reserved for protocols",
    "192.0.2.0/24": "for documentation",
    "192.31.196.0/24": "reserved for protocols",
    "192.52.193.0/24": "reserved for protocols",
    "192.88.99.0/24": "reserved for protocols",
    "192.168.0.0/16": "a private network",
    "192.175.48.0/24": "reserved for protocols",
    "198.18.0.0/15": "for benchmarks",
    "198.51.100.0/24": "for documentation",
    "203.0.113.0/24": "for documentation",
    "224.0.0.0/4": "multicast",
    "240.0.0.0/4": "reserved",
    "2001::/23": "reserved for protocols",
    "2001:db8::/32": "for documentation",
    "2620:4f:8000::/48": "reserved for protocols",
    "3fff::/20": "for documentation",
}
_NOT_PUBLIC = [(ip_network(block), why) for block, why in _BLOCKS.items()]
_UNICAST = IPv6Network("2000::/3")
"""All IPv6 addresses allocated to the public network. Addresses outside of it need no row above."""

_NAT64 = IPv6Network("64:ff9b::/96")
_SIX_TO_FOUR = IPv6Network("2002::/16")
_TEREDO = IPv6Network("2001::/32")
_ISATAP = (0x00005EFE, 0x02005EFE)
_NUMBERS = re.compile(r"[0-9a-fx]+(\.[0-9a-fx]*)*", re.IGNORECASE)


def literal(host: str) -> Address | None:
    """Return the address that a host spells in numbers, in all forms that the system accepts (`127.1`, `0x7f.1`). None for a name."""
    try:
        return ip_address(host)
    except ValueError:
        pass
    if not _NUMBERS.fullmatch(host) or len(host) > 64:
        return None
    try:
        return IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


def refusal(address: Address, allow: Sequence[Network] = ()) -> str:
    """Return why an address must not be accessed, or an empty string if it is public or allowed by the user."""
    for one in unwrapped(address):
        if any(one in network for network in allow if network.version == one.version):
            continue
        why = _why(one)
        if why:
            return f"{one} is {why}" if one == address else f"{address} stands for {one}, which is {why}"
    return ""


def unwrapped(address: Address) -> tuple[Address, ...]:
    """Return the addresses that packets to this one may reach: embedded IPv4 addresses, or else itself."""
    if isinstance(address, IPv4Address):
        return (address,)
    inner = tuple(_inner(address))
    return inner or (address,)


def _inner(address: IPv6Address) -> Iterator[Address]:
    number = int(address)
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    elif address in _NAT64:
        yield IPv4Address(number & 0xFFFFFFFF)
    elif address in _SIX_TO_FOUR:
        yield IPv4Address(number >> 80 & 0xFFFFFFFF)
    elif address in _TEREDO:
        yield IPv4Address(number >> 64 & 0xFFFFFFFF)
        yield IPv4Address(~number & 0xFFFFFFFF)
    elif number >> 32 & 0xFFFFFFFF in _ISATAP:
        yield address
        yield IPv4Address(number & 0xFFFFFFFF)


def _why(address: Address) -> str:
    if isinstance(address, IPv6Address) and address not in _UNICAST:
        return "not on the public network"
    return next((why for block, why in _NOT_PUBLIC if block.version == address.version and address in block), "")
