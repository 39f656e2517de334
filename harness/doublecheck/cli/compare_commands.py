"""The command that compares two platforms: twin."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

import doublecheck
from doublecheck.cli import options
from doublecheck.core import atomic_files
from doublecheck.errors import TargetError

TWIN_EXAMPLES = """
[bold]Examples[/bold]

  doublecheck twin --url https://agent.example.com --target live

  doublecheck twin --url ... --target live --allow-writes --app my.module:app --html twin.html

  doublecheck twin --url ... --target live --allow-writes --profile profile.toml

  doublecheck twin --url http://127.0.0.1:8001 --json

Without --allow-writes it only reads from a live platform, and lists what it skipped. The sandbox sessions that it creates are removed. A profile from doublecheck calibrate makes the double answer like a deployment where the specification is open.

[bold]Exit codes[/bold]  0: the same, except where the specification is open, 1: they diverge, 2: wrong usage, 3: a platform did not answer, 5: nothing was compared
"""


@options.with_facts(
    *("target", "url", "allow_writes"),
    url="The address of the platform to compare the double with.",
)
def twin(
    double: options.Double = None,
    apps: options.Apps = None,
    profile: options.Profile = None,
    agent: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The agent to run (default: one that both have)."),
    ] = None,
    html: options.Html = None,
    as_json: options.AsJson = False,
    **platform: Any,
) -> None:
    """Send the same requests to a double and to another platform and print the differences."""
    from doublecheck.compare import rendering, twin  # slow: 0.5 s

    if html is not None and not html.parent.is_dir():
        raise TargetError(f"The folder {html.parent} for {html.name} does not exist.")
    live = twin.configured(**platform)
    with (
        twin.double_of(double, apps or (), profile) as target,
        doublecheck.Platform(target) as double_platform,
        doublecheck.Platform(live) as live_platform,
    ):
        comparison = twin.compare(
            double_platform, live_platform, None, agent, live.allow_writes, _progress
        )
    if html is not None:
        try:
            atomic_files.write(html, rendering.page(comparison))
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
