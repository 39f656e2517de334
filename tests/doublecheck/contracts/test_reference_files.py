"""Write the reference applications; tests/real_targets covers those of agentkit-sdk-python."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import openapi_spec_validator  # noqa: F401 (what pytester imports it forgets)
import pytest

from doublecheck import Target, contracts
from doublecheck.client.doubles import serving_double
from doublecheck.contracts import hosting, reference_files
from doublecheck.contracts.run_result import Run
from doublecheck.contracts.verdicts import Verdict
from doublecheck.errors import FolderError
from doublecheck.reports.collector import Collector
from doublecheck.run import pytest_run

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


@pytest.mark.once
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


@pytest.mark.once
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


@pytest.mark.once
def test_the_agents_alone_are_written_for_a_server_of_adk(tmp_path: Path) -> None:
    """They are those that the platform's SDK runs, with a README of their own."""
    written = {path.relative_to(tmp_path) for path in reference_files.write("adk", tmp_path)}

    agents = {path for path in reference_files.files("agentkit") if path.parts[0] == "agents"}
    assert {*agents, Path("README.md"), Path("requirements.txt")} == written
    for path in agents:
        assert reference_files.files("agentkit")[path] == (tmp_path / path).read_bytes()


@pytest.mark.once
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


@pytest.mark.once
def test_an_unwritable_folder_is_an_error(tmp_path: Path) -> None:
    """The error names the folder, the reason and the remedy."""
    (tmp_path / "file").write_text("mine")

    with pytest.raises(FolderError, match=r"file.* cannot be written: .*Choose another folder"):
        reference_files.write("agentdouble", tmp_path / "file")


@pytest.fixture(scope="module")
def double() -> Iterator[Target]:
    """A double that hosts the reference applications and serves others itself."""
    with hosting.declared() as declared, serving_double(runtimes=declared.tables) as target:
        yield target


@pytest.fixture
def live(double: Target, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the options for a deploying platform, with a runtime's address."""
    for name, value in double.environment().items():
        monkeypatch.setenv(name, value)
    return [
        "--platform-target=live",
        f"--platform-url={double.url}/runtimes/{hosting.SIMPLE}",
        f"--platform-control-plane={double.url}",
        "--platform-offers=application,control_plane,runtimes",
        "--platform-reference-app",
        "--platform-allow-writes",
    ]


def verdicts(run: Run) -> Mapping[str, Verdict]:
    return {clause.id: verdict for clause, verdict in run.verdicts().items()}


def test_a_hosted_application_passes_the_same_checks_as_in_process(live: list[str]) -> None:
    """Checks that only a double can observe are reported as such."""
    modules = ("test_invocation", "test_probes", "test_hosting")
    options = ("--platform-examples=1", "-k", "INV or PRB or HST-02 or HST-04")
    run = pytest_run.run([*live, *options], verbose=False, modules=modules)

    passed = (*(f"INV-{n:02d}" for n in range(1, 10)), *(f"PRB-{n:02d}" for n in range(1, 8)))
    assert {
        **dict.fromkeys((*passed, "HST-04"), Verdict.PASSED),
        "PRB-05": Verdict.NOT_OBSERVABLE,
        "HST-02": Verdict.NOT_RUN,
    } == verdicts(run)


def test_checks_of_a_missing_runtime_or_identity_are_not_observable(
    live: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason names the runtime or the variable of the key."""
    monkeypatch.setattr(hosting, "NEIGHBOUR", "hosted-elsewhere")
    modules = ("test_hosting", "test_access")
    run = pytest_run.run([*live, "-k", "HST-03 or AUT-03"], verbose=False, modules=modules)

    assert dict.fromkeys(("HST-03", "AUT-03"), Verdict.NOT_OBSERVABLE) == verdicts(run)
    assert {
        "not observable: needs the reference application as a runtime, hosted-elsewhere",
        "not observable: needs the key of another identity: DOUBLECHECK_OTHER_API_KEY",
    } == {check.reason for check in run.checks}
