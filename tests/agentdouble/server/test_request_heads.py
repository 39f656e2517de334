"""Malformed request heads, sent by hand, are answered with 400."""

from __future__ import annotations

import socket

import pytest

from agentdouble import Emulator


def answer_to(double: Emulator, request: str) -> str:
    """Send a request and return everything received until the connection closes."""
    host, _, port = double.url.partition("://")[2].partition(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(request.encode("latin-1"))
        received = b""
        while piece := connection.recv(65536):
            received += piece
    return received.decode()


def get(double: Emulator, *heads: str, target: str = "/ping", version: str = "1.1") -> str:
    lines = [f"GET {target} HTTP/{version}", *heads, "Connection: close", "", ""]
    return answer_to(double, "\r\n".join(lines))


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        (["Host: localhost", "Host: localhost"], "names 2 hosts: 'localhost', 'localhost'"),
        (["Host: localhost", "Host: evil.example"], "names 2 hosts"),
        ([], "has no Host header"),
        (["Host: someone@localhost"], "'someone@localhost' is not a valid host name"),
        (["Host: localhost:x"], "'localhost:x' is not a valid host name"),
        (["Host: localhost/path"], "'localhost/path' is not a valid host name"),
        (["Host: local host"], "'local host' is not a valid host name"),
        (["Host: localhost:80:80"], "'localhost:80:80' is not a valid host name"),
        (["Host: \xff"], "is not a valid host name"),
    ],
    ids=str,
)
def test_an_invalid_host_is_refused(shared: Emulator, heads: list[str], message: str) -> None:
    """There must be one Host, a name with a port (RFC 9112, 3.2)."""
    answer = get(shared, *heads)

    assert answer.startswith("HTTP/1.1 400 "), answer
    assert '"type":"BadHost"' in answer
    assert message in answer


def test_a_target_that_contradicts_the_host_is_refused(shared: Emulator) -> None:
    """A proxy in front may have checked only the header."""
    answer = get(shared, "Host: localhost", target="http://evil.example/ping")

    assert answer.startswith("HTTP/1.1 400 ")
    assert "names 2 hosts: 'localhost', 'evil.example'" in answer


def test_an_absolute_url_as_target_is_answered(shared: Emulator) -> None:
    """Clients that use the double as a proxy send it."""
    answer = get(shared, "Host: localhost", target="http://localhost/ping")

    assert answer.startswith("HTTP/1.1 200 ")


@pytest.mark.parametrize("target", ["/mcp", "localhost:80"])
def test_connect_requests_are_refused(shared: Emulator, target: str) -> None:
    answer = answer_to(shared, f"CONNECT {target} HTTP/1.1\r\nHost: localhost\r\n\r\n")

    assert answer.startswith("HTTP/1.1 400 ")
