"""A profile makes the double beside the platform answer as a deployment was found to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import doublecheck
from doublecheck import Target
from doublecheck.cli.app import app
from doublecheck.client.doubles import serving_double
from doublecheck.comparing.differences import Class
from doublecheck.errors import TargetError

SCRIPT = """
[[step]]
path = "/apps/echo/users/u1/sessions/twice"
json = {}

[[step]]
path = "/apps/echo/users/u1/sessions/twice"
json = {}

[[step]]
method = "DELETE"
path = "/apps/echo/users/u1/sessions/twice"
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.toml"
    path.write_text(SCRIPT)
    return path


@pytest.fixture(scope="module")
def deployment() -> Iterator[Target]:
    with serving_double(unknowns={"U-SESSION-DUPLICATE": "400"}) as target:
        yield target


def profile(folder: Path, answer: str) -> Path:
    path = folder / "profile.toml"
    path.write_text(f'[unknowns]\nU-SESSION-DUPLICATE = "{answer}"\n')
    return path


@pytest.mark.parametrize(
    ("answer", "expected"),
    [(None, Class.ASSUMED), ("400", Class.SAME), ("existing", Class.DIVERGES)],
)
def test_a_double_answers_as_its_profile_says(
    deployment: Target, script: Path, tmp_path: Path, answer: str | None, expected: Class
) -> None:
    """What the profile settles is no guess, so it explains no difference."""
    comparison = doublecheck.twin(
        other=deployment.url,
        script=script,
        profile=None if answer is None else profile(tmp_path, answer),
        allow_writes=True,
    )

    assert expected is comparison.cls


def test_the_command_takes_a_profile(deployment: Target, script: Path, tmp_path: Path) -> None:
    """Of alternatives that exist, for a double that is started here."""
    words = ["twin", "--url", deployment.url, "--target", "live", "--script", str(script)]
    words += ["--allow-writes", "--profile"]
    wrong = tmp_path / "wrong.toml"
    wrong.write_text('[unknowns]\nU-SESSION-DUPLICATE = "401"\n')
    good = str(profile(tmp_path, "400"))

    same = CliRunner().invoke(app, [*words, good])
    unknown = CliRunner().invoke(app, [*words, str(wrong)])
    running = CliRunner().invoke(app, [*words, good, "--double", deployment.url])

    assert (0, True) == (same.exit_code, "3 same" in same.output), same.output
    assert [TargetError, TargetError] == [type(one.exception) for one in (unknown, running)]
    assert "has no alternative '401'" in str(unknown.exception)
    assert "--profile applies to a double that is started here" in str(running.exception)


def test_a_profile_is_not_for_a_running_double(deployment: Target, tmp_path: Path) -> None:
    """It answers as it was started."""
    with pytest.raises(TargetError, match="profile="):
        doublecheck.twin(deployment.url, deployment.url, profile=profile(tmp_path, "400"))
