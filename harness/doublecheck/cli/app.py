"""The application of ``doublecheck``: its commands, in the order of its help."""

from __future__ import annotations

from typing import Annotated

import typer

from doublecheck.cli import check_commands, compare_commands

EXAMPLES = """
[bold]Examples[/bold]

  doublecheck run                                 a double of its own, clause by clause

  doublecheck run --url https://agent.example.com --target live

  doublecheck twin --url https://agent.example.com --target live

  doublecheck calibrate --url https://agent.example.com --target live

  doublecheck COMMAND --help                      more of them, options and exit codes

A live platform is meant by --target live, and changed with --allow-writes only. Tests of your own take the same options as pytest --platform-url URL --platform-target live.
"""

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Put an agent platform, or its double, through the same checks.",
    epilog=EXAMPLES,
)


def _version(value: bool) -> None:
    if value:
        from agentdouble import __version__

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
