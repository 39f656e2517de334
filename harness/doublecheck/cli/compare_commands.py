"""Commands that compare two platforms: twin, record, replay and save-test."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from doublecheck.cli import options

TWIN_EXAMPLES = """
[bold]Examples[/bold]

  doublecheck twin --url https://agent.example.com --target live

  doublecheck twin --url ... --target live --allow-writes --app my.module:app --html twin.html

  doublecheck twin --url ... --target live --allow-writes --profile profile.toml

  doublecheck twin --url http://127.0.0.1:8001 --script conversation.toml --json

Without --allow-writes it only reads from a live platform, and says what it left out. Sessions that it makes are removed. A profile, which doublecheck calibrate writes, makes the double answer as a deployment does where the specification leaves that open.

[bold]Exit codes[/bold]  0: the same, but for what the specification leaves open, 1: they diverge, 2: wrong usage, 3: a platform could not be asked, 5: nothing was compared
"""


@options.with_facts(
    *("target", "url", "config", "allow_writes"),
    url="The address of the platform to compare the double with.",
)
def twin(
    double: options.Double = None,
    apps: options.Apps = None,
    profile: options.Profile = None,
    script: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The requests, in TOML (default: some on every surface)."
        ),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The agent to run (default: one that both have)."),
    ] = None,
    html: options.Html = None,
    as_json: options.AsJson = False,
    **platform: Any,
) -> None:
    """Send the same requests to a double and to another platform and print the differences."""
    from doublecheck.twins import command

    code = command.twin(
        command.PlatformOptions(**platform),
        command.DoubleOptions(double, apps or (), profile),
        script,
        command.OutputOptions(html, as_json),
        agent,
    )
    raise typer.Exit(code)


RECORD_EXAMPLES = """
[bold]Examples[/bold]

  doublecheck record --url https://agent.example.com --target live -o recording.jsonl

  doublecheck replay recording.jsonl

It listens only on this machine and forwards every request immediately. Clients of the control plane sign with the key pair that it prints; it signs for the platform with PLATFORM_ACCESS_KEY and PLATFORM_SECRET_KEY. The recording contains no keys, tokens or signatures.

[bold]Exit codes[/bold]  0: ended by Ctrl-C, 2: wrong usage, 3: not carried out
"""


@options.with_facts("target", "url", "config", url="The address of the platform to record.")
def record(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The recording, a new file.")
    ],
    port: Annotated[
        int, typer.Option(metavar="PORT", min=0, max=65535, help="Where to listen (0: any).")
    ] = 0,
    **platform: Any,
) -> None:
    """Record the requests to a platform and its answers, as a proxy in front of it."""
    from doublecheck.recordings import command
    from doublecheck.twins.command import PlatformOptions

    command.record(PlatformOptions(**platform), output, port)


REPLAY_EXAMPLES = """
[bold]Examples[/bold]

  doublecheck replay recording.jsonl --app my.module:app

  doublecheck replay recording.jsonl --profile profile.toml

  doublecheck replay recording.jsonl --url http://127.0.0.1:8000 --html replay.html

[bold]Exit codes[/bold]  0: the same, but for what the specification leaves open, 1: they diverge, 2: wrong usage, 3: the double could not be asked, 5: nothing was compared
"""


def replay(
    recording: Annotated[
        Path, typer.Argument(metavar="FILE", help="A recording of doublecheck record.")
    ],
    url: options.Double = None,
    apps: options.Apps = None,
    profile: options.Profile = None,
    html: options.Html = None,
    as_json: options.AsJson = False,
) -> None:
    """Send the recorded requests to a double and print the differences by operation."""
    from doublecheck.recordings import command
    from doublecheck.twins.command import DoubleOptions, OutputOptions

    ours = DoubleOptions(url, apps or (), profile)
    code = command.replay(recording, ours, OutputOptions(html, as_json))
    raise typer.Exit(code)


SAVE_EXAMPLES = """
[bold]Examples[/bold]

  curl -s 'http://127.0.0.1:8000/_emulator/journal?bodies=true' > journal.json

  doublecheck save-test journal.json -o test_conversation.py

  doublecheck save-test recording.jsonl -o test_recorded.py

[bold]Exit codes[/bold]  0: written, 2: not written, and why
"""


def save_test(
    source: Annotated[
        Path, typer.Argument(metavar="FILE", help="A double's journal, or a recording.")
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="The test, a new file: test_*.py."),
    ],
    repeat: Annotated[
        bool,
        typer.Option(
            help="Repeat the requests on a double first, and assert nothing that changes."
        ),
    ] = True,
) -> None:
    """Write a pytest test that repeats recorded requests and asserts their answers."""
    from doublecheck.recordings import exchange_files
    from doublecheck.saved_tests import module

    typer.echo(module.save(exchange_files.read(source), output, repeat=repeat))
