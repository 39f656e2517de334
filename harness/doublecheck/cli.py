"""The command line: ``doublecheck run``."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Literal

import typer

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Put an agent platform, or its double, through the same checks.",
    epilog="Try it on a double of its own first: [bold]doublecheck run[/bold]",
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


_RUN_EXAMPLES = """
[bold]Examples[/bold]

  doublecheck run                                 a double of its own

  doublecheck run --url http://127.0.0.1:8000     a double that runs already

  doublecheck run --url https://agent.example.com --target live

  doublecheck run -k "INV or PRB"                 the clauses of two groups

  doublecheck run --json > report.json

[bold]Keys[/bold]  PLATFORM_ACCESS_KEY, PLATFORM_SECRET_KEY, PLATFORM_TOOL_ID; DOUBLECHECK_API_KEY

[bold]Exit codes[/bold]  0: no check failed, 1: one did, 2: wrong usage, 3: not carried out
"""


@app.command(epilog=_RUN_EXAMPLES)
def run(
    url: Annotated[
        str | None, typer.Option(help="Where the platform runs (default: a double is started).")
    ] = None,
    target: Annotated[
        Literal["double", "live"],
        typer.Option(help="What runs there; a live platform must be called one."),
    ] = "double",
    reference_app: Annotated[
        bool, typer.Option("--reference-app", help="It runs the checks' reference application.")
    ] = False,
    select: Annotated[
        str | None, typer.Option("-k", metavar="EXPR", help="Only clauses or checks that match.")
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Name each check as it runs.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check a platform clause by clause and print what came out."""
    from doublecheck import checking

    code = checking.check(
        checking.Order(url, target, reference_app, select, verbose=verbose), as_json=as_json
    )
    raise typer.Exit(code)


def main() -> None:
    """Run the command line; an error of ours is one line on stderr, never a traceback."""
    from doublecheck.errors import DoubleCheckError, TargetError

    try:
        app(prog_name="doublecheck")
    except DoubleCheckError as error:
        print(f"doublecheck: {error}", file=sys.stderr)  # noqa: T201 (this is the terminal)
        sys.exit(2 if isinstance(error, TargetError) else 3)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # the reader of a pipe went away, as head does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
