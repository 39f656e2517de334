"""``doublecheck record``: its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

EXAMPLES = """
[bold]Examples[/bold]

  doublecheck record --url https://agent.example.com --target live -o recording.jsonl

  doublecheck replay recording.jsonl

It listens on this machine alone and passes every request on as it comes. Clients of the control plane sign with the key pair that it prints; it signs for the platform with PLATFORM_ACCESS_KEY and PLATFORM_SECRET_KEY. What is written has no keys, tokens and signatures in it.
"""


def record(
    url: Annotated[str, typer.Option(help="Where the platform runs that is recorded.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file that is written.")],
    target: Annotated[
        Literal["double", "live"],
        typer.Option(help="What runs there; a live platform must be called one."),
    ] = "double",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where to listen (0: any).")] = 0,
) -> None:
    """Stand in front of a platform and record what it is asked and answers."""
    from doublecheck.replaying import ordering

    ordering.record(url, target, output, port)
