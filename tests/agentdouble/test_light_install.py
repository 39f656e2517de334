"""The wheel with its base dependencies, without the extra emulator."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

INSTALL = "Install it: pip install 'agentdouble[emulator]'"
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of a fresh environment with the wheel and its base dependencies."""
    folder = tmp_path_factory.mktemp("light")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    wheel = [*pip, "wheel", "-q", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(wheel, check=True, timeout=300)
    venv.create(folder / "venv")
    python = folder / "venv" / "bin" / "python"
    (built,) = folder.glob("agentdouble-*.whl")
    install = [*pip, "--python", str(python), "install", "-q", str(built)]
    subprocess.run(install, check=True, timeout=300)
    return python


def run(python: Path, script: str) -> str:
    done = subprocess.run(
        [python, "-I", "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_light_modules_can_be_imported(light: Path) -> None:
    """Ledger, signing, wire, run_code and harness need no server."""
    script = """
import agentdouble.core.code_tool, agentdouble.core.invoke_tool, agentdouble.core.ledger, agentdouble.core.signing
import doublecheck
print(agentdouble.core.ledger.choose("U-TTL-EXTENDS"), agentdouble.run_code.__name__, doublecheck.__name__)
"""

    assert "absolute run_code doublecheck\n" == run(light, script)


def test_the_double_names_its_missing_extra(light: Path) -> None:
    """Each name that needs it says how to install it."""
    script = """
import json, agentdouble
found = {}
for name in ("A2AApp", "Context", "Emulator", "MCPApp", "Settings", "SimpleApp", "agent_card"):
    try:
        getattr(agentdouble, name)
    except agentdouble.AgentDoubleError as error:
        found[name] = [type(error).__name__, error.extra, str(error)]
print(json.dumps(found))
"""

    assert {
        name: [
            "MissingExtraError",
            "emulator",
            f"agentdouble.{name} needs the extra 'emulator'. {INSTALL}",
        ]
        for name in (
            "A2AApp",
            "Context",
            "Emulator",
            "MCPApp",
            "Settings",
            "SimpleApp",
            "agent_card",
        )
    } == json.loads(run(light, script))


def test_the_wheel_contains_its_data_files(light: Path) -> None:
    """It has type markers too, but no tests."""
    script = """
from importlib.resources import files
import importlib.util
names = ["agentdouble/core/unknowns.toml", "agentdouble/py.typed", "doublecheck/py.typed"]
names += ["agentdouble/sandbox/javascript/boot.js"]
for name in names:
    package, _, file = name.partition("/")
    assert files(package).joinpath(file).is_file(), name
assert importlib.util.find_spec("tests") is None
"""

    run(light, script)


def test_doctor_reports_a_light_install(light: Path) -> None:
    """It shows the command that installs the double and checks the rest."""
    command = [light.with_name("agentdouble"), "doctor", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
    findings = {finding["id"]: finding for finding in json.loads(done.stdout)["findings"]}

    assert (1, "") == (done.returncode, done.stderr)
    assert "pip install 'agentdouble[emulator]'" == findings["double"]["remedy"]
    assert {"isolation.files", "browser"} < set(findings)
