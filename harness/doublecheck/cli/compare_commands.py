"""The command that compares two platforms: twin."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from doublecheck.cli import options

TWIN_EXAMPLES = """
[bold]Examples[/bold]

  doublecheck twin --url https://agent.example.com --target live

  doublecheck twin --url ... --target live --allow-writes --app my.module:app --html twin.html

  doublecheck twin --url ... --target live --allow-writes --profile profile.toml

  doublecheck twin --url http://127.0.0.1:8001 --script conversation.toml --json

Without --allow-writes it only reads from a live platform, and says what it left out. Sessions that it makes are removed. A profile, which doublecheck calibrate writes, makes the double answer as a deployment does where the specification leaves that open.

[bold]Exit codes[/bold]  0: the same, but for what the specification leaves open, 1: they diverge, 2: wrong usage, 3: a platform could not be asked, 5: nothing was compared
"""


@options.with_facts(
    *("target", "url", "config", "allow_writes"),
    url="The address of the platform to compare the double with.",
)
def twin(
    double: options.Double = None,
    apps: options.Apps = None,
    profile: options.Profile = None,
    script: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The requests, in TOML (default: some on every surface)."
        ),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The agent to run (default: one that both have)."),
    ] = None,
    html: options.Html = None,
    as_json: options.AsJson = False,
    **platform: Any,
) -> None:
    """Send the same requests to a double and to another platform and print the differences."""
    from doublecheck.twins import command

    code = command.twin(
        command.PlatformOptions(**platform),
        command.DoubleOptions(double, apps or (), profile),
        script,
        command.OutputOptions(html, as_json),
        agent,
    )
    raise typer.Exit(code)
