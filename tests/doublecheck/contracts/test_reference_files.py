"""Writing the reference applications; those of agentkit-sdk-python are in tests/real_targets."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import openapi_spec_validator  # noqa: F401 (what pytester imports it forgets)
import pytest

from doublecheck import contracts
from doublecheck.cli.check_commands import app as command
from doublecheck.contracts import reference_files
from doublecheck.contracts.verdicts import Verdict
from doublecheck.errors import FolderError
from doublecheck.reports.collector import Collector

pytestmark = pytest.mark.once

APPS = ("app.py:app", "app.py:bare", "mcp_app.py:app", "a2a_app.py:app")
SERVE = ("serve", *APPS, "--agents", "agents", "--port", "0")
CLOCK_CHECK = "test_agent_sessions.py::test_a_session_lasts_until_it_is_deleted"
URL = re.compile(r"http://127\.0\.0\.1:\d+")


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a double that serves what was written, as its README says.

    Its keys are found where doubles leave them.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "written"
    reference_files.write("agentdouble", folder)
    process = subprocess.Popen(
        [sys.executable, "-c", "from agentdouble.cli import main; main()", *SERVE],
        cwd=folder,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        found = next(filter(None, map(URL.search, process.stdout)), None)
        assert found is not None, "it ended without an address"
        yield found[0]
    finally:
        process.terminate()
        process.communicate(timeout=60)


@pytest.mark.slow
def test_what_is_written_passes_the_checks(
    served: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every check that looks inside an application passes on it, over the socket.

    Some of them ask it as a runtime.
    """
    monkeypatch.setenv("DOUBLECHECK_OTHER_API_KEY", "the-key-of-another")
    collector = Collector()

    ended = pytester.inline_run(
        *(
            "--pyargs",
            contracts.__name__,
            "-k",
            "INV or PRB or API or MCP or A2A or HST-03 or AUT-03",
        ),
        *(f"--platform-url={served}", "--platform-reference-app"),
        plugins=[collector],
    )

    verdicts = {check.name: check.verdict for check in collector.checks()}
    of_others = {"MCP-01", "MCP-02", "A2A-05"}  # of services, and of the library
    well = (Verdict.PASSED, Verdict.OBSERVED)
    left = [check for check in collector.checks() if check.verdict not in well]
    unmade = {check.name: check.reason for check in left if check.clause not in of_others}
    assert 50 < len(verdicts), ended.ret
    assert {CLOCK_CHECK: "not run: needs a double whose clock may be moved"} == unmade, verdicts


@pytest.mark.parametrize("sdk", ["agentdouble", "agentkit"])
def test_there_is_what_to_deploy(sdk: reference_files.Sdk, tmp_path: Path) -> None:
    """An application for each protocol, an agents directory, requirements, and a README."""
    written = reference_files.write(sdk, tmp_path)

    assert {"app.py", "mcp_app.py", "a2a_app.py", "requirements.txt", "README.md"} <= {
        path.name for path in written if path.parent == tmp_path
    }
    assert tmp_path / "agents/doublecheck_reference/__init__.py" in written
    assert [] == [path for path in written if not path.is_file()]
    for path in written:
        if path.suffix == ".py":
            compile(path.read_text("utf-8"), path, "exec")


def test_a_file_of_the_user_s_is_not_overwritten(tmp_path: Path) -> None:
    """Nothing at all is written, until force says so; what is the same is no obstacle."""
    mine = tmp_path / "app.py"
    mine.write_text("mine")

    with pytest.raises(FolderError, match=r"other files by these names: app\.py\. Nothing was"):
        reference_files.write("agentdouble", tmp_path)
    assert [mine] == list(tmp_path.iterdir())

    reference_files.write("agentdouble", tmp_path, force=True)
    assert "mine" != mine.read_text()
    assert reference_files.write("agentdouble", tmp_path)


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    """What it points at stays as it is."""
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "folder"
    elsewhere.write_text("mine")
    folder.mkdir()
    (folder / "app.py").symlink_to(elsewhere)

    with pytest.raises(FolderError):
        reference_files.write("agentdouble", folder)
    reference_files.write("agentdouble", folder, force=True)

    assert "mine" == elsewhere.read_text()
    assert not (folder / "app.py").is_symlink()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """The message says which, why, and what to do."""
    (tmp_path / "file").write_text("mine")

    with pytest.raises(FolderError, match=r"file.* cannot be written: .*Name another folder"):
        reference_files.write("agentdouble", tmp_path / "file")


def test_the_command_tells_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each on a line of its own, and nothing else on stdout."""
    command(sdk="agentkit", output=tmp_path)

    told = capsys.readouterr()
    assert [
        str(path) for path in reference_files.write("agentkit", tmp_path)
    ] == told.out.splitlines()
    assert "README.md says how to run" in told.err
