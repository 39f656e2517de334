"""Addresses that are not a platform are recognised before the checks."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from agentdouble import Emulator
from doublecheck import Credentials, DoubleCheckError, Platform, Secret, Target
from doublecheck.client import preflight
from doublecheck.errors import AnswerError, NoAnswerError, UnreachableError, WrongAddressError
from tests.doublecheck import bad_servers
from tests.doublecheck.bad_servers import Behaviour, answer

pytestmark = pytest.mark.smoke


SOON_S = 0.3  # for what never answers
LATE_S = 60.0  # for what does, on a machine that does much else besides
HALF = bad_servers.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[")
PAGE = answer(b"<html>welcome</html>", "text/html; charset=utf-8")
SILENT = "accepted the request but did not finish its answer"


def problem(url: str, patience_s: float = LATE_S, **of_target: Any) -> DoubleCheckError:
    """Return the problem that all surfaces share."""
    target = Target(url, offered=frozenset({"application", "sandbox"}), **of_target)
    results = preflight.problems(target, patience_s)
    assert {"application", "control_plane"} >= results.keys()
    return results["application"]


@pytest.mark.parametrize(
    ("behave", "patience_s", "kind", "message"),
    [
        (bad_servers.hang, SOON_S, NoAnswerError, SILENT),
        (bad_servers.drip_body, SOON_S, NoAnswerError, SILENT),
        (HALF, LATE_S, NoAnswerError, SILENT),
        (
            PAGE,
            LATE_S,
            WrongAddressError,
            "/ping answers with a web page, so it is not a platform.",
        ),
    ],
)
def test_answers_unlike_a_platform_are_reported(
    behave: Behaviour, patience_s: float, kind: type[DoubleCheckError], message: str
) -> None:
    """The error names the address."""
    with bad_servers.serving(behave) as server:
        error = problem(server.url, patience_s)

    assert (kind, True) == (type(error), message in str(error)), error
    assert f"{server.url}/ping" in str(error)


def test_a_dead_address_is_reported() -> None:
    assert isinstance(problem("http://127.0.0.1:1"), UnreachableError)


def test_a_redirection_is_reported_but_not_followed() -> None:
    """Following it would leak keys, and the report omits its query."""
    with bad_servers.serving(bad_servers.hang) as elsewhere:
        location = f"Location: {elsewhere.url}/login?token=TOP-SECRET\r\n"
        with bad_servers.serving(answer(b"", status="302 Found", more=location)) as server:
            error = problem(server.url, api_key=Secret("KEY"))

    assert [] == elsewhere.accepted
    assert isinstance(error, WrongAddressError)
    assert f"redirects to {elsewhere.url.rpartition(':')[0]}/login, so it is not" in str(error)
    assert "TOP-SECRET" not in str(error)


def test_no_request_follows_a_redirection() -> None:
    """Signatures and keys are for the platform only."""
    with bad_servers.serving(bad_servers.hang) as elsewhere:
        location = f"Location: {elsewhere.url}/\r\n"
        sent_on = answer(b"", status="307 Temporary Redirect", more=location)
        with bad_servers.serving(sent_on) as server:
            target = Target(
                server.url,
                tool_id="t-1",
                credentials=Credentials("AK", "SK"),
                api_key=Secret("KEY"),
            )
            with Platform(target) as platform:
                for call in (platform.agents.list_apps, lambda: platform.run_code("1")):
                    with pytest.raises(AnswerError, match="307"):
                        call()

    assert [] == elsewhere.accepted


def test_an_untrusted_certificate_is_reported() -> None:
    """The error says how to trust it."""
    with Emulator(tls=True) as double:
        error = problem(double.url)
        trusted = preflight.problems(Target(double.url, ca_file=str(double.ca_file)))

    assert isinstance(error, UnreachableError)
    for way in ("certificate is not trusted", "SSL_CERT_FILE", "ca_file", "--ca-file"):
        assert way in str(error)
    assert {} == trusted


def test_rubbish_is_left_to_the_checks() -> None:
    """It is an answer, although a wrong one."""
    with bad_servers.serving(answer(b"\x00rubbish")) as server:
        assert {} == preflight.problems(Target(server.url), LATE_S)


def test_each_address_has_its_own_problem(platform_server: Target) -> None:
    """The other surfaces can still be checked."""
    target = Target(platform_server.url, mcp="http://127.0.0.1:1")

    results = preflight.problems(target)

    assert {"mcp"} == results.keys()
    assert not preflight.none_left(target, results)


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
