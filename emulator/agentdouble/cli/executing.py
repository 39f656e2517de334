"""``agentdouble exec``: a command in the foreground, with a double that its clients find.

It passes Ctrl-C on only if no terminal has done so. A terminal signals its whole foreground
group, so the command has already received the signal, and a second one makes many programs abort
their cleanup. It passes all other signals on. The double stops when the command has ended.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import FrameType

from agentdouble.cli import env
from agentdouble.core import environment, running_doubles
from agentdouble.core.environment import CLIENTS, OWN_ADDRESS
from agentdouble.errors import MissingExtraError

try:
    from agentdouble.apps.loading import load
    from agentdouble.cli import serving
    from agentdouble.emulator import Emulator
    from agentdouble.processes import capacity
    from agentdouble.settings import Settings
except ModuleNotFoundError as error:
    if (error.name or "").startswith("agentdouble"):
        raise
    raise MissingExtraError("The double", extra="emulator") from error

NOT_EXECUTABLE, NOT_FOUND, BY_SIGNAL = 126, 127, 128
_BY_TERMINAL = frozenset({signal.SIGINT, signal.SIGQUIT})
_FORWARDED = (*_BY_TERMINAL, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_NO_LETTER = re.compile(r"[^A-Z0-9]")


def selected(clients: Sequence[str]) -> tuple[str, ...]:
    """Return the clients whose variables are needed; all if none is given."""
    for client in clients:
        env.check_client(client)
    return tuple(clients) or CLIENTS


def run(
    command: Sequence[str], specs: Sequence[str], settings: Settings, clients: Sequence[str]
) -> int:
    """Run a command while a double answers; return the exit code that a shell would give."""
    if shutil.which(command[0]) is None and not os.path.exists(command[0]):  # noqa: PTH110
        return _refuse(command, "command not found", NOT_FOUND)
    capacity.raise_limit()
    serving.log_to_terminal(quiet=True)
    with Emulator(*map(load, specs), settings=settings) as double:
        environment.give({**double.environment(), **double.environment("model")})  # for hosted code
        variables = variables_of(double, clients)
        with running_doubles.announced(double.connection, listed=False):
            return in_foreground(command, {**os.environ, **variables})


def variables_of(double: Emulator, clients: Sequence[str]) -> Mapping[str, str]:
    """Return the variables for a command: a double's addresses, and credentials to call it."""
    values = {OWN_ADDRESS: double.url, "DOUBLECHECK_URL": double.url}
    for name in double.runtimes.names:
        values[f"{OWN_ADDRESS}_{_NO_LETTER.sub('_', name.upper())}"] = double.runtimes.address(name)
    if double.settings.api_key is not None:
        values["DOUBLECHECK_API_KEY"] = double.settings.api_key.get_secret_value()
    for client in clients:
        values |= double.environment(client)
    return values


def in_foreground(command: Sequence[str], variables: Mapping[str, str]) -> int:
    """Run a command to its end; until then, pass on the signals that this process receives."""
    try:
        process = subprocess.Popen(command, env=variables)  # noqa: S603
    except FileNotFoundError:
        return _refuse(command, "command not found", NOT_FOUND)
    except OSError as error:
        return _refuse(command, (error.strerror or str(error)).lower(), NOT_EXECUTABLE)

    def pass_on(number: int, _frame: FrameType | None) -> None:
        if number not in _BY_TERMINAL or not _has_terminal():
            process.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in _FORWARDED}
    try:
        code = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if code >= 0 else BY_SIGNAL - code


def _has_terminal() -> bool:
    """Return whether the terminal sends Ctrl-C to this process's group, and so to the command."""
    try:
        terminal = os.open(os.ctermid(), os.O_RDONLY | os.O_NOCTTY)
    except OSError:  # there is no terminal
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def _refuse(command: Sequence[str], reason: str, code: int) -> int:
    print(f"agentdouble: {command[0]}: {reason}.", file=sys.stderr)  # noqa: T201
    return code
