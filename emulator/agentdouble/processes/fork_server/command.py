"""A command in place of a kernel: the confined fork executes another program."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any

_HOME = re.compile(r"\$(?:HOME\b|\{HOME\})")
NOT_FOUND, NOT_EXECUTABLE = 127, 126  # as in shells


def with_home(argv: Sequence[str], home: str) -> list[str]:
    """Return a command line with ``$HOME`` replaced: the home is what a command may write to."""
    return [_HOME.sub(lambda _: home, word) for word in argv]


def run(_connection_file: str, config: Mapping[str, Any], *streams: int) -> None:
    """Execute the command in ``config``; if that fails, print the reason and end this process.

    ``config["Command"]`` holds ``argv`` and ``cwd``. The standard streams are already set for
    the command, and it gets the environment of this process.
    """
    command = config["Command"]
    for descriptor in streams:  # they have already been copied to 0, 1 and 2
        os.close(descriptor)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # exec would keep Python's own setting
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        os.chdir(command["cwd"])
    except OSError as error:
        _end(f"cannot enter the directory {command['cwd']}: {error.strerror}", NOT_EXECUTABLE)
    argv = with_home(command["argv"], os.environ.get("HOME", command["cwd"]))
    program = argv[0]
    try:
        os.execvp(program, argv)  # noqa: S606 (no shell is wanted)
    except FileNotFoundError:
        _end(f"program {program!r} not found", NOT_FOUND)
    except OSError as error:
        _end(f"cannot execute the program {program!r}: {error.strerror}", NOT_EXECUTABLE)


def _end(reason: str, code: int) -> None:
    sys.stderr.write(f"{reason}\n")
    sys.stderr.flush()
    sys.exit(code)
