"""The ``doublecheck`` application with its commands, in the order of its help text."""

from __future__ import annotations

from typing import Annotated

import typer

from agentdouble import __version__
from doublecheck.cli import check_commands, compare_commands

EXAMPLES = """
[bold]Examples[/bold]

  doublecheck run                                 a new double, clause by clause

  doublecheck run --url https://agent.example.com --target live

  doublecheck twin --url https://agent.example.com --target live

  doublecheck calibrate --url https://agent.example.com --target live

  doublecheck COMMAND --help                      more examples, options, exit codes

--target live confirms that the platform is live; nothing on it changes without --allow-writes. For your own tests, pytest has the same options: --platform-url URL --platform-target live.
"""

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Run the same checks on an agent platform and on its double.",
    epilog=EXAMPLES,
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"doublecheck {__version__}")
        raise typer.Exit


@app.callback()
def _doublecheck(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


app.command(epilog=check_commands.RUN_EXAMPLES)(check_commands.run)
app.command(epilog=check_commands.REPORT_EXAMPLES)(check_commands.report)
app.add_typer(check_commands.contracts_app, name="contracts")
app.command(epilog=compare_commands.TWIN_EXAMPLES)(compare_commands.twin)
app.command(epilog=check_commands.CALIBRATE_EXAMPLES)(check_commands.calibrate)
