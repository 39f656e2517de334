"""Ports for instances: of those from which no outgoing connection takes its own.

Ports of instances lie below those that connections are given, so that none is taken between its
choice and its use.
"""

from __future__ import annotations

import random
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HOST = "127.0.0.1"
_GIVEN_FROM = Path("/proc/sys/net/ipv4/ip_local_port_range")
_USUAL, _LOWEST, _COUNT = 32_768, 10_000, 12_768
_TRIES = 100
_random = random.SystemRandom()  # processes that are seeded alike would all choose the same


@contextmanager
def free_port() -> Iterator[int]:
    """Yield a port of this machine that nobody listens on; no other instance is given it inside.

    An instance binds it some time later, and a port that a connection can be given might be one's
    by then.
    """
    for port in _random.sample(_below_those_given(), _TRIES):
        with _held(port) as ours:
            if ours and _is_free(port):
                yield port
                return
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        found: int = probe.getsockname()[1]
    yield found


def _below_those_given() -> range:
    """Return ports below what this system gives to connections, and to port 0."""
    try:
        first = int(_GIVEN_FROM.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        first = _USUAL
    end = first if _LOWEST + _TRIES <= first <= _USUAL else _USUAL
    return range(max(_LOWEST, end - _COUNT), end)


@contextmanager
def _held(port: int) -> Iterator[bool]:
    """Keep a port from the instances of every double while one starts; yield whether that is so.

    By a name that ends with its holder. Only Linux has such; elsewhere chance keeps them apart.
    """
    if sys.platform != "linux":
        yield True
        return
    with socket.socket(socket.AF_UNIX) as name:
        try:
            name.bind(f"\0agentdouble-port-{port}")
        except OSError:
            yield False
        else:
            yield True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
