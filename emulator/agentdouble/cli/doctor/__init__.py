"""``agentdouble doctor``: what this machine offers the double, and how to get the rest.

It runs code in a double, because code may fail even if everything is installed. Only that, the
system and the settings decide its exit code. Packages that take most of a second to import are
only looked up.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict

import typer
from rich.console import Console
from rich.text import Text

from agentdouble.cli.doctor import further, isolating, keeping, running, sandbox
from agentdouble.cli.doctor.findings import Finding, Section

_ESSENTIAL = "Running a double"
_SECTIONS: tuple[tuple[str, Callable[[], list[Finding]]], ...] = (
    (_ESSENTIAL, running.find),
    ("In the sandbox", sandbox.find),
    ("Sessions held apart", isolating.find),
    ("Keeping state", keeping.find),
    ("Protocols", further.protocols),
    ("Notebooks", further.notebooks),
    ("Tests of this project", further.tests),
)
_COLUMN = 15


def show(*, as_json: bool) -> int:
    """Print what this machine offers; return the exit code: 0 if a double can run here."""
    sections = [*find()] if as_json else [*_printing(find())]
    can_run = not _missing(sections)
    if as_json:
        typer.echo(json.dumps({"can_run": can_run, "findings": _flat(sections)}, indent=2))
    return 0 if can_run else 1


def find() -> Iterator[Section]:
    """Yield the findings section by section; two sections are examined at the same time."""
    with ThreadPoolExecutor(2) as looking:
        begun = [(title, looking.submit(findings)) for title, findings in _SECTIONS]
        for title, future in begun:
            yield Section(title, _told(title, future))


def _told(title: str, looked: Future[list[Finding]]) -> Sequence[Finding]:
    """Return the findings of a section; an unexpected error is a finding too."""
    try:
        return looked.result()
    except Exception as error:
        says = f"this could not be looked at: {type(error).__name__}: {error}"
        id_ = f"failed-{title.split()[0].lower()}"
        return [Finding(id_, title, says, good=False, essential=title == _ESSENTIAL)]


def _missing(sections: Sequence[Section]) -> list[Finding]:
    """Return the missing findings without which no double can run."""
    every = (finding for section in sections for finding in section.findings)
    return [finding for finding in every if finding.essential and not finding.good]


def _flat(sections: Sequence[Section]) -> list[dict[str, object]]:
    return [
        {"section": section.title, **asdict(finding)}
        for section in sections
        for finding in section.findings
    ]


def _printing(sections: Iterator[Section]) -> Iterator[Section]:
    """Print each section as soon as it is found, and the conclusion at the end."""
    console = Console(highlight=False, soft_wrap=True)
    found = []
    with console.status("Trying what this machine offers"):
        for section in sections:
            _print(console, section)
            found.append(section)
            yield section
    _conclude(console, found)


def _print(console: Console, section: Section) -> None:
    console.print(Text(section.title, style="bold"))
    for finding in section.findings:
        says = Text.assemble("  ", _mark(finding), " ", f"{finding.name:<{_COLUMN}}", finding.says)
        console.print(says)
        if finding.remedy:
            console.print(Text(f"    {'':<{_COLUMN}}{finding.remedy}", style="cyan"))
    console.print()


def _mark(finding: Finding) -> Text:
    if finding.good:
        return Text("✔", style="green")
    return Text("✘", style="bold red") if finding.essential else Text("○", style="yellow")


def _conclude(console: Console, sections: Sequence[Section]) -> None:
    missing = _missing(sections)
    if missing:
        names = ", ".join(finding.name for finding in missing)
        console.print(Text(f"No double can run here. What it lacks: {names}.", style="bold red"))
        return
    optional = sum(not one.good for section in sections for one in section.findings)
    rest = f" What is marked ○ ({optional}) would add to it." if optional else ""
    console.print(Text("A double can run here.", style="bold green").append(rest, style="default"))
