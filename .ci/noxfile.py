"""What must hold before a change lands: sessions, each in an environment of its own.

``nox -f .ci/noxfile.py -l`` lists them; ``-s NAME`` runs one, and what comes after ``--`` goes to
its pytest. ``.ci/run`` runs those that are marked with a star; they take less than ten minutes on
two cores. ``.ci/run -s thorough`` runs the others, each night.

Tests that fail are run once more, alone. If they then pass, the session passes and names them as
flaky; ``.ci/run`` repeats the names in its last lines.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import nox
from nox.command import CommandFailed

ROOT = Path(__file__).parents[1]
FLAKY = ROOT / ".nox/flaky.txt"
LAST_FAILED = ROOT / ".pytest_cache/v/cache/lastfailed"
MOST_FLAKY = 5  # more failures in one run are not chance

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv"
nox.options.envdir = str(ROOT / ".nox")
nox.options.download_python = "never"
nox.options.error_on_missing_interpreters = False  # it says so, and runs the other sessions

# A test of what is not installed is skipped elsewhere; here it fails.
os.environ["REQUIRE_ALL"] = "true"
os.environ["CI"] = "true"  # a sample of the variants is enough
# A process that keeps no bytecode compiles every module once more, and the tests start hundreds.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ["UV_COMPILE_BYTECODE"] = "1"

# Slow tests that need other programs, or minutes.
THOROUGH = [
    "tests/agentdouble/sandbox/nodes",
    "tests/agentdouble/test_hostile_input.py",
    "tests/doublecheck/contracts",
    "tests/jupyterlab",
    "tests/mcp_official",
    "tests/mutants",
    "tests/stress",
    "tests/variants",
]


@nox.session(python=False)
def readme(session: nox.Session) -> None:
    """The README's commands for a fresh machine, as they stand there: the demo and the tests."""
    session.chdir(ROOT)
    readme = (ROOT / "README.md").read_text("utf-8")
    demo, tests = re.findall(r"^```sh\n(.+)\n```$", readme, re.MULTILINE)
    session.run("bash", "-c", demo)
    run_tests(session, "bash", "-c", f'{tests} "$@"', "bash")


@nox.session(python="3.10")
def oldest(session: nox.Session) -> None:
    """A first look on the oldest Python with the oldest libraries."""
    install(session, "emulator,postgres,test", "--resolution", "lowest-direct")
    pytest(session, "-m", "smoke")


@nox.session(python="3.10", default=False)
def oldest_whole(session: nox.Session) -> None:
    """All tests that depend on Python or on libraries, on the oldest of them."""
    install(session, "emulator,postgres,test", "--resolution", "lowest-direct")
    pytest(session, "-m", "not slow and not once")
    session.run("doublecheck", "run")


@nox.session(python=["3.14", "3.13"])
def newest(session: nox.Session) -> None:
    """A first look on the newest Python; its libraries are those of the README's tests."""
    install(session, "emulator,postgres,test")
    pytest(session, "-m", "smoke")


@nox.session(default=False)
def slow(session: nox.Session) -> None:
    """The slow tests, except those of ``thorough``."""
    install(session, "emulator,postgres,test,conformance")
    pytest(session, "-m", "slow", *(f"--ignore={path}" for path in THOROUGH))


@nox.session(default=False)
def thorough(session: nox.Session) -> None:
    """Clusters, JupyterLab, the conformance suite of MCP, and searches for wrong verdicts.

    Then the other sessions that take long: ``slow``, ``notebooks``, ``clients``, ``oldest_whole``.
    """
    for name in ("slow", "notebooks", "clients", "oldest_whole"):
        session.notify(name)
    install(session, "emulator,postgres,ray,test,conformance,lab")
    pytest(session, "-m", "slow", *THOROUGH)


@nox.session(default=False)
def notebooks(session: nox.Session) -> None:
    """Each notebook, in a kernel of its own."""
    install(session, "emulator,notebook,test")
    pytest(session, "notebooks")


@nox.session
def site(session: nox.Session) -> None:
    """The documentation, in build/site."""
    install(session, "emulator,docs")
    session.run("python", ".ci/site.py")


@nox.session
def package(session: nox.Session) -> None:
    """The wheel and the sdist: their metadata, and an installation of the wheel without its extras."""
    session.install("build>=1.2,<2", "twine>=6,<7")
    dist = session.create_tmp()
    session.chdir(ROOT)
    session.run("python", "-m", "build", "--outdir", dist)
    files = sorted(map(str, Path(dist).iterdir()))
    session.run("twine", "check", "--strict", *files)
    (wheel,) = (file for file in files if file.endswith(".whl"))
    session.install(wheel)
    session.run("doublecheck", "--version")


@nox.session(python=["3.10", "3.11", "3.12", "3.13", "3.14"], default=False)
@nox.parametrize("extra", ["emulator", "postgres", "mock", "calibrate", "notebook", "conformance"])
def extras(session: nox.Session, extra: str) -> None:
    """Each extra alone, on each Python."""
    session.install(f"{ROOT}[{extra}]")
    session.run("doublecheck", "--version")
    session.run("agentdouble", "--version")


@nox.session(default=False)
def clients(session: nox.Session) -> None:
    """Real clients talk to the double: those whose versions stand still, and the vendor's own.

    The clients of models are the newest, so that a field which they add is noticed.
    """
    install(session, "emulator,test,conformance")
    session.install("uv")  # it makes their environments
    python = ("mcp-1.26", "a2a-sdk-0.3")
    npm = ("typescript-sdk-1", "typescript-sdk-2", "a2a-js-0.3", "a2a-js-1", "jupyterlab-services")
    models = ("openai", "google-genai", "openai-agents", "langchain", "pydantic-ai", "litellm")
    chosen = [f"--only={name}" for name in (*python, *npm, *models, "veadk")]
    session.run("python", "-m", "tests.real_clients", *chosen, *session.posargs)
    session.run("python", "-m", "tests.vendor", "-q")


@nox.session(default=False)
def fuzz(session: nox.Session) -> None:
    """Schemathesis asks a double what its OpenAPI documents allow and forbid; some five minutes.

    Options of ``schemathesis run`` come after ``--``.
    """
    install(session, "emulator,test")
    session.install("schemathesis>=4.32,<5")
    session.run("python", "-m", "tests.fuzz", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Lint, format, types, layers and dead code."""
    install(session, "emulator,postgres,test,dev")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    session.run("lint-imports")
    session.run("vulture")


def install(session: nox.Session, extras: str, *options: str) -> None:
    session.chdir(ROOT)
    session.install(*options, "-e", f".[{extras}]")
    session.install("pip")  # tests of what is installed call it, and an environment of uv has none


def pytest(session: nox.Session, *chosen: str) -> None:
    run_tests(session, "python", "-m", "pytest", "-q", *chosen, *session.posargs)


def run_tests(session: nox.Session, *command: str) -> None:
    """Run a command that ends in pytest; run its failed tests once more, one after the other.

    If all of them then pass, the session passes and their names go into FLAKY.
    """
    LAST_FAILED.unlink(missing_ok=True)
    try:
        session.run(*command)
    except CommandFailed:
        if not LAST_FAILED.exists():  # pytest did not come to its end
            raise
        failed = list(json.loads(LAST_FAILED.read_text("utf-8")))
        if not 0 < len(failed) <= MOST_FLAKY:
            raise
        session.warn(f"Once more, alone: {', '.join(failed)}")
        session.run(*command, "--last-failed", "--last-failed-no-failures=none", "-n0")
        with FLAKY.open("a", encoding="utf-8") as file:
            file.writelines(f"{session.name}: {name}\n" for name in failed)
