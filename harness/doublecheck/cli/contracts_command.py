"""``doublecheck contracts``: what a platform must run for the checks to look inside."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

EXAMPLES = """
[bold]Examples[/bold]

  doublecheck contracts app                       with agentdouble's decorators

  doublecheck contracts app --for agentkit        with the platform's own SDK

  doublecheck contracts app -o deploy --force

[bold]Exit codes[/bold]  0: written, 2: not written, and why
"""

contracts_app = typer.Typer(no_args_is_help=True, help="The contract checks and what they need.")


@contracts_app.callback()
def _contracts() -> None:
    pass


@contracts_app.command(epilog=EXAMPLES)
def app(
    sdk: Annotated[
        Literal["agentdouble", "agentkit"],
        typer.Option("--for", help="The SDK that the applications are written with."),
    ] = "agentdouble",
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where to write them.")
    ] = Path("reference-app"),
    force: Annotated[
        bool, typer.Option("--force", help="Replace files that are there already.")
    ] = False,
) -> None:
    """Write the reference applications, with what to deploy and how to check them."""
    from doublecheck.contracts import writing

    for path in writing.write(sdk, output, force=force):
        typer.echo(path)
    typer.echo(f"\n{output / 'README.md'} says how to run and check them.", err=True)
