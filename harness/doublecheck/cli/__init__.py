"""The command line ``doublecheck``.

``app`` is the typer application; ``check_commands`` and ``compare_commands`` have its commands, and
``options`` the options that several commands share. Each command imports the package that does its
work only when it runs, so that ``--help`` is fast.

This package is at the top: it may use every other one except ``plugin``, ``fixtures`` and
``notebook``, and none may import it.
"""

from __future__ import annotations

import os
import sys

from doublecheck.cli.app import app
from doublecheck.core.exit_codes import ExitCode
from doublecheck.errors import (
    CalibrationError,
    DoubleCheckError,
    FolderError,
    ReportError,
    TargetError,
)

_WRONG_USAGE = (CalibrationError, FolderError, ReportError, TargetError)


def main() -> None:
    """Run the command line. Print our own errors as one line on stderr, without a traceback."""
    try:
        app(prog_name="doublecheck")
    except DoubleCheckError as error:
        print(f"doublecheck: {error}", file=sys.stderr)  # noqa: T201 (this is the terminal)
        wrong = isinstance(error, _WRONG_USAGE)
        sys.exit(ExitCode.WRONG_USAGE if wrong else ExitCode.COULD_NOT_ASK)
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    except BrokenPipeError:  # the reader of the pipe has closed it, as head does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
