"""``doublecheck record``: its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from doublecheck.cli import options

EXAMPLES = """
[bold]Examples[/bold]

  doublecheck record --url https://agent.example.com --target live -o recording.jsonl

  doublecheck replay recording.jsonl

It listens on this machine alone and passes every request on as it comes. Clients of the control plane sign with the key pair that it prints; it signs for the platform with PLATFORM_ACCESS_KEY and PLATFORM_SECRET_KEY. What is written has no keys, tokens and signatures in it.

[bold]Exit codes[/bold]  0: ended by Ctrl-C, 2: wrong usage, 3: not carried out
"""


def record(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The recording, a new file.")
    ],
    target: options.Target = None,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="Where the platform runs that is recorded.")
    ] = None,
    config: options.Config = None,
    port: Annotated[
        int, typer.Option(metavar="PORT", min=0, max=65535, help="Where to listen (0: any).")
    ] = 0,
) -> None:
    """Stand in front of a platform and record what it is asked and answers."""
    from doublecheck.recordings import command as ordering
    from doublecheck.twins.command import PlatformOptions

    ordering.record(PlatformOptions(target, url, config), output, port)
