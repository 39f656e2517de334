"""``doublecheck report``: its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from doublecheck.cli import options

EXAMPLES = """
[bold]Examples[/bold]

  doublecheck run --json > double.json

  doublecheck run --url https://agent.example.com --target live --json > live.json

  doublecheck report double.json live.json

  doublecheck report double.json live.json --html report.html

[bold]Exit codes[/bold]  0: told, whatever the verdicts, 2: a file that cannot be read or written
"""


def report(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Reports that --json has printed.")
    ],
    as_json: options.AsJson = False,
    html: options.Html = None,
    junit: options.Junit = None,
) -> None:
    """Put the reports of several runs side by side, clause by clause."""
    from doublecheck.reports import parse as reading
    from doublecheck.reports.outputs import Outputs

    outputs = Outputs(as_json, html, junit)
    outputs.require_writable()
    outputs.give([report for file in files for report in reading.read(file)])
