"""``doublecheck save-test``: its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """
[bold]Examples[/bold]

  curl -s 'http://127.0.0.1:8000/_emulator/journal?bodies=true' > journal.json

  doublecheck save-test journal.json -o test_conversation.py

  doublecheck save-test recording.jsonl -o test_recorded.py

[bold]Exit codes[/bold]  0: written, 2: not written, and why
"""


def save_test(
    source: Annotated[
        Path, typer.Argument(metavar="FILE", help="A double's journal, or a recording.")
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="The test, a new file: test_*.py."),
    ],
) -> None:
    """Write a pytest test that asks again what was asked, and asserts what was answered."""
    from doublecheck.saved_tests import module, sources

    typer.echo(module.save(sources.read(source), output))
