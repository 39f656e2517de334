"""``doublecheck twin``: its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from doublecheck.cli import options

EXAMPLES = """
[bold]Examples[/bold]

  doublecheck twin --url https://agent.example.com --target live

  doublecheck twin --url ... --target live --allow-writes --app my.module:app --html twin.html

  doublecheck twin --url http://127.0.0.1:8001 --script conversation.toml --json

[bold]Exit codes[/bold]  0: the same, but for what the specification leaves open, 1: they diverge, 2: wrong usage, 3: not carried out
"""


def twin(
    target: options.Target = None,
    url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Where the platform runs that the double is held to."),
    ] = None,
    config: options.Config = None,
    double: options.Double = None,
    apps: options.Apps = None,
    script: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="What is said, in TOML (default: something on every surface)."
        ),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The agent that is run (default: one that both have)."),
    ] = None,
    allow_writes: options.AllowWrites = False,
    html: options.Html = None,
    as_json: options.AsJson = False,
) -> None:
    """Say the same to a double and to another platform and print what differs."""
    from doublecheck.twins import command as ordering

    code = ordering.twin(
        ordering.PlatformOptions(target, url, config, allow_writes or None),
        ordering.DoubleOptions(double, apps or ()),
        script,
        ordering.OutputOptions(html, as_json),
        agent,
    )
    raise typer.Exit(code)
