"""Whether a double can run here: one is started, and code is run in a session of it."""

from __future__ import annotations

import platform
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from agentdouble.cli.doctor.findings import PATIENCE_S, Finding, extra, lacking
from agentdouble.errors import AgentDoubleError

if TYPE_CHECKING:
    from agentdouble.settings import Settings

_PROMPT = "```python\nprint(6 * 7)\n```"
_SYSTEMS = {"linux": "Linux", "darwin": "macOS, without the isolation of Linux"}
_ELSEWHERE = "run it on Linux or macOS, on Windows in WSL: wsl --install"
_CLOSER = "agentdouble demo shows where it stops"
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


def find() -> list[Finding]:
    """Look at Python and the system, read the settings, and run code in a double."""
    return [_python(), _system(), *_double()]


def _python() -> Finding:
    says = f"{platform.python_version()} at {sys.executable}"
    return Finding("python", "Python", says, essential=True)


def _system() -> Finding:
    says = _SYSTEMS.get(sys.platform)
    if says is None:
        why = f"the sandbox does not run on {sys.platform}"
        return lacking("system", "system", why, _ELSEWHERE, essential=True)
    return Finding("system", "system", f"{says} ({platform.machine()})", essential=True)


def _double() -> list[Finding]:
    try:
        from agentdouble.emulator import Emulator  # noqa: F401
        from agentdouble.settings import Settings
    except ImportError as error:
        return [lacking("double", "double", error, extra("emulator"), essential=True)]
    try:
        settings = Settings.load()
    except AgentDoubleError as error:
        return [lacking("settings", "settings", error, "mend that setting", essential=True)]
    return [_settings(), _trial(settings), _kernels(settings), _sessions(settings)]


def _settings() -> Finding:
    file = Path("agentdouble.toml")
    says = f"of {file.resolve()}" if file.exists() else f"the built-in ones, no {file} here"
    return Finding("settings", "settings", says, essential=True)


def _trial(settings: Settings) -> Finding:
    from agentdouble.emulator import Emulator

    begun = time.monotonic()
    try:
        with Emulator(settings=settings.model_copy(update=_TRIAL)) as double:
            answer = _ask(double.url)
    except Exception as error:  # report any error that prevents it from running
        return lacking("double", "double", error, _CLOSER, essential=True)
    if answer != "42":
        return lacking("double", "double", f"it answered {answer[:200]}", _CLOSER, essential=True)
    taken = f"{time.monotonic() - begun:.1f} s"
    return Finding("double", "double", f"started, ran code and stopped in {taken}", essential=True)


def _ask(url: str) -> str:
    whose = {"user_id": "doctor", "session_id": "trial"}
    with httpx.Client(trust_env=False, timeout=PATIENCE_S) as client:
        answer = client.post(f"{url}/invoke", json={"prompt": _PROMPT}, headers=whose)
    return str(answer.json()) if answer.is_success else answer.text


def _kernels(settings: Settings) -> Finding:
    from agentdouble.sandbox.fork_planner import FORK, provisioner

    name = provisioner(settings)
    how = "forked from a warm process" if name == FORK else f"started by {name}, in some 400 ms"
    return Finding("kernels", "kernels", how)


def _sessions(settings: Settings) -> Finding:
    from agentdouble.sandbox.instances import most_sessions

    most = most_sessions(settings)
    why = "the setting max_instances" if most.resource is None else f"limited by {most.resource}"
    return Finding("sessions", "sessions", f"{most.sessions} at once, {why}")
