"""``agentdouble runtime``: what its commands take."""

from __future__ import annotations

from typing import Annotated

import typer

from agentdouble.cli.tool_commands import Url

Runtime = Annotated[str, typer.Argument(help="Its name.")]

_EXAMPLES = """
[bold]Examples[/bold]

  agentdouble runtime logs greeter -f

  agentdouble runtime logs greeter --search Traceback --tail 20
"""

runtime_app = typer.Typer(
    no_args_is_help=True,
    help="Hosted runtimes of a running double: read and follow what they print.",
    epilog=_EXAMPLES,
)


@runtime_app.callback()
def _runtime() -> None:
    pass


@runtime_app.command(epilog=_EXAMPLES)
def logs(
    name: Runtime,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what it prints, until Ctrl-C.")
    ] = False,
    tail: Annotated[int, typer.Option(min=0, max=10_000, help="How many lines, the last.")] = 1000,
    search: Annotated[str, typer.Option(help="Only lines that contain this text.")] = "",
    instance: Annotated[
        str | None, typer.Option(help="Of one instance, also one that has ended.")
    ] = None,
    url: Url = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each line as JSON.")] = False,
) -> None:
    """Print what the instances of a runtime have printed."""
    from agentdouble.cli import runtime_logs

    wanted = runtime_logs.Wanted(name, tail, search, instance, follow=follow)
    runtime_logs.show(wanted, url, as_json=as_json)
