"""Write the reference applications; tests/real_targets covers those of agentkit-sdk-python."""

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
from doublecheck.contracts import reference_files
from doublecheck.contracts.verdicts import Verdict
from doublecheck.errors import FolderError
from doublecheck.reports.collector import Collector

pytestmark = pytest.mark.once

APPS = ("app.py:app", "app.py:bare", "mcp_app.py:app", "a2a_app.py:app")
SERVE = ("serve", *APPS, "--agents", "agents", "--port", "0")
URL = re.compile(r"http://127\.0\.0\.1:\d+")


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a double that serves the written files as their README says."""
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
        match = next(filter(None, map(URL.search, process.stdout)), None)
        assert match is not None, "it ended without an address"
        yield match[0]
    finally:
        process.terminate()
        process.communicate(timeout=60)


@pytest.mark.slow
def test_the_written_applications_pass_the_checks(
    served: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One check of each application runs over the socket, some against a runtime."""
    monkeypatch.setenv("DOUBLECHECK_OTHER_API_KEY", "the-key-of-another")
    chosen = ("PRB-01", "INV-05", "API-17", "MCP-05", "A2A-04", "HST-03", "AUT-03")
    collector = Collector()

    pytester.inline_run(
        *("--pyargs", contracts.__name__, "-k", " or ".join(chosen), "--platform-examples=1"),
        *(f"--platform-url={served}", "--platform-reference-app"),
        plugins=[collector],
    )

    checks = collector.checks()
    assert set(chosen) == {check.clause for check in checks}
    assert [] == [check for check in checks if check.verdict is not Verdict.PASSED]


@pytest.mark.parametrize("sdk", ["agentdouble", "agentkit"])
def test_everything_to_deploy_is_written(sdk: reference_files.Sdk, tmp_path: Path) -> None:
    """Each protocol has an application, beside agents, requirements and a README."""
    written = reference_files.write(sdk, tmp_path)

    assert {"app.py", "mcp_app.py", "a2a_app.py", "requirements.txt", "README.md"} <= {
        path.name for path in written if path.parent == tmp_path
    }
    assert tmp_path / "agents/doublecheck_reference/__init__.py" in written
    assert [] == [path for path in written if not path.is_file()]
    for path in written:
        if path.suffix == ".py":
            compile(path.read_text("utf-8"), path, "exec")


def test_existing_files_are_overwritten_only_with_force(tmp_path: Path) -> None:
    """Without force nothing is written at all. Identical files do not count."""
    app_path = tmp_path / "app.py"
    app_path.write_text("mine")

    with pytest.raises(FolderError, match=r"different files: app\.py\. Nothing was"):
        reference_files.write("agentdouble", tmp_path)
    assert [app_path] == list(tmp_path.iterdir())

    reference_files.write("agentdouble", tmp_path, force=True)
    assert "mine" != app_path.read_text()
    assert reference_files.write("agentdouble", tmp_path)


def test_an_unwritable_folder_is_an_error(tmp_path: Path) -> None:
    """The error names the folder, the reason and the remedy."""
    (tmp_path / "file").write_text("mine")

    with pytest.raises(FolderError, match=r"file.* cannot be written: .*Choose another folder"):
        reference_files.write("agentdouble", tmp_path / "file")
