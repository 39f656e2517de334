"""Checks of the four probes (PRB)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from doublecheck.client._sync.platform import Platform
from doublecheck.contracts import wire
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.reference import actions
from doublecheck.wire import application

PROBES = ("/ping", "/health", "/readiness", "/liveness")


@clause("PRB-01")
def test_ping_answers_the_ping_functions_string(platform: Platform) -> None:
    """The answer contains the string; the reference application reports which one it is."""
    text = platform.ping()

    assert text.strip(), "the ping function's string is empty"
    if platform.target.reference_app:
        assert actions.PING == text


@clause("PRB-02")
def test_health_answers_with_a_status(platform: Platform) -> None:
    """The health status is a text that is not empty."""
    assert platform.health().strip()


@clause("PRB-03")
def test_readiness_answers_with_a_result(platform: Platform) -> None:
    """The readiness result is a text that is not empty."""
    assert platform.readiness().strip()


@clause("PRB-04")
def test_liveness_answers_with_a_result(platform: Platform) -> None:
    """The liveness result is a text that is not empty."""
    assert platform.liveness().strip()


@clause("PRB-05")
def test_probes_exist_without_a_ping_function(platform: Platform) -> None:
    """An application with only an entrypoint has all four, and a short text for ping."""
    if platform.target.kind == "live":
        pytest.skip("not observable: needs the reference application without a ping function")
    base = f"/runtimes/{actions.BARE_NAME}"

    answers = {probe: platform.request("GET", base + probe) for probe in PROBES}

    assert dict.fromkeys(PROBES, 200) == {p: answer.status_code for p, answer in answers.items()}
    assert application.read_probe(answers["/ping"]).strip()


@clause("PRB-06")
def test_ping_answers_within_a_second(platform: Platform) -> None:
    """Ping answers in time while the application is idle."""
    assert wire.ping(platform)


@clause("PRB-06", reference_app=True)
def test_ping_answers_while_the_application_is_busy(platform: Platform) -> None:
    """Ping answers in time while an entrypoint blocks; the ping function itself reports that.

    The entrypoint blocks until the ping function has been called twice.
    """
    for _ in range(wire.PINGS):
        said, heard = _pinged_while_it_blocks(platform)
        if actions.BUSY in heard:
            break  # otherwise the counted pings were answered too late

    assert (actions.BUSY, True) == (said, actions.BUSY in heard)


@clause("PRB-07")
def test_all_four_probes_are_registered(platform: Platform) -> None:
    """Each of them answers GET with 200."""
    statuses = {probe: platform.request("GET", probe).status_code for probe in PROBES}

    assert dict.fromkeys(PROBES, 200) == statuses


def _pinged_while_it_blocks(platform: Platform) -> tuple[str, set[str]]:
    """Return the answer of a blocking entrypoint, and the answers of pings meanwhile."""
    heard = set()
    with ThreadPoolExecutor(1) as pool:
        blocking = pool.submit(wire.invoke, platform, {"do": "block"})
        while not blocking.done():
            heard.add(wire.ping(platform))
    return wire.returned(blocking.result()), heard
