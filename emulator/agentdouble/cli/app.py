"""The commands: their options, and the examples in their help texts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from agentdouble import __version__
from agentdouble.cli import call as calling
from agentdouble.cli import completion, options, secret_options
from agentdouble.cli import env as environment
from agentdouble.cli import sign as signing
from agentdouble.cli.clock import clock_app
from agentdouble.cli.faults import faults_app
from agentdouble.cli.mcp_commands import mcp_app
from agentdouble.cli.nodes import nodes_app
from agentdouble.cli.sessions import session_app
from agentdouble.core.environment import CLIENTS
from agentdouble.core.imports import without_collecting
from agentdouble.core.terminal import help_text

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # the same help everywhere, which fits 80 columns
    help="A local double of a hosted agent platform.",
    epilog="Start with: agentdouble demo",
)

_SERVE_EXAMPLES = help_text("""
Examples:
  agentdouble serve                       the built-in coder
  agentdouble serve my_agent:app          your application, at /invoke or /mcp
  agentdouble serve a.py:app b=other:app  a second application, at /runtimes/b
  agentdouble serve --agents DIR          API-server mode with your own agents
  agentdouble serve --host 0.0.0.0 --api-key env:KEY     for other machines
  agentdouble serve --state sqlite:///double.db
  agentdouble serve --unknown U-TTL-EXTENDS=sliding

Exit codes:
  0  stopped by Ctrl-C
  2  did not start
""")

_DEMO_EXAMPLES = help_text("""
Examples:
  agentdouble demo

Exit codes:
  0  every step passed
  1  a step failed
""")

_ENV_EXAMPLES = help_text("""
Examples:
  eval "$(agentdouble env)"                the specification's names
  eval "$(agentdouble env --for veadk)"    the names that a real client reads
  agentdouble env --port 9000 --json

Exit codes:
  0  printed
  2  there is no double
""")

_DOCTOR_EXAMPLES = help_text("""
Examples:
  agentdouble doctor
  agentdouble doctor --json | jq '.findings[] | select(.id == "browser")'

Exit codes:
  0  a double can run here
  1  it cannot
""")

_UNKNOWNS_EXAMPLES = help_text("""
Examples:
  agentdouble unknowns
  agentdouble unknowns --json | jq '.[] | select(.id == "U-TTL-EXTENDS")'
  agentdouble unknowns --profile profile.toml

Exit codes:
  0  printed
  2  the profile cannot be read
""")

_JOURNAL_EXAMPLES = help_text("""
Examples:
  agentdouble journal                      the latest requests
  agentdouble journal --follow --action InvokeTool
  agentdouble journal --status 500 --json | jq .url

Exit codes:
  0  done or stopped by Ctrl-C
  2  there is no double, or it refused
""")

_EXEC_EXAMPLES = help_text("""
Examples:
  agentdouble exec -- pytest
  agentdouble exec -- sh -c 'curl -s $AGENTDOUBLE_URL/list-apps'
  agentdouble exec --app my_agent:app -- python client.py
  agentdouble exec --for veadk --tls -- veadk web
  agentdouble exec --config runtimes.toml -- ./smoke.sh

The command gets the variables of agentdouble env, of every client if none is named,
AGENTDOUBLE_URL, DOUBLECHECK_URL, and AGENTDOUBLE_URL_NAME for a runtime of that name.

Exit codes:
  those of the command; 128 and the signal's number if one ended it
  127  command not found
  126  it cannot be run
  2    the double could not start
""")


def _version(show: bool) -> None:
    if show:
        typer.echo(f"agentdouble {__version__}")
        raise typer.Exit


@app.callback()
def _agentdouble(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command(epilog=_SERVE_EXAMPLES)
def serve(
    apps: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME=]MODULE:APP", help="Applications to serve."),
    ] = None,
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Address to listen on (127.0.0.1).")
    ] = None,
    port: Annotated[
        int | None, typer.Option(metavar="PORT", help="Port; 0 takes a free one (8000).")
    ] = None,
    api_key: Annotated[
        str | None,
        typer.Option(
            metavar="SOURCE",
            help="Key for every surface, needed beyond loopback: env:NAME or file:PATH.",
        ),
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Listen beyond loopback without a key.")
    ] = False,
    tls: options.Tls = False,
    agents: options.Agents = None,
    reload: Annotated[
        bool, typer.Option("--reload", help="Reload an agent when it has changed.")
    ] = False,
    unknown: options.UnknownChoices = None,
    profile: options.Profile = None,
    state: options.State = None,
    faults: options.Faults = None,
    nodes: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Run sessions on the machines of ray://HOST:PORT."),
    ] = None,
    ray_without_token: Annotated[
        bool,
        typer.Option(
            "--ray-without-token", help="Use a Ray cluster that sessions can join: it has no token."
        ),
    ] = False,
    standby: Annotated[
        bool, typer.Option("--standby", help="Wait until no other double has the database.")
    ] = False,
    config: options.Config = None,
    console: Annotated[
        bool | None,
        typer.Option(
            "--console/--no-console", help="Start the web console (yes).", show_default=False
        ),
    ] = None,
    console_port: Annotated[
        int | None,
        typer.Option(metavar="PORT", help="Port of the console (a free one)."),
    ] = None,
    open_: Annotated[
        bool, typer.Option("--open", help="Open the web console in a browser.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Do not log requests.")] = False,
) -> None:
    """Run the double in the foreground until Ctrl-C."""
    with without_collecting():
        from agentdouble.cli import serving  # slow: the double, 1 s

    overrides: dict[str, Any] = {
        "host": host,
        "port": port,
        "api_key": None if api_key is None else secret_options.secret("--api-key", api_key),
        "insecure": insecure or None,
        "state": secret_options.state(state),
        "nodes": nodes,
        "ray_without_token": ray_without_token or None,
        "tls": tls or None,
        "console": console,
        "console_port": console_port,
        "agents": agents,
        "reload": reload or None,
        "profile": profile,
        "faults": None if faults is None else serving.read_faults(faults),
    }
    serving.serve(
        tuple(apps or ()),
        overrides,
        tuple(unknown or ()),
        config,
        quiet=quiet,
        opening=open_,
        standby=standby,
    )


@app.command(epilog=_DEMO_EXAMPLES)
def demo() -> None:
    """Show the life of a session, step by step.

    The double is a temporary one.
    """
    from agentdouble.cli import demo as demonstration  # slow: the double

    raise typer.Exit(demonstration.run())


@app.command(epilog=_ENV_EXAMPLES)
def env(
    client: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="CLIENT",
            help=f"The client: {', '.join(CLIENTS)}.",
            autocompletion=completion.clients,
        ),
    ] = "platform",
    port: Annotated[
        int | None,
        typer.Option(metavar="PORT", help="Port of the running double, if there are several."),
    ] = None,
    url: options.Url = None,
    as_json: options.Json = False,
) -> None:
    """Print the variables that point a client at the running double."""
    environment.show(client, port, url, as_json=as_json)


@app.command(epilog=_DOCTOR_EXAMPLES)
def doctor(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: can_run, and findings by stable ids.")
    ] = False,
) -> None:
    """Report what this machine has, what it lacks, and how to get it.

    Starts a double, runs code in it, and tries the optional parts. Changes nothing.
    """
    from agentdouble.cli import doctor as examination  # slow: httpx, rich

    raise typer.Exit(examination.show(as_json=as_json))


@app.command(epilog=_UNKNOWNS_EXAMPLES)
def unknowns(
    as_json: options.Json = False,
    profile: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Show the answers of a profile, and what was measured."),
    ] = None,
) -> None:
    """List the specification's unknowns and the double's choices.

    In a pipe, each is one line; with --json, all that is known about it.
    """
    from agentdouble.cli import unknowns as ledger  # slow: rich

    ledger.show(as_json=as_json, profile=profile)


@app.command(epilog=_JOURNAL_EXAMPLES)
def journal(
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Continue with new requests until Ctrl-C.")
    ] = False,
    tail: Annotated[
        int, typer.Option("--tail", "-n", metavar="N", min=0, help="Number of requests.")
    ] = 100,
    method: Annotated[
        str | None, typer.Option(metavar="METHOD", help="Only with this method.")
    ] = None,
    path: Annotated[
        str | None, typer.Option(metavar="PATH", help="Only for this path, without a query.")
    ] = None,
    status: Annotated[
        int | None, typer.Option(metavar="STATUS", min=100, max=599, help="Only with this status.")
    ] = None,
    action: Annotated[
        str | None,
        typer.Option(metavar="ACTION", help="Only this action.", autocompletion=completion.actions),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(
            metavar="SESSION", help="Only of this SessionId.", autocompletion=completion.sessions
        ),
    ] = None,
    url: options.Url = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, a line for each request.")
    ] = False,
) -> None:
    """List the requests of a running double, or follow them."""
    from agentdouble.cli import journal as listing  # slow: asyncio, httpx, rich

    names = {"method": method, "path": path, "status": status, "action": action, "session": session}
    filters = {name: str(value) for name, value in names.items() if value is not None}
    listing.show(filters, tail, url, follow=follow, as_json=as_json)


@app.command("exec", epilog=_EXEC_EXAMPLES, context_settings={"allow_interspersed_args": False})
def exec_(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND", help="What to run.")],
    client: Annotated[
        list[str] | None,
        typer.Option(
            "--for",
            metavar="CLIENT",
            help=f"Whose variables: {', '.join(CLIENTS)} (all of them).",
            autocompletion=completion.clients,
        ),
    ] = None,
    app: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME=]MODULE:APP", help="An application to serve (the coder)."),
    ] = None,
    port: Annotated[int | None, typer.Option(metavar="PORT", help="Port (a free one).")] = None,
    tls: options.Tls = False,
    agents: options.Agents = None,
    unknown: options.UnknownChoices = None,
    profile: options.Profile = None,
    state: options.State = None,
    faults: options.Faults = None,
    config: options.Config = None,
) -> None:
    """Run a command with a double of its own.

    Clients in the command find the double, which stops when the command ends.
    """
    from agentdouble.cli import executing, serving  # slow: the double, 1 s

    clients = executing.selected(client or ())
    overrides: dict[str, Any] = {
        "port": port or 0,
        "tls": tls or None,
        "agents": agents,
        "profile": profile,
        "state": secret_options.state(state),
        "faults": None if faults is None else serving.read_faults(faults),
    }
    settings = serving.settings_of(overrides, tuple(unknown or ()), config)
    code = executing.run(command, tuple(app or ()), settings, clients)
    raise typer.Exit(code)


app.command(epilog=calling.EXAMPLES)(calling.call)
app.command(epilog=signing.EXAMPLES)(signing.sign)
app.add_typer(session_app, name="session")
app.add_typer(mcp_app, name="mcp")
app.add_typer(faults_app, name="faults")
app.add_typer(clock_app, name="clock")
app.add_typer(nodes_app, name="nodes")
