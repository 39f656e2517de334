from __future__ import annotations

import socket

import pytest

from agentdouble.errors import AddressInUseError
from agentdouble.server.sockets import address_of, open_socket


def test_answers_are_sent_at_once() -> None:
    """Without TCP_NODELAY each request would take 44 ms more."""
    listener = open_socket("127.0.0.1", 0)

    assert socket.IPPROTO_TCP == listener.proto
    listener.close()


def test_a_port_in_use_suggests_the_next_one() -> None:
    """The error has the host and the port."""
    first = open_socket("127.0.0.1", 0)
    port = first.getsockname()[1]

    with pytest.raises(
        AddressInUseError, match=f"Port {port} on 127.0.0.1 .*--port {port + 1}"
    ) as c:
        open_socket("127.0.0.1", port)

    first.close()
    assert ("127.0.0.1", port) == (c.value.host, c.value.port)


@pytest.mark.parametrize(
    ("bound", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:{}"),
        ("0.0.0.0", "http://127.0.0.1:{}"),
        ("::1", "http://[::1]:{}"),
        ("::", "http://[::1]:{}"),
    ],
)
def test_the_address_reaches_the_socket(bound: str, url: str) -> None:
    """Wildcard addresses are shown as loopback, IPv6 in brackets."""
    if ":" in bound and not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    listener = open_socket(bound, 0)

    assert url.format(listener.getsockname()[1]) == address_of(listener)
    listener.close()
