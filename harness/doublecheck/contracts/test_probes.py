"""Checks of the four probes (PRB)."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from doublecheck.client._sync.platform import Platform
from doublecheck.contracts import wire
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.engine import at_once
from doublecheck.contracts.reference import actions
from doublecheck.contracts.sentences import listed
from doublecheck.errors import NoAnswerError
from doublecheck.wire import calls

PROBES = ("/ping", "/health", "/readiness", "/liveness")
TIMES = 6
PING_WITHIN_S = 1.0
AT_ONCE, ROUNDS = 4, 3  # a moment of load on the machine must not count against the platform
LATE_AT_MOST = 2
SHORT = 200  # characters
UNHEALTHY = re.compile(r"\b(error|fail\w*|unhealthy|unavailable|down|exception)\b", re.IGNORECASE)


@clause("PRB-01")
def test_ping_answers_the_ping_functions_string(platform: Platform) -> None:
    """Ping answers every caller, every time, with the ping function's string, if it is known."""
    texts = _probe_often(platform, "/ping")

    if platform.target.reference_app:
        assert {actions.PING} == set(texts), f"/ping answers {listed(sorted(set(texts)))}"


@clause("PRB-01", reference_app=True)
def test_ping_calls_the_ping_function_each_time(platform: Platform) -> None:
    """While an entrypoint waits, the string differs from before and afterwards.

    The entrypoint does not block, and an answer may be late: PRB-06 covers both.
    """
    before = wire.probe(platform, "/ping")
    reply, pings = _pinged_meanwhile(platform, "wait", lambda: wire.probe(platform, "/ping"))
    after = wire.probe(platform, "/ping")

    assert actions.BUSY == reply, "the ping function is not called"
    assert actions.BUSY in pings, "/ping answers the same while an entrypoint waits"
    assert (actions.PING, actions.PING) == (before, after), f"/ping answers {before!r}, {after!r}"


@clause("PRB-02")
def test_health_answers_with_a_status(platform: Platform) -> None:
    """Health answers every caller, every time, with a non-empty status text."""
    _probe_often(platform, "/health")


@clause("PRB-03")
def test_readiness_answers_with_a_result(platform: Platform) -> None:
    """Readiness answers every caller, every time, with a non-empty result."""
    _probe_often(platform, "/readiness")


@clause("PRB-04")
def test_liveness_answers_with_a_result(platform: Platform) -> None:
    """Liveness answers every caller, every time, with a non-empty result."""
    _probe_often(platform, "/liveness")


@clause("PRB-05")
@pytest.mark.parametrize("probe", PROBES)
def test_probes_exist_without_a_ping_function(platform: Platform, probe: str) -> None:
    """An application with only an entrypoint has all four; /ping returns a short healthy status."""
    if platform.target.kind == "live":
        pytest.skip("not observable: needs the reference application without a ping function")
    answer = platform.request("GET", f"/runtimes/{actions.BARE_NAME}{probe}")
    if probe == "/ping" and answer.status_code == 404:
        pytest.skip("not observable: /ping is missing without a ping function (U-PROBE-ERROR)")

    text = wire.probe_text(answer)

    if probe == "/ping":
        assert len(text) <= SHORT, f"/ping answers {len(text)} characters"
        assert not UNHEALTHY.search(text), f"{text!r} is not a healthy status"


@clause("PRB-06")
def test_ping_answers_within_a_second(platform: Platform) -> None:
    """Ping answers in time while the application is idle, including several at once."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        texts = list(pool.map(_ping, [platform] * AT_ONCE * ROUNDS))

    assert texts.count(None) <= LATE_AT_MOST, f"{texts.count(None)} of {len(texts)} are late"


@clause("PRB-06", reference_app=True)
def test_ping_answers_while_the_application_is_busy(platform: Platform) -> None:
    """Ping answers in time while an entrypoint blocks; the ping function itself reports this.

    The entrypoint blocks until the ping function has been called twice.
    """
    late = f"GET /ping timed out twice ({PING_WITHIN_S:g} s each)."
    for _ in range(3):
        reply, pings = _pinged_meanwhile(
            platform, "block", lambda: _ping(platform) or _ping(platform) or pytest.fail(late)
        )
        if actions.BUSY in pings:
            break  # else the counted pings were answered too late

    assert actions.BUSY == reply, "the ping function is not called while an entrypoint blocks"
    assert actions.BUSY in pings, "/ping answers the same while an entrypoint blocks"


@clause("PRB-07")
@pytest.mark.parametrize("probe", PROBES)
def test_all_four_probes_are_registered(platform: Platform, probe: str) -> None:
    """GET returns 200, although only the ping function is registered."""
    assert wire.probe(platform, probe), f"{probe} answers nothing"


def _probe_often(platform: Platform, path: str) -> list[str]:
    """Return what a probe says: several times, after an exception, and to several at once.

    Its form does not depend on what a client prefers.
    """
    kinds = {
        calls.media_type(platform.request("GET", path, headers={"Accept": accepted}))
        for accepted in wire.ACCEPTED
    }
    assert 1 == len(kinds), f"{path} has several forms: {sorted(kinds)}"
    probe = functools.partial(wire.probe, platform, path)
    texts = [probe() for _ in range(TIMES)]
    if platform.target.reference_app:
        wire.invoke(platform, {"do": "fail", "prompt": "on purpose"})
    return [*texts, *at_once([probe] * TIMES), probe()]


def _pinged_meanwhile(platform: Platform, do: str, ping: Callable[[], str]) -> tuple[str, set[str]]:
    """Return the answer of an entrypoint that lasts until it is pinged, and those of the pings."""
    answers = set()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(wire.invoke, platform, {"do": do})
        while not running.done():
            answers.add(ping())
    return wire.returned(running.result()), answers


def _ping(platform: Platform) -> str | None:
    """Return the text of ``/ping``, or None if it takes longer than a second."""
    with contextlib.suppress(NoAnswerError):
        return wire.probe(platform, "/ping", timeout_s=PING_WITHIN_S)
    return None
