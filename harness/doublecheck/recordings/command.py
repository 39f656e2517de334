"""``doublecheck record`` and ``replay``: their requirements, output and exit codes."""

from __future__ import annotations

import os
import secrets
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agentdouble import environment
from agentdouble.environment import Connection
from agentdouble.errors import AgentDoubleError
from agentdouble.signing import Credentials
from doublecheck.client._sync.platform import Platform
from doublecheck.errors import MissingExtraError, TargetError
from doublecheck.recordings import recording_file
from doublecheck.recordings.recording_file import Writer
from doublecheck.target.target import Target
from doublecheck.twins.command import DoubleOptions, OutputOptions, PlatformOptions
from doublecheck.wire.exchanges import Exchange, without_secrets

if TYPE_CHECKING:
    import socket

    from starlette.types import ASGIApp

LOOPBACK = "127.0.0.1"


def record(theirs: PlatformOptions, output: Path, port: int) -> None:
    """Serve a recording proxy in front of a target until Ctrl-C.

    Raises TargetError, UnreachableError, and MissingExtraError for a missing package.
    """
    _require_server()
    from agentdouble import serving

    own = own_credentials()
    with (
        theirs.opened() as target,
        _listening(port) as listener,
        _opened(output, target) as writer,
    ):
        address = serving.address_of(listener)

        def started() -> None:
            _print_status(f"Recording {target.url} to {output}. Ask {address}; Ctrl-C ends it.")
            print(exports(target, own, address), flush=True)  # noqa: T201

        serving.serve(proxy(target, own, writer), listener, started)
    _print_status(f"{output}: {writer.written} exchanges.")


def proxy(target: Target, own: Credentials, writer: Writer) -> ASGIApp:
    """Return the proxy application that records a target, without secrets."""
    from doublecheck.recordings.proxy import application

    def keep(exchange: Exchange) -> None:
        (shown,) = without_secrets((exchange,), target)
        writer.add(shown)

    return application(target, own, keep)


def replay(recording: Path, ours: DoubleOptions, showing: OutputOptions) -> int:
    """Replay a recording at a double and return the exit code.

    Raises RecordingError, TargetError and UnreachableError.
    """
    from doublecheck.recordings.replay import replay_recording

    showing.check()
    read = recording_file.read(recording)
    with ours.serving() as target, Platform(target) as double:
        comparison = replay_recording(read, double)
    return showing.show(comparison)


def own_credentials() -> Credentials:
    """Return a key pair that is valid for one recording."""
    return Credentials(f"AKLT{secrets.token_hex(12)}", secrets.token_urlsafe(32))


def exports(target: Target, own: Credentials, address: str) -> str:
    """Return the shell lines that point clients at the proxy."""
    connection = Connection(
        address, target.tool_id or "", own.access_key, own.secret_key, target.region
    )
    return "\n".join(
        f"export {name}={shlex.quote(value)}"
        for name, value in environment.variables(connection).items()
    )


@contextmanager
def _opened(output: Path, target: Target) -> Iterator[Writer]:
    """Yield the writer of a new file that only its user can read; refuse to overwrite a file."""
    try:
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise TargetError(f"{output} is there already. Name another file, or remove it.") from None
    except OSError as error:
        raise TargetError(f"{output} cannot be written: {error.strerror}.") from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        yield Writer(file, target.url)


@contextmanager
def _listening(port: int) -> Iterator[socket.socket]:
    from agentdouble import serving

    try:
        listener = serving.open_socket(LOOPBACK, port)
    except AgentDoubleError as error:
        raise TargetError(str(error)) from None
    try:
        yield listener
    finally:
        listener.close()


def _require_server() -> None:
    try:
        import starlette
        import uvicorn
    except ImportError:
        raise MissingExtraError(
            "A server to record with", install="agentdouble[emulator]"
        ) from None
    del starlette, uvicorn


def _print_status(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201
