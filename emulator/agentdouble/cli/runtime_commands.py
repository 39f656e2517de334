"""``agentdouble runtime``: the options of its commands."""

from __future__ import annotations

from typing import Annotated

import typer

from agentdouble.cli.options import Follow, LinesAsJson, Search, Tail, formatted
from agentdouble.cli.tool_commands import Json, Url

Name = Annotated[str, typer.Argument(help="Its name, or its id (r-...).")]
Application = Annotated[
    str | None, typer.Argument(metavar="[MODULE:APP]", help="MODULE:APP or FILE.py:APP.")
]
Command = Annotated[
    str | None,
    typer.Option(help="In place of an application: a command that listens on $PORT of 127.0.0.1."),
]
Directory = Annotated[
    str | None, typer.Option(help="Where it runs (the working directory, or that of FILE.py).")
]
Python = Annotated[
    str | None, typer.Option(help="Its interpreter, .venv/bin/python (the double's own).")
]
Variables = Annotated[
    list[str] | None, typer.Option(metavar="NAME[=VALUE]", help="A variable of its environment.")
]
Least = Annotated[int | None, typer.Option("--min", help="Instances kept without a request (0).")]
Most = Annotated[int | None, typer.Option("--max", help="Instances there may be (4).")]
Concurrency = Annotated[
    int | None, typer.Option(help="Requests that one instance is given at a time (10).")
]
Idle = Annotated[
    float | None, typer.Option(metavar="SECONDS", help="Time without a request until it sleeps.")
]
Memory = Annotated[int | None, typer.Option(metavar="MB", help="Memory of an instance (no limit).")]
Description = Annotated[str | None, typer.Option(help="What it is for.")]

_EXAMPLES = formatted("""
[bold]Examples[/bold]

  agentdouble runtime create greeter greeter:app           at /runtimes/greeter

  agentdouble runtime create old app.py:app --python old/bin/python

  agentdouble runtime create web --command "node server.js" --env MODE=test

  agentdouble runtime show greeter --key                   what opens it

  agentdouble runtime update greeter --max 8               a new version

  agentdouble runtime release greeter 1                    the first again

  agentdouble runtime delete greeter

  agentdouble runtime logs greeter -f

  agentdouble runtime logs greeter --search Traceback --tail 20
""")

_AUTHENTICATION = formatted("""
[bold]Who may call[/bold]  whoever has its key, which is made unless one is given (--key env:NAME or
file:PATH), or a token of an issuer (--jwt).

  agentdouble runtime create greeter greeter:app --jwt https://id/.well-known/openid-configuration

[bold]Exit codes[/bold]  0: made, and ready if an instance was to be started, 2: refused or not ready.
""")

runtime_app = typer.Typer(
    no_args_is_help=True,
    help="Runtimes of a running double: applications in processes of their own.",
    epilog=_EXAMPLES,
)


@runtime_app.command(epilog=_EXAMPLES + _AUTHENTICATION)
def create(
    name: Annotated[str, typer.Argument(help="It answers at /runtimes/NAME.")],
    application: Application = None,
    command: Command = None,
    directory: Directory = None,
    python: Python = None,
    env: Variables = None,
    min_: Least = None,
    max_: Most = None,
    concurrency: Concurrency = None,
    idle: Idle = None,
    memory: Memory = None,
    key: Annotated[
        str | None, typer.Option(metavar="SOURCE", help="The key that opens it; made if absent.")
    ] = None,
    jwt: Annotated[
        str | None, typer.Option(metavar="URL", help="Discovery document of an issuer of tokens.")
    ] = None,
    client: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="With --jwt: a client that may call.")
    ] = None,
    description: Description = None,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Make a runtime and print its address."""
    from agentdouble.cli import runtime_programs, runtimes

    program = runtime_programs.Program(application, command, directory, python, idle)
    limits = runtimes.Limits(min_, max_, concurrency, memory)
    wanted = runtimes.Wanted(program, limits, tuple(env or ()), description)
    callers = runtimes.Callers(key, jwt, tuple(client or ()))
    runtimes.create(name, wanted, callers, url, as_json=as_json)


@runtime_app.command("list", epilog=_EXAMPLES)
def list_(url: Url = None, as_json: Json = False) -> None:
    """List the runtimes."""
    from agentdouble.cli import runtimes

    runtimes.show_all(url, as_json=as_json)


@runtime_app.command(epilog=_EXAMPLES)
def show(
    name: Name,
    key: Annotated[bool, typer.Option("--key", help="Print the key that opens it.")] = False,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Print what a runtime is, its versions and its instances; with --json all that is said."""
    from agentdouble.cli import runtimes

    if key:
        runtimes.show_key(name, url)
    else:
        runtimes.show(name, url, as_json=as_json)


@runtime_app.command(epilog=_EXAMPLES)
def update(
    name: Name,
    application: Application = None,
    command: Command = None,
    directory: Directory = None,
    python: Python = None,
    env: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=VALUE]", help="A variable of its environment, in place of all."
        ),
    ] = None,
    min_: Least = None,
    max_: Most = None,
    concurrency: Concurrency = None,
    idle: Idle = None,
    memory: Memory = None,
    description: Description = None,
    release: Annotated[
        bool, typer.Option("--release/--no-release", help="Bring it into force, or only keep it.")
    ] = True,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Make a new version; what is not said stays, and no request is lost."""
    from agentdouble.cli import runtime_programs, runtimes

    program = runtime_programs.Program(application, command, directory, python, idle)
    limits = runtimes.Limits(min_, max_, concurrency, memory)
    wanted = runtimes.Wanted(program, limits, tuple(env or ()), description)
    runtimes.update(name, wanted, url, release=release, as_json=as_json)


@runtime_app.command(epilog=_EXAMPLES)
def release(
    name: Name,
    version: Annotated[
        int | None, typer.Argument(help="Its number, an older one too; the newest if absent.")
    ] = None,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Bring a version into force."""
    from agentdouble.cli import runtimes

    runtimes.release(name, version, url, as_json=as_json)


@runtime_app.command(epilog=_EXAMPLES)
def delete(name: Name, url: Url = None, as_json: Json = False) -> None:
    """End a runtime and its instances."""
    from agentdouble.cli import runtimes

    runtimes.delete(name, url, as_json=as_json)


@runtime_app.command(epilog=_EXAMPLES)
def logs(
    name: Annotated[str, typer.Argument(help="Its name.")],
    follow: Follow = False,
    tail: Tail = 1000,
    search: Search = "",
    instance: Annotated[
        str | None, typer.Option(help="Of one instance, also one that has ended.")
    ] = None,
    url: Url = None,
    as_json: LinesAsJson = False,
) -> None:
    """Print what the instances of a runtime have printed."""
    from agentdouble.cli import runtime_logs

    wanted = runtime_logs.Wanted(name, tail, search, instance, follow=follow)
    runtime_logs.show(wanted, url, as_json=as_json)
