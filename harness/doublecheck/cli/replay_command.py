"""``doublecheck replay``: its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="A running double (default: one is started).")
    ] = None,
    apps: Annotated[
        list[str] | None,
        typer.Option(
            "--app", metavar="MODULE:APP", help="What the double serves; may be repeated."
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page for browsers as well.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Send what was recorded to a double and print what differs, operation by operation."""
    from doublecheck.replaying import ordering
    from doublecheck.twinning.ordering import Ours, Showing

    code = ordering.replay(recording, Ours(url, apps or ()), Showing(html, as_json))
    raise typer.Exit(code)
