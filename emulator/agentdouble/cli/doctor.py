"""``agentdouble doctor``: what this machine offers the double, and what would bring the rest."""

from __future__ import annotations

import importlib.util
import json
import platform
import subprocess
import sys
from dataclasses import asdict, dataclass

import typer
from rich.console import Console
from rich.text import Text

from agentdouble.errors import MissingExtraError

try:
    from agentdouble.processes import isolation
    from agentdouble.sandbox import callers
    from agentdouble.sandbox.browser import chromium, driver
    from agentdouble.sandbox.javascript import deno
    from agentdouble.sandbox.kernels import FORK, provisioner
    from agentdouble.settings import Settings
except ModuleNotFoundError as error:
    if (error.name or "").startswith("agentdouble"):
        raise
    raise MissingExtraError("The double", extra="emulator") from error

_PATIENCE_S = 30
_INSTALL_DENO = "pip install 'agentdouble[emulator]'"


@dataclass(frozen=True)
class Finding:
    """One thing that a machine offers or lacks; ``remedy`` is what would bring it."""

    name: str
    says: str
    good: bool
    remedy: str | None = None


def show(*, as_json: bool) -> None:
    """Print what this machine offers."""
    findings = find()
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
        return
    console = Console(highlight=False, soft_wrap=True)
    for finding in findings:
        mark = Text("✔ ", style="green") if finding.good else Text("✘ ", style="bold red")
        console.print(Text.assemble(mark, (f"{finding.name:<14}", "bold"), finding.says))
        if finding.remedy is not None:
            console.print(Text(f"  {'':<14}{finding.remedy}", style="dim"))


def find() -> list[Finding]:
    """Look at this machine: Python, kernels, JavaScript's engine, browsers, isolation."""
    return [
        *(_python(), _kernels(), _javascript()),
        *_browser(),
        *_isolation(),
        *(_callers(), _growth()),
    ]


def _python() -> Finding:
    return Finding("Python", f"{platform.python_version()} at {sys.executable}", good=True)


def _kernels() -> Finding:
    name = provisioner(Settings.load())
    if name == FORK:
        return Finding("kernels", "forked from a warm process, in some 40 ms", good=True)
    return Finding("kernels", f"started by {name}, in some 400 ms", good=True)


def _javascript() -> Finding:
    try:
        command = deno.find()
        answer = subprocess.run(  # noqa: S603 (deno's own command)
            [command, "--version"], capture_output=True, check=True, text=True, timeout=_PATIENCE_S
        )
    except deno.DenoMissingError:
        return Finding("JavaScript", "not here: deno is not installed", False, _INSTALL_DENO)
    except (OSError, subprocess.SubprocessError) as error:
        return Finding("JavaScript", f"not here: {error}", False, _INSTALL_DENO)
    version = answer.stdout.partition("(")[0].strip()
    return Finding("JavaScript", f"{version} at {command}", good=True)


def _isolation() -> list[Finding]:
    return [
        Finding(measure.name, measure.gives, good=True)
        if measure.available
        else Finding(measure.name, f"not here: {measure.why_not}", False, measure.remedy)
        for measure in isolation.find_out().measures.values()
    ]


def _callers() -> Finding:
    if callers.available():
        return Finding("callers", "the double's own routes refuse the code of sessions", good=True)
    remedy = "Linux; elsewhere --api-key keeps that code out"
    return Finding("callers", "not here: code of sessions can reset the double", False, remedy)


def _growth() -> Finding:
    says = "a session whose memory or files grow over their limits is ended when that is seen"
    return Finding("growth", says, good=True)


def _browser() -> list[Finding]:
    return [_chromium(Settings.load().browser), _playwright()]


def _chromium(named: str | None) -> Finding:
    path = chromium.find(named)
    if path is None:
        return Finding("browser", f"not here: {named or 'Chromium'}", False, chromium.INSTALL)
    return Finding("browser", f"{path}, one for each session that asks", good=True)


def _playwright() -> Finding:
    if not _has_playwright():
        what = "not here: no screenshots, no actions"
        return Finding("playwright", what, False, driver.INSTALL)
    return Finding("playwright", "takes screenshots, moves mouse and keyboard", good=True)


def _has_playwright() -> bool:
    try:
        return importlib.util.find_spec("playwright") is not None
    except ValueError:  # a module that something has put there, or taken away
        return False
