"""The wheel: its files, and an installation with its base dependencies alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from doublecheck import Platform

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
ALONE = ("-I", "-W", "error", "-c")
INSTALL = "Install it: pip install 'agentdouble[emulator]'"
NEEDING = ("A2AApp", "Context", "Emulator", "MCPApp", "Settings", "SimpleApp", "agent_card")
TEST = """
import doublecheck
import sys

def test_it(platform_sandbox, platform_agent):
    assert doublecheck.__file__.startswith(sys.prefix)
    assert platform_sandbox.run("6 * 7").text == "42"
    assert platform_agent == "echo"
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    _run("-m", "hatchling", "build", "-t", "wheel", "-d", str(folder), cwd=ROOT)
    (wheel,) = folder.glob("agentdouble-*.whl")
    return wheel


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """A fresh environment with the wheel and the dependencies of this one."""
    folder = tmp_path_factory.mktemp("fresh")
    folder.chmod(0o755)  # sessions are users of their own, and run its Python
    venv.create(folder / "env", with_pip=True)
    python = folder / "env" / "bin" / "python"
    install = ("-m", "pip", "install", "-q", "--no-deps", "--no-index", str(wheel))
    _run(*install, python=python, cwd=folder)
    site = _run("-c", "import sysconfig; print(sysconfig.get_path('purelib'))", python=python)
    Path(site.strip(), "theirs.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


@pytest.mark.once
def test_the_wheel_contains_the_plugin(fresh: Path) -> None:
    (fresh / "test_it.py").write_text(TEST)
    options = ("-q", "-p", "no:cacheprovider", f"--rootdir={fresh}")

    out = _run("-m", "pytest", *options, "test_it.py", python=fresh / "env/bin/python", cwd=fresh)

    assert "1 passed" in out


@pytest.mark.once
def test_the_wheel_contains_the_console(fresh: Path) -> None:
    static = ROOT / "emulator" / "agentdouble" / "console" / "static"
    (installed,) = (fresh / "env").glob("lib/python*/site-packages/agentdouble/console/static")

    assert {path.relative_to(static) for path in static.rglob("*")} == {
        path.relative_to(installed) for path in installed.rglob("*")
    }


@pytest.mark.once
def test_the_wheel_contains_the_checks(fresh: Path) -> None:
    """This includes their data files."""
    doublecheck = fresh / "env" / "bin" / "doublecheck"

    out = _run(str(doublecheck), "run", "-k", "PRB-01", python=fresh / "env/bin/python", cwd=fresh)

    assert "passed" in out


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """Return the Python of a fresh environment with the wheel and its base dependencies."""
    folder = tmp_path_factory.mktemp("light")
    venv.create(folder / "venv")
    python = folder / "venv" / "bin" / "python"
    pip = ("-m", "pip", "--disable-pip-version-check", "--no-input", "--python", str(python))
    _run(*pip, "install", "-q", str(wheel))
    return python


def test_light_modules_can_be_imported(light: Path) -> None:
    """Ledger, signing, wire, run_code and harness need no server."""
    script = """
import agentdouble.core.code_tool, agentdouble.core.invoke_tool, agentdouble.core.ledger, agentdouble.core.signing
import doublecheck
print(agentdouble.core.ledger.choose("U-TTL-EXTENDS"), agentdouble.run_code.__name__, doublecheck.__name__)
"""

    assert "absolute run_code doublecheck\n" == _run(*ALONE, script, python=light)


def test_the_double_names_its_missing_extra(light: Path) -> None:
    """Each name that needs it says how to install it."""
    script = f"""
import json, agentdouble
found = {{}}
for name in {NEEDING}:
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
        for name in NEEDING
    } == json.loads(_run(*ALONE, script, python=light))


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

    _run(*ALONE, script, python=light)


def test_doctor_reports_a_light_install(light: Path) -> None:
    """It shows the command that installs the double and checks the rest."""
    command = [light.with_name("agentdouble"), "doctor", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
    findings = {finding["id"]: finding for finding in json.loads(done.stdout)["findings"]}

    assert (1, "") == (done.returncode, done.stderr)
    assert "pip install 'agentdouble[emulator]'" == findings["double"]["remedy"]
    assert {"isolation.files", "browser"} < set(findings)


@pytest.mark.parametrize(
    "command",
    ["serve", "demo", "exec -- true"],
)
def test_a_command_that_starts_a_double_names_its_missing_extra(light: Path, command: str) -> None:
    done = _agentdouble(light, *command.split())

    assert (2, "") == (done.returncode, done.stdout)
    assert done.stderr.startswith("agentdouble: ")
    assert done.stderr.endswith(f"{INSTALL}\n")


@pytest.mark.parametrize(
    "command",
    [
        "env",
        "journal",
        "journal --status 200",
        "call ListTools",
        "sign ListTools",
        "session list",
        "mcp list",
        "faults list",
        "clock show",
        "nodes list",
    ],
)
def test_a_command_for_a_running_double_needs_no_extra(
    light: Path, platform: Platform, command: str
) -> None:
    """The double may run in a container, or on another machine."""
    target = platform.target
    assert target.credentials is not None
    assert target.token is not None
    variables = {
        "PLATFORM_ACCESS_KEY": target.credentials.access_key,
        "PLATFORM_SECRET_KEY": target.credentials.secret_key,
        "PLATFORM_TOOL_ID": str(target.tool_id),
        "AGENTDOUBLE_TOKEN": target.token.reveal(),
    }
    platform.ping()

    done = _agentdouble(light, *command.split(), "--url", platform.url, **variables)

    assert (0, "") == (done.returncode, done.stderr if done.returncode else "")


def _agentdouble(
    python: Path, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    command = [str(python.with_name("agentdouble")), *arguments]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
        env={**os.environ, **variables},
    )


def _run(*arguments: str, python: Path | str = sys.executable, cwd: Path | None = None) -> str:
    done = subprocess.run(
        [str(python), *arguments], cwd=cwd, capture_output=True, text=True, timeout=300, check=False
    )
    assert 0 == done.returncode, done.stdout + done.stderr
    return done.stdout
