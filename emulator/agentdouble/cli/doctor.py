"""``agentdouble doctor``: what this machine offers, and how to get what is missing.

It runs code in a double, because code may fail even if everything is installed. Only that, the
system and the settings decide its exit code. Packages that take most of a second to import are
only looked up.
"""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx
import typer
from rich.console import Console
from rich.text import Text

from agentdouble.core import terminal
from agentdouble.errors import AgentDoubleError
from agentdouble.processes import isolation
from agentdouble.sandbox.browser import chromium
from agentdouble.sandbox.javascript import deno

_NO_DOUBLE: ImportError | None = None
try:
    from agentdouble.emulator import Emulator
    from agentdouble.settings import Settings
except ImportError as error:  # the extra emulator is not installed
    _NO_DOUBLE = error

_PATIENCE_S = 30
BASH_REMEDY = "apt-get install bash (Debian), apk add bash (Alpine)"
_COLUMN = 15
_PROMPT = "```python\nprint(6 * 7)\n```"
_SYSTEMS = {"linux": "Linux", "darwin": "macOS, without the isolation of Linux"}
# The double of the trial answers only on this machine, keeps nothing and starts nothing else.
_TRIAL: dict[str, Any] = {
    "host": "127.0.0.1",
    "port": 0,
    "api_key": None,
    "tls": False,
    "state": "memory",
    "agents": None,
    "runtimes": (),
    "faults": (),
    "pool_size": 0,
}


@dataclass(frozen=True)
class DoctorFinding:
    """One thing that a machine offers or lacks.

    ``id`` never changes, and ``remedy`` says how to get what is missing. Without an ``essential``
    thing no double runs; without another one a feature is missing.
    """

    id: str
    name: str
    says: str
    good: bool = True
    remedy: str | None = None
    essential: bool = False


def show(*, as_json: bool) -> int:
    """Print what this machine offers; return the exit code: 0 if a double can run here."""
    findings: list[tuple[str, DoctorFinding]] = []
    console = terminal.console(highlight=False, soft_wrap=True, quiet=as_json)
    with console.status("Trying what this machine offers"):
        for title, section in _SECTIONS:
            section_findings = [*section()]
            findings += [(title, finding) for finding in section_findings]
            _print(console, title, section_findings)
    missing = [finding.name for _, finding in findings if finding.essential and not finding.good]
    if as_json:
        flat = [{"section": title, **asdict(finding)} for title, finding in findings]
        typer.echo(json.dumps({"can_run": not missing, "findings": flat}, indent=2))
    elif missing:
        names = ", ".join(missing)
        console.print(f"No double can run here. Missing: {names}.", style="bold red")
    else:
        optional = sum(not finding.good for _, finding in findings)
        note = f" Optional and missing, marked ○: {optional}." if optional else ""
        console.print(Text("A double can run here.", style="bold green").append(note, style=""))
    return 1 if missing else 0


def _print(console: Console, title: str, findings: Sequence[DoctorFinding]) -> None:
    console.print(title, style="bold")
    for finding in findings:
        mark = ("✘", "bold red") if finding.essential else ("○", "yellow")
        mark = ("✔", "green") if finding.good else mark
        name = f"{finding.name:<{_COLUMN}}"
        console.print(Text.assemble("  ", mark, " ", name, finding.says))
        if finding.remedy:
            console.print(Text(f"    {'':<{_COLUMN}}{finding.remedy}", style="cyan"))
    console.print()


def _running() -> Iterator[DoctorFinding]:
    """Look at Python and the system, read the settings, and run code in a double."""
    text = f"{platform.python_version()} at {sys.executable}"
    yield DoctorFinding("python", "Python", text, essential=True)
    system = _SYSTEMS.get(sys.platform)
    if system is None:
        reason, remedy = f"the sandbox does not run on {sys.platform}", "use Linux, macOS, or WSL"
        yield _missing("system", "system", reason, remedy, essential=True)
        return
    text = f"{system} ({platform.machine()})"
    yield DoctorFinding("system", "system", text, essential=True)
    if _NO_DOUBLE is not None:
        yield _missing("double", "double", _NO_DOUBLE, _extra("emulator"), essential=True)
        return
    try:
        settings = Settings.load()
    except AgentDoubleError as error:
        yield _missing("settings", "settings", error, "correct this setting", essential=True)
        return
    file = Path("agentdouble.toml")
    text = f"from {file.resolve()}" if file.exists() else f"the defaults; there is no {file} here"
    yield DoctorFinding("settings", "settings", text, essential=True)
    yield _trial(settings)


def _trial(settings: Settings) -> DoctorFinding:
    remedy = "agentdouble demo shows where it stops"
    started = time.monotonic()
    try:
        with (
            Emulator(settings=settings.model_copy(update=_TRIAL)) as double,
            httpx.Client(trust_env=False, timeout=_PATIENCE_S) as client,
        ):
            headers = {"user_id": "doctor", "session_id": "trial"}
            url = f"{double.url}/invoke"
            response = client.post(url, json={"prompt": _PROMPT}, headers=headers)
    except Exception as error:  # report any error
        return _missing("double", "double", error, remedy, essential=True)
    answer = str(response.json()) if response.is_success else response.text
    if answer != "42":
        reason = f"it answered {answer[:200]}"
        return _missing("double", "double", reason, remedy, essential=True)
    text = f"started, ran code and stopped in {time.monotonic() - started:.1f} s"
    return DoctorFinding("double", "double", text, essential=True)


def _sandbox() -> Iterator[DoctorFinding]:
    """Try bash, the JavaScript engine and the browser."""
    bash = shutil.which("bash")
    if bash is None:
        reason = "no bash, so neither commands nor terminals"
        yield _missing("bash", "bash", reason, BASH_REMEDY)
    else:
        yield DoctorFinding("bash", "bash", f"{_version_of(bash)} at {bash}")
    try:
        text = f"and TypeScript: {_version_of(deno.find())} at {deno.find()}"
        yield DoctorFinding("javascript", "JavaScript", text)
    except deno.DenoMissingError:
        yield _missing("javascript", "JavaScript", "deno is not installed", _extra("emulator"))
    except (OSError, subprocess.SubprocessError) as error:
        yield _missing("javascript", "JavaScript", error, _extra("emulator"))
    name = _browser_setting()
    path = chromium.find(name)
    if path is None:
        yield _missing("browser", "browser", f"no {name or 'Chromium'}", chromium.INSTALL)
        return
    try:
        yield DoctorFinding("browser", "browser", f"{_version_of(path)} at {path}")
    except (OSError, subprocess.SubprocessError) as error:
        yield _missing("browser", "browser", error, chromium.INSTALL)


def _browser_setting() -> str | None:
    try:
        return None if _NO_DOUBLE is not None else Settings.load().browser
    except AgentDoubleError:
        return None


def _isolation() -> Iterator[DoctorFinding]:
    """Try every measure in a separate process."""
    try:
        measures = isolation.find_out().measures.values()
    except OSError as error:  # the machine lacks a resource now
        reason = f"the probe failed: {error}"
        yield _missing("isolation", "isolation", reason, "Try again when resources are free.")
        return
    for measure in measures:
        id_ = f"isolation.{measure.name}"
        if measure.available:
            yield DoctorFinding(id_, measure.name, measure.effect)
        else:
            yield _missing(id_, measure.name, measure.why_not, measure.remedy or "")


_SECTIONS: tuple[tuple[str, Callable[[], Iterator[DoctorFinding]]], ...] = (
    ("Running a double", _running),
    ("In the sandbox", _sandbox),
    ("Isolation of sessions", _isolation),
)


def _version_of(command: str) -> str:
    """Return the version that a program prints; raise OSError or SubprocessError if it fails."""
    done = subprocess.run(  # noqa: S603 (programs that the double would run too)
        [command, "--version"],
        capture_output=True,
        check=True,
        errors="replace",
        timeout=_PATIENCE_S,
    )
    return done.stdout.strip().partition("\n")[0].partition("(")[0].strip()


def _missing(
    id: str,  # noqa: A002
    name: str,
    reason: object,
    remedy: str,
    *,
    essential: bool = False,
) -> DoctorFinding:
    first, *_ = str(reason).strip().splitlines() or ["?"]
    return DoctorFinding(id, name, f"not here: {first}", False, remedy, essential)


def _extra(name: str) -> str:
    return f"pip install 'agentdouble[{name}]'"
