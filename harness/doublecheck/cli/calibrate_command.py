"""``doublecheck calibrate``: its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from doublecheck.cli import options

EXAMPLES = """
[bold]Examples[/bold]

  doublecheck calibrate --url https://agent.example.com --target live

  doublecheck calibrate --url ... --target live --allow-writes --reference-app --slow

  doublecheck calibrate --url ... --target live --only U-SESSION-DUPLICATE -o ours.toml

  agentdouble serve --profile profile.toml         a double that behaves like it

[bold]Keys[/bold]  PLATFORM_ACCESS_KEY, PLATFORM_SECRET_KEY, PLATFORM_TOOL_ID; DOUBLECHECK_API_KEY

[bold]Exit codes[/bold]  0: something is settled, 2: wrong usage, 3: nothing is, or nothing answers
"""


def calibrate(
    target: options.Target = None,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="Where the platform runs that is asked.")
    ] = None,
    config: options.Config = None,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The profile; one that is there is added to."
        ),
    ] = Path("profile.toml"),
    allow_writes: options.AllowWrites = False,
    reference_app: Annotated[
        bool, typer.Option("--reference-app", help="It runs the checks' reference application.")
    ] = False,
    slow: Annotated[
        bool,
        typer.Option("--slow", help="Ask what takes minutes, too; it moves a double's clock."),
    ] = False,
    only: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Only this unknown; may be repeated.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Ask a deployment what the specification leaves open and write its profile."""
    from doublecheck.calibration import command as ordering

    options = {
        "url": url,
        "target": target,
        "allow_writes": allow_writes,
        "reference_app": reference_app,
        "config": config,
    }
    code = ordering.calibrate(options, output, only=only or (), slow=slow, as_json=as_json)
    raise typer.Exit(code)
