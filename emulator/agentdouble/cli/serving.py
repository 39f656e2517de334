"""``agentdouble serve``: start the double, print the next steps, log the requests."""

from __future__ import annotations

import contextlib
import logging
import os
import shlex
import threading
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from agentdouble.cli.env import exports
from agentdouble.core import environment, running_doubles, terminal
from agentdouble.core.environment import LOOPBACK_NAMES, UNLISTED
from agentdouble.errors import MissingExtraError, SettingsError

try:
    from agentdouble import __version__
    from agentdouble.apps.loading import load
    from agentdouble.emulator import Emulator
    from agentdouble.model.endpoint import SHIPPED
    from agentdouble.processes import capacity
    from agentdouble.server import guard
    from agentdouble.settings import Settings, read_toml
except ModuleNotFoundError as error:
    if (error.name or "").startswith("agentdouble"):
        raise
    raise MissingExtraError("The double", extra="emulator") from error


def serve(
    specs: tuple[str, ...],
    overrides: Mapping[str, Any],
    unknowns: tuple[str, ...],
    config: Path | None,
    *,
    quiet: bool,
    opening: bool = False,
    standby: bool = False,
) -> None:
    """Serve in the foreground until SIGINT or SIGTERM; ``opening`` shows the web console.

    A ``standby`` first waits until no other double has the database.
    """
    settings = settings_of(overrides, unknowns, config)
    if standby and not settings.state.startswith("postgresql://"):
        message = "--standby takes over a state in PostgreSQL: add --state postgresql://..."
        raise SettingsError(message, key="state", source="--standby")
    if settings.console is None:  # for a person; programs that create an Emulator set it
        settings = settings.model_copy(update={"console": True})
    if not settings.model_scripts:
        settings = settings.model_copy(update={"model_scripts": SHIPPED})
    capacity.raise_limit()
    log_to_terminal(quiet=quiet)
    emulator = Emulator(*(load(spec) for spec in specs), settings=settings)
    environment.give({**emulator.environment(), **emulator.environment("model")})  # for hosted code
    with running_doubles.announced(
        emulator.connection, listed=UNLISTED not in os.environ and not standby
    ):
        emulator.serve(lambda: _say(emulator, opening=opening), standby=standby)


def read_faults(file: Path) -> tuple[Mapping[str, Any], ...]:
    """Return the faults of a file, each as a table; raise SettingsError."""
    content = read_toml(file, "faults")
    tables = content.pop("faults", ())
    listed = isinstance(tables, list) and all(isinstance(table, dict) for table in tables)
    if content or not listed or not tables:
        raise SettingsError(
            f"The file {file} must have [[faults]] tables, each with kind and operation, "
            "and nothing else.",
            key="faults",
            source=str(file),
        )
    return tuple(tables)


def settings_of(
    overrides: Mapping[str, Any], unknowns: tuple[str, ...], config: Path | None
) -> Settings:
    try:
        settings = Settings.load(config, **overrides)
    except SettingsError as error:
        if error.source != "the arguments":
            raise
        option = f"--{error.key.replace('_', '-')}"
        message = f"{option} {error.reason}."
        raise SettingsError(message, key=error.key, source=option, reason=error.reason) from None
    changes: dict[str, Any] = {}
    if unknowns:
        changes["unknowns"] = {**settings.unknowns, **dict(_choice(text) for text in unknowns)}
    local, token = running_doubles.credentials()
    if settings.access_key is None or settings.secret_key is None:
        changes |= {"access_key": local.access_key, "secret_key": local.secret_key}
    if settings.token is None:
        changes["token"] = token
    if settings.tls and settings.tls_directory is None:
        # the double's own directory, so that the trusted file stays valid
        changes["tls_directory"] = running_doubles.directory()
    _check_exposure(settings)
    return Settings.load(config, **{**overrides, **changes})


def _choice(text: str) -> tuple[str, str]:
    unknown, separator, alternative = text.partition("=")
    if not separator:
        raise SettingsError(
            f"--unknown must be ID=NAME, not {text!r}. See: agentdouble unknowns",
            key="unknowns",
            source="the arguments",
        )
    return unknown, alternative


def _check_exposure(settings: Settings) -> None:
    """Refuse to listen beyond loopback without a key, unless the user allows it."""
    if settings.host in LOOPBACK_NAMES or settings.insecure or settings.api_key:
        return
    raise SettingsError(
        f"The double runs the code that it receives, and {settings.host} is reachable from other "
        "machines. Set a key with --api-key env:NAME or file:PATH, or in AGENTDOUBLE_API_KEY; or "
        "use --insecure.",
        key="host",
        source="the settings",
    )


def log_to_terminal(*, quiet: bool) -> None:
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s  %(message)s", datefmt="%X")
    if not quiet:
        logging.getLogger("agentdouble.journal.entries").setLevel(logging.INFO)


def _say(emulator: Emulator, *, opening: bool) -> None:
    with contextlib.suppress(BrokenPipeError):  # serve even if no program reads the output
        _greet(emulator)
    if opening and emulator.console_url is not None:
        # in a thread, because a browser that runs in the terminal would not return
        threading.Thread(target=webbrowser.open, args=(emulator.console_url,), daemon=True).start()


def _greet(emulator: Emulator) -> None:
    title = _styled(f"agentdouble {__version__}", bold=True)
    typer.echo(f"\n{title} answers. Ctrl-C stops it.\n")
    for name, value in _facts(emulator).items():
        typer.echo(f"  {_styled(f'{name:<16}', dim=True)}  {value}")
    typer.echo("\nPoint a client at it, in another terminal:\n")
    typer.echo('  eval "$(agentdouble env)"\n\nwhich is\n')
    for line in exports(emulator.environment()).splitlines():
        typer.echo(f"  {line}")
    shipped = next(iter(emulator.addresses.values())) == "coder"
    typer.echo(
        "\nSend it a prompt:\n" if shipped else "\nCall it, with the fields that it reads:\n"
    )
    key = emulator.settings.api_key
    authorization = "" if key is None else "-H 'Authorization: Bearer <the API key>' "
    trust = "" if emulator.ca_file is None else f"--cacert {shlex.quote(str(emulator.ca_file))} "
    typer.echo(
        f"  curl {trust}{emulator.url}/invoke {authorization}-H 'user_id: ann' -H 'session_id: s1' "
        """-d '{"prompt": "print(6 * 7)"}'\n"""
    )


def _styled(text: str, **style: bool) -> str:
    return text if terminal.is_plain() else typer.style(text, **style)


def _facts(emulator: Emulator) -> dict[str, str]:
    (path, first), (mcp_path, mcp_first), *further = emulator.addresses.items()
    return {
        "application": f"{first} at {emulator.url}{path}",
        "MCP": f"{mcp_first} at {emulator.url}{mcp_path}",
        **{f"and {name}": f"{emulator.url}{below}" for below, name in further},
        **{f"runtime {name}": at for name, at in emulator.runtime_addresses.items()},
        "A2A": ", ".join(f"{name} at {emulator.url}{at}" for at, name in emulator.a2a.items()),
        "API server": f"{emulator.url}/list-apps, /apps/..., /run, /run_sse",
        "model": f"{emulator.url}/model, see agentdouble env --for model",
        "Jupyter": f"{emulator.url}/jupyter, see agentdouble env --for jupyter",
        "control plane": f"{emulator.url}/?Action=InvokeTool&Version=2025-10-30",
        "the double's own": f"{emulator.url}/_emulator/health, /clock, /journal, /sessions, /faults, /reset, "
        "/runtimes, /metrics",
        **({} if emulator.console_url is None else {"console": emulator.console_url}),
        "tool id": emulator.tool_id,
        "access key": emulator.credentials.access_key,
        "secret key": emulator.credentials.secret_key,
        "token": f"{emulator.token}, for {guard.OWN}",
    }
