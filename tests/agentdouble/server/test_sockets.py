from __future__ import annotations

import socket

import pytest

from agentdouble.errors import AddressInUseError
from agentdouble.server.sockets import address_of, open_socket


def test_answers_are_sent_at_once() -> None:
    """A socket without TCP_NODELAY would cost 44 ms a request."""
    listener = open_socket("127.0.0.1", 0)

    assert socket.IPPROTO_TCP == listener.proto
    listener.close()


def test_a_port_in_use_names_the_next_one_to_try() -> None:
    """The error has host and port, and says what to do."""
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
def test_the_address_is_one_that_reaches_the_socket(bound: str, url: str) -> None:
    """Every interface is shown as loopback, IPv6 stands in brackets."""
    if ":" in bound and not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    listener = open_socket(bound, 0)

    assert url.format(listener.getsockname()[1]) == address_of(listener)
    listener.close()
