from __future__ import annotations

import socket

import pytest

from doublecheck import Platform, Target
from tests.doublecheck import bad_servers


@pytest.mark.parametrize(
    ("no_proxy", "through_proxy"), [("", True), ("other.invalid", True), (".invalid", False)]
)
def test_a_live_platform_is_reached_through_the_proxy(
    monkeypatch: pytest.MonkeyPatch, no_proxy: str, through_proxy: bool
) -> None:
    """The proxy gets its credentials, and NO_PROXY is honoured."""
    heads: list[bytes] = []

    def proxy(connection: socket.socket) -> None:
        heads.append(connection.recv(65536, socket.MSG_PEEK))
        bad_servers.answer(b'{"status": "pong!"}')(connection)

    with bad_servers.serving(proxy) as server:
        for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
            monkeypatch.delenv(name.upper(), raising=False)
        monkeypatch.setenv("HTTP_PROXY", server.url.replace("//", "//ann:secret@"))
        monkeypatch.setenv("NO_PROXY", no_proxy)

        with Platform(Target("http://platform.invalid", kind="live"), timeout_s=20) as platform:
            if through_proxy:
                assert "pong!" == platform.ping()
            else:
                with pytest.raises(Exception, match=r"platform\.invalid"):
                    platform.ping()

    assert through_proxy == bool(heads)
    assert all(head.startswith(b"GET http://platform.invalid/ping HTTP/1.1\r\n") for head in heads)
    assert all(b"\r\nProxy-Authorization: Basic " in head for head in heads)


def test_a_double_is_reached_without_a_proxy(
    monkeypatch: pytest.MonkeyPatch, platform_server: Target
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")

    with Platform(platform_server) as platform:
        assert "pong!" == platform.ping()
