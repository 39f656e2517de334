"""``doublecheck run``: its options."""

from __future__ import annotations

from typing import Annotated

import typer

from doublecheck.cli import options

EXAMPLES = """
[bold]Examples[/bold]

  doublecheck run                                 a double of its own

  doublecheck run --url http://127.0.0.1:8000     a double that runs already

  doublecheck run --url https://agent.example.com --target live

  doublecheck run --target staging                \\[tool.doublecheck.targets.staging] of pyproject.toml

  doublecheck run --target double --target staging

  doublecheck run -k "INV or PRB"                 the clauses of two groups

  doublecheck run --json > double.json            kept for [bold]doublecheck report[/bold]

  doublecheck run --html report.html --junit report.xml

[bold]Keys[/bold]  PLATFORM_ACCESS_KEY, PLATFORM_SECRET_KEY, PLATFORM_TOOL_ID; DOUBLECHECK_API_KEY,
and DOUBLECHECK_OTHER_API_KEY of another identity at runtimes

[bold]Exit codes[/bold]  0: no check failed, 1: one did, 2: wrong usage, 3: not carried out, 130: interrupted
"""

WHERE = "Where the platform is, and how it is asked"


def run(
    target: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TARGET",
            help="double, live, or a target of the configuration (default: double); repeatable.",
            rich_help_panel=WHERE,
        ),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where the platform runs (default: a double is started).",
            rich_help_panel=WHERE,
        ),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A TOML file with targets.", rich_help_panel=WHERE),
    ] = None,
    api_server: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where its API server is (default: at --url).",
            rich_help_panel=WHERE,
        ),
    ] = None,
    control_plane: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where its control plane is (default: at --url).",
            rich_help_panel=WHERE,
        ),
    ] = None,
    mcp: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where its MCP application and services are, without /mcp.",
            rich_help_panel=WHERE,
        ),
    ] = None,
    a2a: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where its A2A application is (default: at --url).",
            rich_help_panel=WHERE,
        ),
    ] = None,
    offers: Annotated[
        str | None,
        typer.Option(
            metavar="SURFACES",
            help="What it has, with commas between: application,api_server.",
            rich_help_panel=WHERE,
        ),
    ] = None,
    tool_id: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="The sandbox tool that code runs in.", rich_help_panel=WHERE
        ),
    ] = None,
    region: Annotated[
        str | None,
        typer.Option(
            metavar="REGION",
            help="The region that its control plane is asked for.",
            rich_help_panel=WHERE,
        ),
    ] = None,
    ca_file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The certificates to trust.", rich_help_panel=WHERE),
    ] = None,
    emulator_command: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Start the double with this command instead.",
            rich_help_panel=WHERE,
        ),
    ] = None,
    reference_app: Annotated[
        bool,
        typer.Option(
            "--reference-app",
            help="It runs the checks' reference application.",
            rich_help_panel=WHERE,
        ),
    ] = False,
    allow_writes: Annotated[
        bool,
        typer.Option(
            "--allow-writes",
            help="Make and delete on it, though it is live.",
            rich_help_panel=WHERE,
        ),
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
    as_json: options.AsJson = False,
    html: options.Html = None,
    junit: options.Junit = None,
) -> None:
    """Check a platform clause by clause and print what came out."""
    from doublecheck.reports.outputs import Outputs
    from doublecheck.runner import run_command as checking

    platform = {
        "url": url,
        "config": config,
        "api_server": api_server,
        "control_plane": control_plane,
        "mcp": mcp,
        "a2a": a2a,
        "offers": offers,
        "tool_id": tool_id,
        "region": region,
        "ca_file": ca_file,
        "emulator_command": emulator_command,
        "reference_app": reference_app or None,
        "allow_writes": allow_writes or None,
    }
    orders = [
        checking.Order({"target": one, **platform}, select, verbose, strict_should)
        for one in (dict.fromkeys(target) if target else (None,))
    ]
    code = checking.check(orders, Outputs(as_json, html, junit))
    raise typer.Exit(code)
