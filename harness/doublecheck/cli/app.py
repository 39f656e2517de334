"""The commands of ``doublecheck``, each a module of its own."""

from __future__ import annotations

from typing import Annotated

import typer

from doublecheck.cli import (
    calibrate_command,
    contracts_command,
    record_command,
    replay_command,
    report_command,
    run_command,
    save_command,
    twin_command,
)

EXAMPLES = """
[bold]Examples[/bold]

  doublecheck run                                 a double of its own, clause by clause

  doublecheck run --url https://agent.example.com --target live

  doublecheck twin --url https://agent.example.com --target live

  doublecheck calibrate --url https://agent.example.com --target live

  doublecheck record --url https://agent.example.com --target live -o recording.jsonl

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


def _version(wanted: bool) -> None:
    if wanted:
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


app.command(epilog=run_command.EXAMPLES)(run_command.run)
app.command(epilog=report_command.EXAMPLES)(report_command.report)
app.add_typer(contracts_command.contracts_app, name="contracts")
app.command(epilog=twin_command.EXAMPLES)(twin_command.twin)
app.command(epilog=record_command.EXAMPLES)(record_command.record)
app.command(epilog=replay_command.EXAMPLES)(replay_command.replay)
app.command("save-test", epilog=save_command.EXAMPLES)(save_command.save_test)
app.command(epilog=calibrate_command.EXAMPLES)(calibrate_command.calibrate)
