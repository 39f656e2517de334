"""``agentdouble doctor``: what this machine offers the double, and what would bring the rest."""

from __future__ import annotations

import json
import platform
import sys
from dataclasses import asdict, dataclass

import typer
from rich.console import Console
from rich.text import Text

from agentdouble.errors import MissingExtraError

try:
    from agentdouble.sandbox import isolation
    from agentdouble.sandbox.kernels import FORK, provisioner
    from agentdouble.settings import Settings
except ModuleNotFoundError as error:
    if (error.name or "").startswith("agentdouble"):
        raise
    raise MissingExtraError("The double", extra="emulator") from error


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
    """Look at this machine: Python, kernels, isolation."""
    return [_python(), _kernels(), *_isolation()]


def _python() -> Finding:
    return Finding("Python", f"{platform.python_version()} at {sys.executable}", good=True)


def _kernels() -> Finding:
    name = provisioner(Settings.load())
    if name == FORK:
        return Finding("kernels", "forked from a warm process, in some 40 ms", good=True)
    return Finding("kernels", f"started by {name}, in some 400 ms", good=True)


def _isolation() -> list[Finding]:
    return [
        Finding(measure.name, measure.gives, good=True)
        if measure.available
        else Finding(measure.name, f"not here: {measure.why_not}", False, measure.remedy)
        for measure in isolation.find_out().measures.values()
    ]
