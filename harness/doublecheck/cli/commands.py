"""The commands: run, report, calibrate, contracts and twin."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import doublecheck
from agentdouble.core.terminal import help_text
from doublecheck.cli import completion, options
from doublecheck.contracts import reference_files
from doublecheck.core import atomic_files, exit_codes
from doublecheck.errors import TargetError
from doublecheck.run import command
from doublecheck.target.facts import OPTIONS

RUN_EXAMPLES = help_text(f"""
Examples:
  doublecheck run                              a new double
  doublecheck run --url http://127.0.0.1:8000  a running double
  doublecheck run --url https://agent.example.com --target live
  doublecheck run --url https://agent.example.com --target live --level smoke
  doublecheck run --target staging             a target of pyproject.toml
  doublecheck run --target double --target staging
  doublecheck run --only "INV or PRB"          the clauses of two groups
  doublecheck run --json > double.json         for doublecheck report
  doublecheck run --html report.html
  doublecheck run --target staging --baseline gaps.json

A target is a table of pyproject.toml: [tool.doublecheck.targets.staging]. With a baseline, which is
the output of --json, only what is new fails.

Keys are read from PLATFORM_ACCESS_KEY, PLATFORM_SECRET_KEY, PLATFORM_TOOL_ID, DOUBLECHECK_API_KEY,
and DOUBLECHECK_OTHER_API_KEY for another identity at runtimes.

Exit codes:
{exit_codes.listed()}
""")

REPORT_EXAMPLES = help_text("""
Examples:
  doublecheck run --json > double.json
  doublecheck run --target staging --json > live.json
  doublecheck report double.json live.json
  doublecheck report double.json live.json --html report.html

Exit codes:
  0  shown, whatever the verdicts
  2  a file cannot be read or written
""")

CALIBRATE_EXAMPLES = help_text("""
Examples:
  doublecheck calibrate --url https://agent.example.com --target live
  doublecheck calibrate --url ... --target live --allow-writes --reference-app
  doublecheck calibrate --url ... --target live --only U-LIST-APPS -o our.toml
  agentdouble serve --profile profile.toml     a double that behaves like it

Keys are read from PLATFORM_ACCESS_KEY, PLATFORM_SECRET_KEY, PLATFORM_TOOL_ID and
DOUBLECHECK_API_KEY.

Exit codes:
  0  something is settled
  2  wrong usage
  3  nothing is settled, or no platform answers
""")

APP_EXAMPLES = help_text("""
Examples:
  doublecheck contracts app                    with agentdouble's decorators
  doublecheck contracts app --for agentkit     with the platform's own SDK
  doublecheck contracts app --for adk          for google-adk's API server
  doublecheck contracts app -o deploy --force

Exit codes:
  0  written
  2  not written
""")

contracts_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="The contract checks and what they need."
)

TWIN_EXAMPLES = help_text("""
Examples:
  doublecheck twin --url https://agent.example.com --target live
  doublecheck twin --url ... --target live --allow-writes --app my.module:app
  doublecheck twin --url ... --target live --allow-writes --agents agents
  doublecheck twin --url ... --target live --profile profile.toml
  doublecheck twin --url http://127.0.0.1:8001 --json

Without --allow-writes it only reads from a live platform, and lists what it skipped. The sandbox
sessions that it creates are removed. A profile from doublecheck calibrate makes the double answer
like a deployment where the specification is open.

Exit codes:
  0  the same, except where the specification is open
  1  they diverge
  2  wrong usage
  3  a platform did not answer
  5  nothing was compared
""")


@options.with_facts(*(fact.name for fact in OPTIONS))
def run(
    target: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TARGET",
            autocompletion=completion.targets,
            help="double, live, or a target of the configuration (default: double); repeatable.",
        ),
    ] = None,
    select: Annotated[
        str | None,
        typer.Option(
            "--only",
            "-k",
            metavar="EXPR",
            help="Only clauses or checks that match.",
            autocompletion=completion.clauses,
        ),
    ] = None,
    strict_should: Annotated[
        bool,
        typer.Option("--strict-should", help="Make failed recommendations (should) fail the run."),
    ] = False,
    baseline: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A JSON report of an earlier run; its failures are known and do not fail this run.",
        ),
    ] = None,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            "-v",
            help="Print each check as it runs, a row per clause, and details of failures.",
        ),
    ] = False,
    as_json: options.AsJson = False,
    html: options.Html = None,
    **platform: Any,
) -> None:
    """Check a platform clause by clause and print the results."""
    runs = [
        command.RunOptions({"target": name, **platform}, select, verbose, strict_should, baseline)
        for name in (dict.fromkeys(target) if target else (None,))
    ]
    code = command.run_checks(runs, command.Outputs(as_json, html, verbose))
    raise typer.Exit(code)


def report(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Reports printed by --json.")
    ],
    as_json: options.AsJson = False,
    html: options.Html = None,
) -> None:
    """Show the reports of several runs side by side, clause by clause."""
    from doublecheck.reports import document  # slow: 0.4 s

    outputs = command.Outputs(as_json, html)
    outputs.require_writable()
    outputs.write([report for file in files for report in document.read(file)])


@options.with_facts(
    *("target", "url", "allow_writes", "reference_app"),
    url="The address of the platform to calibrate.",
)
def calibrate(
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help=("The profile to write; an existing one is extended."),
        ),
    ] = Path("profile.toml"),
    slow: Annotated[
        bool,
        typer.Option(
            "--slow", help="Also run probes that take minutes; on a double they move the clock."
        ),
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            "-k",
            metavar="ID",
            help="Only this unknown; may be repeated.",
            autocompletion=completion.unknowns,
        ),
    ] = None,
    as_json: options.AsJson = False,
    **platform: Any,
) -> None:
    """Measure what the specification leaves open, and write a profile.

    The profile makes a double behave like the deployment.
    """
    from doublecheck.calibration.command import calibrate as calibrate_  # slow: 0.4 s

    code = calibrate_(platform, output, only=only or (), slow=slow, as_json=as_json)
    raise typer.Exit(code)


@contracts_app.callback()
def _contracts() -> None:
    pass


@contracts_app.command(epilog=APP_EXAMPLES)
def app(
    sdk: Annotated[
        Literal["agentdouble", "agentkit", "adk"],
        typer.Option("--for", help="The SDK that the applications use."),
    ] = "agentdouble",
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="The folder to write to.")
    ] = Path("reference-app"),
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
) -> None:
    """Write the reference applications and how to deploy and check them."""
    for path in reference_files.write(sdk, output, force=force):
        typer.echo(path)
    typer.echo(f"\nSee {output / 'README.md'} for how to run and check them.", err=True)


@options.with_facts(
    *("target", "url", "allow_writes"),
    url="The address of the platform to compare the double with.",
)
def twin(
    double: options.Double = None,
    apps: options.Apps = None,
    agents: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The agents directory that the double serves."),
    ] = None,
    profile: options.Profile = None,
    agent: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The agent to run (default: one that both have)."),
    ] = None,
    html: options.Html = None,
    as_json: options.AsJson = False,
    **platform: Any,
) -> None:
    """Send a double and a platform the same requests and compare.

    It prints the differences of their answers.
    """
    from doublecheck.client import transport  # slow: httpx
    from doublecheck.compare import page, rendering, twin  # slow: 0.5 s

    if html is not None and not html.parent.is_dir():
        raise TargetError(f"The folder {html.parent} for {html.name} does not exist.")
    live = twin.configured(**platform)
    with (
        twin.double_of(double, apps or (), profile, agents) as target,
        doublecheck.Platform(target) as double_platform,
        doublecheck.Platform(live, longest_answer_s=transport.LONGEST_ANSWER_S) as live_platform,
    ):
        comparison = twin.compare(
            double_platform,
            live_platform,
            None,
            agent,
            live.allow_writes,
            _progress,
            own_agents=double is None and agents is None,
        )
    if html is not None:
        try:
            atomic_files.write(html, page.render(comparison))
        except OSError as error:
            raise TargetError(f"{html} cannot be written: {error.strerror}.") from None
    if as_json:
        print(json.dumps(rendering.document(comparison), indent=2))  # noqa: T201
    else:
        rendering.show(comparison)
    raise typer.Exit(comparison.exit_code)


def _progress(count: int, total: int, name: str) -> None:
    if sys.stderr.isatty():
        print(f"{count}/{total} {name}", file=sys.stderr)  # noqa: T201
