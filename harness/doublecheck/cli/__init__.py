"""The command line ``doublecheck``.

``commands`` has the commands, ``options`` the options that several commands share, and
``completion`` what a shell completes. Each command imports the package that does its work only when
it runs, so that ``--help`` is fast.

This package is at the top: it may use every other one except ``plugin``, ``fixtures`` and
``notebook``, and none may import it.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from agentdouble import __version__
from agentdouble.core.terminal import help_text
from doublecheck.cli import commands
from doublecheck.core.exit_codes import ExitCode
from doublecheck.errors import (
    CalibrationError,
    DoubleCheckError,
    FolderError,
    ReportError,
    TargetError,
)

EXAMPLES = help_text("""
Examples:
  doublecheck run                              a new double, clause by clause
  doublecheck run --url https://agent.example.com --target live
  doublecheck twin --url https://agent.example.com --target live
  doublecheck calibrate --url https://agent.example.com --target live
  doublecheck COMMAND --help                   examples, options, codes

--target live confirms that the platform is live; nothing on it changes without --allow-writes. For
your own tests, pytest has the same options: --platform-url URL --platform-target live.
""")

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # the same help everywhere, which fits 80 columns
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


app.command(epilog=commands.RUN_EXAMPLES)(commands.run)
app.command(epilog=commands.REPORT_EXAMPLES)(commands.report)
app.add_typer(commands.contracts_app, name="contracts")
app.command(epilog=commands.TWIN_EXAMPLES)(commands.twin)
app.command(epilog=commands.CALIBRATE_EXAMPLES)(commands.calibrate)


_WRONG_USAGE = (CalibrationError, FolderError, ReportError, TargetError)


def main() -> None:
    """Run the command line. Print our own errors as one line on stderr, without a traceback."""
    try:
        app(prog_name="doublecheck")
    except DoubleCheckError as error:
        print(f"doublecheck: {error}", file=sys.stderr)  # noqa: T201 (this is the terminal)
        wrong = isinstance(error, _WRONG_USAGE)
        sys.exit(ExitCode.WRONG_USAGE if wrong else ExitCode.COULD_NOT_ASK)
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    except BrokenPipeError:  # the reader of the pipe has closed it, as head does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
