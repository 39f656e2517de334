"""Functions on IP addresses: loopback, the address of a host, the IPv4 address in an IPv6 one."""

from __future__ import annotations

import functools
import ipaddress

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def is_loopback(host: str) -> bool:
    """Return whether a host, a name or an address, is a loopback name of this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@functools.lru_cache
def address_of(host: str) -> IPAddress:
    """Return the IP address of ``host``, as a socket reports it, without the zone."""
    return plain(ipaddress.ip_address(host.partition("%")[0]))


def plain(address: IPAddress) -> IPAddress:
    """Return the IPv4 address if an IPv6 address only contains one, as on dual-stack sockets."""
    return getattr(address, "ipv4_mapped", None) or address
