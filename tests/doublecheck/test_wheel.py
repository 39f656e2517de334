from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

pytestmark = [pytest.mark.once, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
TEST = """
import doublecheck
import sys

def test_it(platform_sandbox, platform_agent):
    assert doublecheck.__file__.startswith(sys.prefix)
    assert platform_sandbox.run("6 * 7").text == "42"
    assert platform_agent == "echo"
"""


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel and the dependencies of this one."""
    folder = tmp_path_factory.mktemp("fresh")
    folder.chmod(0o755)  # sessions are users of their own, and run its Python
    _run("-m", "hatchling", "build", "-t", "wheel", "-d", str(folder), cwd=ROOT)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "env", with_pip=True)
    python = folder / "env" / "bin" / "python"
    install = ("-m", "pip", "install", "-q", "--no-deps", "--no-index", str(wheel))
    _run(*install, python=python, cwd=folder)
    site = _run("-c", "import sysconfig; print(sysconfig.get_path('purelib'))", python=python)
    Path(site.strip(), "theirs.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def test_the_wheel_contains_the_plugin(fresh: Path) -> None:
    (fresh / "test_it.py").write_text(TEST)
    options = ("-q", "-p", "no:cacheprovider", f"--rootdir={fresh}")

    out = _run("-m", "pytest", *options, "test_it.py", python=fresh / "env/bin/python", cwd=fresh)

    assert "1 passed" in out


def test_the_wheel_contains_the_console(fresh: Path) -> None:
    static = ROOT / "emulator" / "agentdouble" / "console" / "static"
    (installed,) = (fresh / "env").glob("lib/python*/site-packages/agentdouble/console/static")

    assert {path.relative_to(static) for path in static.rglob("*")} == {
        path.relative_to(installed) for path in installed.rglob("*")
    }


def test_the_wheel_contains_the_checks(fresh: Path) -> None:
    """This includes their data files."""
    doublecheck = fresh / "env" / "bin" / "doublecheck"

    out = _run(str(doublecheck), "run", "-k", "PRB-01", python=fresh / "env/bin/python", cwd=fresh)

    assert "passed" in out


def _run(*arguments: str, python: Path | str = sys.executable, cwd: Path | None = None) -> str:
    done = subprocess.run(
        [str(python), *arguments], cwd=cwd, capture_output=True, text=True, timeout=300, check=False
    )
    assert 0 == done.returncode, done.stdout + done.stderr
    return done.stdout
