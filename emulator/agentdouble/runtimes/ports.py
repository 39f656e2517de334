"""Ports for instances, taken from below the range that the system gives to connections.

A connection therefore cannot take the port of an instance between its choice and its use.
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
_random = random.SystemRandom()  # not seeded, so that processes choose different ports


@contextmanager
def free_port() -> Iterator[int]:
    """Yield a free port of this machine; no other instance gets it inside the block.

    An instance binds the port some time later. If it were a port that the system gives to
    connections, a connection might have it by then.
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
    """Return ports below the range that this system gives to connections and to port 0."""
    try:
        first = int(_GIVEN_FROM.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        first = _USUAL
    end = first if _LOWEST + _TRIES <= first <= _USUAL else _USUAL
    return range(max(_LOWEST, end - _COUNT), end)


@contextmanager
def _held(port: int) -> Iterator[bool]:
    """Reserve a port against the instances of every double; yield whether that succeeded.

    The reservation is the name of an abstract socket, which disappears with its process. Only Linux
    has such names; on other systems the random choice keeps the ports apart.
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
