"""A platform that lies diverges in each comparison, and the report says where."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from doublecheck import Platform, Target
from doublecheck.cli.app import app
from doublecheck.client.doubles import serving_double
from doublecheck.comparing.differences import Class
from doublecheck.twins import conversation_run, document, html_page, scripts, tree
from doublecheck.twins.comparison import Comparison
from tests.doublecheck.twins.conftest import application
from tests.doublecheck.twins.liar import LIES, Liar, seen_as_live, serving_liar

pytestmark = pytest.mark.once  # each compares two platforms

KEYS = {"access_key": "AKLTtwin", "secret_key": "c2VjcmV0"}
LIE = pytest.mark.parametrize("lie", LIES)
RUN = """
[[step]]
path = "{path}"
json = {{ appName = "echo", userId = "u1", sessionId = "{{session}}", streaming = true, newMessage = {{ role = "user", parts = [{{ text = "{text}" }}] }} }}
"""
SCRIPT = f"""
[[step]]
code = "x = 6 * 7; print(x)"
session_id = "a"

[[step]]
code = "print(x + 1)"
session_id = "a"

[[step]]
code = "print('another')"
session_id = "b"

[[step]]
path = "/apps/echo/users/u1/sessions"
json = {{}}
save = {{ session = "id" }}
{RUN.format(path="/run", text="one")}
{RUN.format(path="/run_sse", text="two")}
[[step]]
path = "/apps/echo/users/u1/sessions/{{session}}"

[[step]]
method = "DELETE"
path = "/apps/echo/users/u1/sessions/{{session}}"
"""


@pytest.fixture(scope="module")
def honest() -> Iterator[Target]:
    with serving_double(application("Hello."), **KEYS) as target:
        yield target


@pytest.fixture(scope="module")
def hidden() -> Iterator[Target]:
    """What the liar has behind it."""
    with serving_double(application("Hello."), **KEYS) as target:
        yield target


@pytest.fixture(scope="module")
def liar(hidden: Target) -> Iterator[Liar]:
    with serving_liar(hidden.url) as liar:
        yield liar


@pytest.fixture
def double(honest: Target) -> Iterator[Platform]:
    with Platform(honest) as platform:
        platform.reset()
        yield platform


@pytest.fixture
def live(hidden: Target, liar: Liar) -> Iterator[Platform]:
    """The liar as a live platform, with no sessions yet."""
    with Platform(hidden) as platform:
        platform.reset()
    with Platform(seen_as_live(hidden, liar)) as platform:
        yield platform


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.toml"
    path.write_text(SCRIPT)
    return path


def held(double: Platform, live: Platform, script: Path) -> Comparison:
    return conversation_run.run(scripts.read(script), double, live, allow_writes=True)


def places(comparison: Comparison) -> dict[tuple[str, str], tuple[object, object]]:
    return {
        (call.operation, one.path): (one.double, one.live)
        for call in comparison.calls
        for one in call.differences
        if not one.cls.harmless
    }


def test_a_platform_that_tells_the_truth_is_the_same(
    double: Platform, live: Platform, script: Path
) -> None:
    """Whatever ids it has."""
    comparison = held(double, live, script)

    assert ({Class.SAME: 8}, {}) == (comparison.counts(), places(comparison))


@LIE
def test_a_lie_diverges_and_the_reports_say_where(
    double: Platform, live: Platform, liar: Liar, script: Path, lie: str
) -> None:
    """With the operation, the path and both values."""
    told, operation, path = LIES[lie]
    with liar.telling(told):
        comparison = held(double, live, script)

    found = places(comparison)
    assert not comparison.cls.harmless
    assert (operation, path) in found
    _told_by_the_reports(comparison, operation, path)


def _told_by_the_reports(comparison: Comparison, operation: str, path: str) -> None:
    console = Console(width=300, file=io.StringIO(), record=True)
    tree.show(comparison, console)
    printed = console.export_text()
    page = html_page.page(comparison)
    calls = [call for part in document.document(comparison)["parts"] for call in part["calls"]]
    (one, *_) = (
        one
        for call in calls
        for one in call["differences"]
        if (call["operation"], one["path"], one["because"]) == (operation, path, None)
    )
    assert operation in printed
    assert f"{path}: " in printed
    assert path in page.replace("&quot;", '"')
    assert one["double"] != one["live"]


@pytest.mark.parametrize(
    ("lie", "said"), [("output text", "THE WRONG ANSWER"), ("status of a result", "banana")]
)
def test_a_lie_is_exit_code_1(
    double: Platform,
    live: Platform,
    liar: Liar,
    script: Path,
    monkeypatch: pytest.MonkeyPatch,
    lie: str,
    said: str,
) -> None:
    """The platform is 0 again when it tells the truth."""
    monkeypatch.setenv("PLATFORM_ACCESS_KEY", KEYS["access_key"])
    monkeypatch.setenv("PLATFORM_SECRET_KEY", KEYS["secret_key"])
    monkeypatch.setenv("PLATFORM_TOOL_ID", "t-sandbox")
    words = ["twin", "--double", double.url, "--url", live.url, "--target", "live"]
    words += ["--script", str(script), "--allow-writes"]

    with liar.telling(LIES[lie][0]):
        lied = CliRunner().invoke(app, words)
        as_json = CliRunner().invoke(app, [*words, "--json"])
    true = CliRunner().invoke(app, words)

    assert (1, 1, 0) == (lied.exit_code, as_json.exit_code, true.exit_code), lied.output
    assert said in lied.output
    assert "diverges" == json.loads(as_json.stdout)["class"]
