"""``doublecheck replay``: its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from doublecheck.cli import options

EXAMPLES = """
[bold]Examples[/bold]

  doublecheck replay recording.jsonl --app my.module:app

  doublecheck replay recording.jsonl --url http://127.0.0.1:8000 --html replay.html

[bold]Exit codes[/bold]  0: the same, but for what the specification leaves open, 1: they diverge, 2: wrong usage, 3: not carried out
"""


def replay(
    recording: Annotated[
        Path, typer.Argument(metavar="FILE", help="What doublecheck record has written.")
    ],
    url: options.Double = None,
    apps: options.Apps = None,
    html: options.Html = None,
    as_json: options.AsJson = False,
) -> None:
    """Send what was recorded to a double and print what differs, operation by operation."""
    from doublecheck.recordings import command as ordering
    from doublecheck.twins.command import DoubleOptions, OutputOptions

    code = ordering.replay(recording, DoubleOptions(url, apps or ()), OutputOptions(html, as_json))
    raise typer.Exit(code)
