"""twin() and ``doublecheck twin``: platforms, permissions, output and exit codes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import doublecheck
from doublecheck import Platform, Target
from doublecheck.cli import app
from doublecheck.client.doubles import serving_double
from doublecheck.compare.differences import Class, Comparison
from doublecheck.core.exit_codes import ExitCode
from doublecheck.errors import TargetError, UnreachableError

pytestmark = pytest.mark.once  # each compares two platforms

READS = ("initialize", "notifications/initialized", "tools/list")


@pytest.fixture(scope="module")
def live_target() -> Iterator[Target]:
    with serving_double(unknowns={"U-SESSION-DUPLICATE": "400"}) as target:
        yield target


@pytest.fixture
def behind(live_target: Target) -> Iterator[Platform]:
    """The live platform as a double, for inspection."""
    with Platform(live_target) as platform:
        platform.reset()
        yield platform


@pytest.fixture
def live(behind: Platform) -> Iterator[Platform]:
    with Platform(dataclasses.replace(behind.target, kind="live", name="live")) as platform:
        yield platform


def create_twice(platform: Platform) -> None:
    path = "/apps/echo/users/u1/sessions/twice"
    for method in ("POST", "POST", "DELETE"):
        platform.request(method, path)


def sessions(platform: Platform) -> tuple[list[str], list[str]]:
    """Return the names of sandbox sessions and the ids of API-server sessions."""
    named = sorted(session.user_session_id for session in platform.sandboxes())
    return named, [session.id for session in platform.agents.list("echo", user_id="u1")]


def test_a_live_platform_is_read_only_by_default(
    platform: Platform, live: Platform, behind: Platform
) -> None:
    """Each skipped part names its effect and the option that allows it."""
    comparison = doublecheck.twin(platform, live)

    posted = [entry for entry in behind.journal() if entry.method != "GET"]
    bodies = [json.loads(entry.request_body) for entry in posted if "jsonrpc" in entry.request_body]
    assert {"/mcp", "/"} == {call.url.partition("?")[0].removeprefix(behind.url) for call in posted}
    assert {body["method"] for body in bodies} <= set(READS)
    assert {401} == {entry.status for entry in posted if "Action=" in entry.url}
    assert (([], []), Class.SAME) == (sessions(behind), comparison.cls)
    assert {
        "invocations": "it invokes an agent",
        "refused runs": "it requests runs",
        "sessions and runs": "it creates something",
        "code in the sandbox": "it runs code",
        "an MCP tool": "it calls tools",
        "A2A": "it sends messages to an agent",
    } == {
        part.name: part.skipped.partition(" on the live platform, which needs --allow-writes")[0]
        for part in comparison.parts
        if part.skipped
    }


@pytest.mark.slow
def test_only_sessions_of_the_twin_are_removed(live: Platform, behind: Platform) -> None:
    """This includes sessions that an agent creates."""
    with serving_double() as target, Platform(target) as double:
        for platform in (double, behind):
            platform.run_code("1", session_id="mine")
            platform.agents.create("echo", user_id="u1", session_id="mine")

        comparison = doublecheck.twin(double, live, allow_writes=True)

        assert ExitCode.PASSED is comparison.exit_code
        assert [] == [part.skipped for part in comparison.parts if part.skipped]
        for platform in (double, behind):
            assert (["agent_anonymous_mine"], ["mine"]) == sessions(platform)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [(None, Class.ASSUMED), ("400", Class.SAME), ("existing", Class.DIVERGES)],
)
def test_a_profile_settles_the_answers_of_the_double(
    live_target: Target, tmp_path: Path, answer: str | None, expected: Class
) -> None:
    """A settled unknown explains no difference."""
    profile = tmp_path / "profile.toml"
    profile.write_text(f'[unknowns]\nU-SESSION-DUPLICATE = "{answer}"\n')

    comparison = doublecheck.twin(
        other=live_target.url,
        conversation=create_twice,
        profile=profile if answer else None,
        allow_writes=True,
    )

    assert expected is comparison.cls


def test_a_custom_conversation_needs_permission(platform: Platform, live: Platform) -> None:
    """A twin that compares nothing has no verdict."""
    comparison = doublecheck.twin(platform, live, conversation=Platform.ping)
    allowed = doublecheck.twin(platform, live, conversation=Platform.ping, allow_writes=True)

    assert "allow_writes=True" in str(comparison.parts[0].skipped)
    assert "<Comparison nothing compared: 0 calls>" == repr(comparison)
    assert ExitCode.NOTHING_CHECKED is comparison.exit_code
    assert ExitCode.NOTHING_CHECKED is Comparison("http://a", "http://b", ()).exit_code
    assert "<Comparison same: 1 call, 1 same>" == repr(allowed)


def test_an_interrupted_twin_keeps_its_results(platform: Platform) -> None:
    """The error has the finished parts."""

    def interrupted(_platform: Platform) -> None:
        raise KeyboardInterrupt

    with pytest.raises(doublecheck.errors.InterruptedTwinError, match="0 of 1 parts") as raised:
        doublecheck.twin(platform, platform, conversation=interrupted)

    assert () == raised.value.comparison.parts


def test_wrong_usage_is_refused(platform: Platform, tmp_path: Path) -> None:
    profile = tmp_path / "profile.toml"
    live = Platform(Target("http://127.0.0.1:9", "live"))
    cases = [
        (lambda: doublecheck.twin(platform), "Name the other platform"),
        (lambda: doublecheck.twin(live, platform), "pass the double first"),
        (lambda: doublecheck.twin(platform, live), "Nothing answers at http://127.0.0.1:9"),
        (lambda: doublecheck.twin(platform, platform, target="x"), "remove one"),
        (lambda: doublecheck.twin(platform, 5), "5 is not a platform"),  # type: ignore[arg-type]
        (lambda: doublecheck.twin(platform, platform, profile=profile), "profile="),
    ]
    with live:
        for call, message in cases:
            with pytest.raises(doublecheck.DoubleCheckError, match=message):
                call()


def words(double: Target, live: Target, *more: str) -> list[str]:
    return ["twin", "--double", double.url, "--url", live.url, "--target", "live", *more]


@pytest.mark.slow
def test_the_command_prints_json_and_writes_a_page(
    double: Target, live_target: Target, other: Target, tmp_path: Path
) -> None:
    """Differences that the specification leaves open exit with 0."""
    page = tmp_path / "twin.html"

    same = CliRunner().invoke(app, words(double, live_target))
    differs = CliRunner().invoke(
        app, words(double, other, "--allow-writes", "--json", "--html", str(page))
    )

    document = json.loads(differs.stdout)
    assert (0, 1) == (same.exit_code, differs.exit_code), same.output
    assert ("doublecheck-comparison/1", "diverges") == (document["format"], document["class"])
    assert "Good day." in page.read_text("utf-8")
    assert ["twin.html"] == [path.name for path in tmp_path.iterdir()]


def test_the_command_refuses_invalid_options(double: Target, tmp_path: Path) -> None:
    profile = tmp_path / "profile.toml"
    profile.write_text('[unknowns]\nU-SESSION-DUPLICATE = "401"\n')
    cases = [
        (words(double, Target("http://127.0.0.1:9")), UnreachableError),
        (words(double, double, "--html", str(tmp_path / "no" / "page.html")), TargetError),
        (words(double, double, "--app", "x:y"), TargetError),
        (words(double, double, "--profile", str(profile)), TargetError),
        (["twin", "--url", double.url, "--profile", str(profile)], TargetError),
        (["twin", "--double", double.url], TargetError),
    ]

    errors = [type(CliRunner().invoke(app, command).exception) for command, _ in cases]

    assert [expected for _, expected in cases] == errors
