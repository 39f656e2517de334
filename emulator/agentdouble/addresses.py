"""Addresses: whether a host is this machine, and which address it shows."""

from __future__ import annotations

import functools
import ipaddress

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def is_loopback(host: str) -> bool:
    """Whether a host, a name or an address, is this machine by what it reads like."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@functools.lru_cache
def address_of(host: str) -> IPAddress:
    """Return the address that a socket shows as ``host``."""
    return plain(ipaddress.ip_address(host.partition("%")[0]))


def plain(address: IPAddress) -> IPAddress:
    """Return the IPv4 address where an IPv6 one only holds that, as on sockets for both."""
    return getattr(address, "ipv4_mapped", None) or address
