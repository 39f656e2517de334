"""twin() and ``doublecheck twin``: platforms, permissions, output and exit codes."""

from __future__ import annotations

import dataclasses
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

import doublecheck
from doublecheck import Platform, Target
from doublecheck.cli import app
from doublecheck.client.doubles import serving_double
from doublecheck.compare import page, rendering
from doublecheck.compare.conversation import Topic
from doublecheck.compare.differences import Class, Comparison
from doublecheck.compare.run import run
from doublecheck.core.exit_codes import ExitCode
from doublecheck.errors import ArgumentError, TargetError, UnreachableError
from tests.doublecheck import other_servers

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


def test_an_agent_that_the_platforms_do_not_have_is_refused(
    platform: Platform, live: Platform
) -> None:
    with pytest.raises(ArgumentError, match=r"no agent 'ecko' in common\. Did you mean echo"):
        doublecheck.twin(platform, live, agent="ecko")


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
    file = tmp_path / "twin.html"

    same = CliRunner().invoke(app, words(double, live_target))
    differs = CliRunner().invoke(
        app, words(double, other, "--allow-writes", "--json", "--html", str(file))
    )

    document = json.loads(differs.stdout)
    assert (0, 1) == (same.exit_code, differs.exit_code), same.output
    assert ("doublecheck-comparison/1", "diverges") == (document["format"], document["class"])
    assert "Good day." in file.read_text("utf-8")
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


def test_agents_that_the_double_brings_are_no_difference(tmp_path: Path) -> None:
    """A double that is started for the comparison has them; with ``--agents`` it has yours."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "__init__.py").write_text(
        "async def root_agent(message, session):\n    yield 'a'\n"
    )
    with other_servers.serving(other_servers.api_server) as server:
        words = ["twin", "--url", server.url, "--target", "live", "--json"]
        without, same = (
            json.loads(CliRunner().invoke(app, [*words, *more]).stdout)["parts"]
            for more in ([], ["--agents", str(tmp_path)])
        )

    def named(parts: list[dict[str, Any]]) -> tuple[dict[str, str], str | None]:
        of = {part["name"]: part for part in parts}
        calls = {it["operation"]: it["class"] for it in of["API server lists"]["calls"]}
        return calls, of["sessions and runs"]["skipped"]

    calls, skipped = named(without)
    assert "GET /list-apps" not in calls
    assert "--agents DIR gives it yours" in (skipped or "")
    calls, skipped = named(same)
    assert "same" == calls["GET /list-apps"]
    assert "needs --allow-writes" in (skipped or "")


def test_surfaces_that_only_one_platform_has_are_one_difference(platform: Platform) -> None:
    """Each is named, in every report; the surface that both have is compared call by call."""
    with other_servers.serving(other_servers.api_server) as server:
        live = Target(server.url, kind="live", name="staging")
        with Platform(live) as other:
            comparison = doublecheck.twin(platform, other)

    only = {part.name: part.only for part in comparison.parts if part.only}
    assert {
        "probes": "only the double has application",
        "refusals of the control plane": "only the double has control_plane",
        "MCP": "only the double has mcp",
        "the agent card": "only the double has a2a",
    } == only
    lists = next(part for part in comparison.parts if part.name == "API server lists")
    assert (Class.DIVERGES, "") == (lists.cls, lists.only)
    absent = [call for part in comparison.parts if part.only for call in part.calls]
    assert Class.DIVERGES not in {call.cls for call in absent}
    assert ExitCode.FAILED is comparison.exit_code
    console = Console(file=io.StringIO(), width=100, record=True)
    rendering.show(comparison, console)
    assert "├── MCP  only the double has mcp\n├── an MCP tool" in console.export_text()
    html = page.render(comparison)
    assert '<span class="badge only-double">only the double has mcp</span>' in html
    assert html.index("API server lists") < html.index("only the double has mcp")
    parts = rendering.document(comparison)["parts"]
    assert only == {part["name"]: part["only"] for part in parts if part["only"]}


def test_the_other_platform_may_have_a_surface_alone(platform: Platform) -> None:
    with other_servers.serving(other_servers.web_site) as server:
        double = dataclasses.replace(platform.target, mcp=server.url)
        topic = Topic("MCP", ("mcp",), lambda it: it.request("GET", "/mcp", surface="mcp"))
        with Platform(double) as first, Platform(platform.target) as second:
            comparison = run([topic], first, second, allow_writes=False)

    assert [("only the other has mcp", Class.ONLY_LIVE)] == [
        (part.only, part.cls) for part in comparison.parts
    ]


def test_the_page_has_differences_first_and_exchanges_behind_a_click(
    double: Target, other: Target
) -> None:
    """It loads nothing, follows the reader's mode, and a notebook shows the same page."""

    def talk(platform: Platform) -> None:
        platform.request("GET", "/ping")
        headers = {"Content-Type": "application/json", "user_id": "a", "session_id": "b"}
        platform.request("POST", "/invoke", headers=headers, content=b'{"prompt": "hi"}')

    with Platform(double) as first, Platform(other) as second:
        comparison = doublecheck.twin(first, second, conversation=talk, allow_writes=True)

    html = page.render(comparison)
    difference, behind = html.index('"Good day."'.replace('"', "&quot;")), html.index("<details>")
    assert difference < behind < html.index("{\n  &quot;prompt&quot;: &quot;hi&quot;\n}")
    assert html.index("POST /invoke") < html.index("GET /ping")
    assert ["1 other call"] == re.findall("<summary>([^<]*call)</summary>", html)
    assert "prefers-color-scheme: dark" in html
    assert "default-src &#x27;none&#x27;" in html
    assert [] == re.findall(r"<script|<link|<img|url\(", html)
    assert "Good day." in comparison._repr_mimebundle_()["text/html"]
