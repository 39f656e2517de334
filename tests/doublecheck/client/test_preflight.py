"""What is no platform, or none that answers, is told from one at once."""

from __future__ import annotations

from typing import Any

import pytest

from agentdouble import Emulator
from doublecheck import Credentials, DoubleCheckError, Platform, Secret, Target
from doublecheck.client import preflight
from doublecheck.errors import (
    AnswerError,
    NoAnswerError,
    UnreachableError,
    WrongAddressError,
)
from tests.doublecheck import bad_servers
from tests.doublecheck.bad_servers import Behaviour, answer

pytestmark = pytest.mark.smoke

SOON_S = 0.3  # for what never answers
LATE_S = 60.0  # for what does, on a machine that does much else besides
HALF = bad_servers.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[")
PAGE = answer(b"<html>welcome</html>", "text/html; charset=utf-8")
SILENT = "accepted the request but did not finish its answer"


def problem(url: str, patience_s: float = LATE_S, **of_target: Any) -> DoubleCheckError:
    """Return the one problem that all surfaces have in common."""
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
def test_what_does_not_answer_like_a_platform_is_told(
    behave: Behaviour, patience_s: float, kind: type[DoubleCheckError], message: str
) -> None:
    """By its kind, with the address."""
    with bad_servers.serving(behave) as server:
        error = problem(server.url, patience_s)

    assert (kind, True) == (type(error), message in str(error)), error
    assert f"{server.url}/ping" in str(error)


def test_a_dead_address_is_told() -> None:
    """Nobody listens there."""
    assert isinstance(problem("http://127.0.0.1:1"), UnreachableError)


def test_a_redirection_is_told_and_not_followed() -> None:
    """Keys would go along; nor is what its query holds repeated."""
    with bad_servers.serving(bad_servers.hang) as elsewhere:
        location = f"Location: {elsewhere.url}/login?token=TOP-SECRET\r\n"
        with bad_servers.serving(answer(b"", status="302 Found", more=location)) as server:
            error = problem(server.url, api_key=Secret("KEY"))

    assert [] == elsewhere.accepted
    assert isinstance(error, WrongAddressError)
    assert f"redirects to {elsewhere.url.rpartition(':')[0]}/login, so it is not" in str(error)
    assert "TOP-SECRET" not in str(error)


def test_no_request_follows_a_redirection() -> None:
    """The signature or the key in it is for the platform alone."""
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
                for call in (platform.list_apps, lambda: platform.run_code("1")):
                    with pytest.raises(AnswerError, match="307"):
                        call()

    assert [] == elsewhere.accepted


def test_a_certificate_that_is_not_trusted_is_told() -> None:
    """With what makes it trusted; once it is, nothing is in the way."""
    with Emulator(tls=True) as double:
        error = problem(double.url)
        trusted = preflight.problems(Target(double.url, ca_file=str(double.ca_file)))

    assert isinstance(error, UnreachableError)
    for way in ("certificate is not trusted", "SSL_CERT_FILE", "ca_file", "--ca-file"):
        assert way in str(error)
    assert {} == trusted


def test_rubbish_is_for_the_checks_to_judge() -> None:
    """It is an answer; that it is a wrong one is the contract's matter."""
    with bad_servers.serving(answer(b"\x00rubbish")) as server:
        assert {} == preflight.problems(Target(server.url), LATE_S)


def test_each_address_has_its_own_problem(platform_server: Target) -> None:
    """Where the others answer, they can be checked."""
    target = Target(platform_server.url, mcp="http://127.0.0.1:1")

    results = preflight.problems(target)

    assert {"mcp"} == results.keys()
    assert not preflight.none_left(target, results)
