from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from doublecheck import Target
from doublecheck.cli.app import app
from doublecheck.errors import TargetError, UnreachableError

SCRIPT = """
[[step]]
path = "/invoke"
json = { prompt = "x" }
writes = false
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.toml"
    path.write_text(SCRIPT)
    return path


def words(double: Target, live: Target, script: Path, *more: str) -> list[str]:
    given = ["twin", "--double", double.url, "--url", live.url, "--target", "live"]
    return [*given, "--script", str(script), *more]


@pytest.mark.parametrize(("name", "expected"), [("live", 0), ("other", 1)])
def test_the_exit_code_says_whether_they_diverge(
    request: pytest.FixtureRequest, double: Target, script: Path, name: str, expected: int
) -> None:
    """What the specification leaves open is no divergence."""
    against = request.getfixturevalue(name)

    ended = CliRunner().invoke(app, words(double, against, script))

    assert expected == ended.exit_code, ended.output


def test_it_prints_json_and_writes_a_page(
    double: Target, other: Target, script: Path, tmp_path: Path
) -> None:
    """One document on stdout; the page beside it."""
    html = tmp_path / "twin.html"

    ended = CliRunner().invoke(app, words(double, other, script, "--json", "--html", str(html)))

    told = json.loads(ended.stdout)
    assert ("doublecheck-comparison/1", "diverges", {"diverges": 1}) == (
        told["format"],
        told["class"],
        told["summary"],
    )
    assert "Good day." in html.read_text("utf-8")
    assert {"script.toml", "twin.html"} == {path.name for path in tmp_path.iterdir()}


def test_nothing_that_is_compared_is_exit_code_5(
    double: Target, live: Target, script: Path
) -> None:
    """A script that only writes, on a live platform, without leave, is not the same."""
    script.write_text(SCRIPT.replace("writes = false", ""))

    ended = CliRunner().invoke(app, words(double, live, script))

    assert (5, True) == (ended.exit_code, "needs --allow-writes" in ended.output.replace("\n", " "))


def test_an_unusable_order_is_refused(double: Target, script: Path, tmp_path: Path) -> None:
    """A dead address, a page that cannot be written, a double that is both here and there."""
    dead = words(double, Target("http://127.0.0.1:9"), script)
    nowhere = words(double, double, script, "--html", str(tmp_path / "no" / "page.html"))
    both = words(double, double, script, "--app", "x:y")

    refused = [CliRunner().invoke(app, one).exception for one in (dead, nowhere, both)]

    assert [UnreachableError, TargetError, TargetError] == [type(one) for one in refused]


def test_a_target_of_the_configuration_is_meant(
    double: Target, other: Target, script: Path, tmp_path: Path
) -> None:
    """By its name; and somebody has to say which platform it is."""
    config = tmp_path / "targets.toml"
    config.write_text(f'[targets.staging]\nkind = "live"\nurl = "{other.url}"\n')
    own = ["twin", "--double", double.url, "--script", str(script)]

    staging = CliRunner().invoke(app, [*own, "--config", str(config), "--target", "staging"])
    nobody = CliRunner().invoke(app, own)

    assert (1, TargetError) == (staging.exit_code, type(nobody.exception)), staging.output
