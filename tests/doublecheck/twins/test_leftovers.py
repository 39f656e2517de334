"""What a twin does to a live platform, and what it leaves there: nothing."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import doublecheck
from doublecheck import Platform, Target
from doublecheck.client.doubles import serving_double
from doublecheck.comparing.differences import Class
from doublecheck.exit_codes import ExitCode
from doublecheck.twins import html_page, scripts
from doublecheck.twins.comparison import Comparison
from doublecheck.twins.leftovers import Leftovers
from tests.doublecheck.twins.liar import serving_liar

READS = ("initialize", "notifications/initialized", "tools/list")
SCRIPT = """
[[step]]
code = "print(1)"
session_id = "script"

[[step]]
path = "/apps/echo/users/u1/sessions"
json = {}

[[step]]
path = "/apps/echo/users/u1/sessions/mine"
json = {}
"""


@pytest.fixture(scope="module")
def ours() -> Iterator[Target]:
    """A double that serves the coder, which runs code in a session for everybody who asks it."""
    with serving_double() as target:
        yield target


@pytest.fixture(scope="module")
def theirs() -> Iterator[Target]:
    with serving_double() as target:
        yield target


@pytest.fixture
def double(ours: Target) -> Iterator[Platform]:
    with Platform(ours) as platform:
        platform.reset()
        yield platform


@pytest.fixture
def behind(theirs: Target) -> Iterator[Platform]:
    """What is behind the live platform, to look at."""
    with Platform(theirs) as platform:
        platform.reset()
        yield platform


@pytest.fixture
def live(behind: Platform) -> Iterator[Platform]:
    with Platform(dataclasses.replace(behind.target, kind="live", name="live")) as platform:
        yield platform


def names(platform: Platform) -> list[str]:
    return sorted(one.user_session_id for one in platform.sessions())


def api_sessions(platform: Platform) -> list[str]:
    return [one.id for one in platform.list_sessions("echo", user_id="u1")]


def test_a_live_platform_is_only_read_unless_more_is_allowed(
    double: Platform, live: Platform, behind: Platform
) -> None:
    """Each part that is left out says what it would do, and which option allows it."""
    comparison = doublecheck.twin(double, live)

    posted = [one for one in behind.journal() if one.method != "GET"]
    bodies = [json.loads(one.request_body) for one in posted if "jsonrpc" in one.request_body]
    assert {"/mcp", "/"} == {one.url.partition("?")[0].removeprefix(behind.url) for one in posted}
    assert {one["method"] for one in bodies} <= set(READS)
    assert {401} == {one.status for one in posted if "Action=" in one.url}
    assert ([], Class.SAME) == (names(behind), comparison.cls)
    assert {
        "invocations": "it invokes an agent",
        "refusals of runs": "it asks for runs",
        "sessions and runs": "it creates something",
        "code in the sandbox": "it runs code",
        "a tool of MCP": "it calls tools",
        "A2A": "it sends messages to an agent",
    } == {
        part.name: part.skipped.partition(" on the live platform, which needs --allow-writes")[0]
        for part in comparison.parts
        if part.skipped
    }


def test_sessions_that_a_twin_makes_are_removed_and_others_stay(
    double: Platform, live: Platform, behind: Platform
) -> None:
    """Also those that an agent makes when it is asked."""
    for platform in (double, behind):
        platform.run_code("1", session_id="mine")
        platform.create_session("echo", user_id="u1", session_id="mine")

    comparison = doublecheck.twin(double, live, allow_writes=True)

    assert ExitCode.PASSED is comparison.exit_code
    assert [] == [part.skipped for part in comparison.parts if part.skipped]
    for platform in (double, behind):
        assert ["agent_anonymous_mine"] == names(platform)
        assert ["mine"] == api_sessions(platform)


def test_what_a_script_makes_is_removed(
    double: Platform, live: Platform, behind: Platform, tmp_path: Path
) -> None:
    """But for a session of the API server that it names itself: it may be there already."""
    script = tmp_path / "script.toml"
    script.write_text(SCRIPT)

    doublecheck.twin(double, live, script=script, allow_writes=True)

    assert ([], ["mine"]) == (names(behind), api_sessions(behind))


def test_a_session_that_cannot_be_removed_is_told(double: Platform, theirs: Target) -> None:
    """By its name and its platform."""
    with serving_liar(theirs.url) as liar:
        surfaces = dict.fromkeys(("url", "control_plane"), liar.url)
        with Platform(dataclasses.replace(theirs, **surfaces)) as platform:
            leftovers = Leftovers(platform)
            platform.run_code("1", session_id="kept")
            leftovers.note(platform.exchanges[:])
            with liar.telling(lambda name, _n, _one: 403 if name == "DeleteSession" else None):
                left = leftovers.remove()

    assert ("agent_anonymous_kept",) == left


def test_nothing_compared_is_no_verdict(double: Platform, live: Platform, tmp_path: Path) -> None:
    """Neither if everything is left out, nor if nobody answers."""
    script = tmp_path / "script.toml"
    script.write_text(SCRIPT)

    comparison = doublecheck.twin(double, live, script=script)

    assert (ExitCode.NOTHING_CHECKED, 3) == (comparison.exit_code, len(comparison.parts))
    assert "<Comparison nothing compared: 0 calls>" == repr(comparison)
    page = html_page.page(comparison)
    assert ("nothing compared" in page, ">same<" in page) == (True, False)
    assert ExitCode.NOTHING_CHECKED is Comparison("http://a", "http://b", ()).exit_code
    assert all(topic.writes for topic in scripts.read(script))
