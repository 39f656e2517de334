"""``doublecheck run``: its options."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

EXAMPLES = """
[bold]Examples[/bold]

  doublecheck run                                 a double of its own

  doublecheck run --url http://127.0.0.1:8000     a double that runs already

  doublecheck run --url https://agent.example.com --target live

  doublecheck run -k "INV or PRB"                 the clauses of two groups

  doublecheck run --json > report.json

[bold]Keys[/bold]  PLATFORM_ACCESS_KEY, PLATFORM_SECRET_KEY, PLATFORM_TOOL_ID; DOUBLECHECK_API_KEY

[bold]Exit codes[/bold]  0: no check failed, 1: one did, 2: wrong usage, 3: not carried out
"""


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
    allow_writes: Annotated[
        bool,
        typer.Option("--allow-writes", help="Checks may make and delete on it, though it is live."),
    ] = False,
    select: Annotated[
        str | None, typer.Option("-k", metavar="EXPR", help="Only clauses or checks that match.")
    ] = None,
    strict_should: Annotated[
        bool,
        typer.Option("--strict-should", help="What is only recommended fails the run, too."),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Name each check as it runs.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check a platform clause by clause and print what came out."""
    from doublecheck import checking

    code = checking.check(
        checking.Order(
            url,
            target,
            reference_app,
            select,
            verbose=verbose,
            strict_should=strict_should,
            allow_writes=allow_writes,
        ),
        as_json=as_json,
    )
    raise typer.Exit(code)
