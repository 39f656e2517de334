"""The command line ``doublecheck``."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line; an error of ours is one line on stderr, never a traceback."""
    from doublecheck.cli.app import app
    from doublecheck.core.exit_codes import ExitCode
    from doublecheck.errors import (
        CalibrationError,
        DoubleCheckError,
        FolderError,
        ReportError,
        TargetError,
    )

    wrong_usage = (
        CalibrationError,
        FolderError,
        ReportError,
        TargetError,
    )

    try:
        app(prog_name="doublecheck")
    except DoubleCheckError as error:
        print(f"doublecheck: {error}", file=sys.stderr)  # noqa: T201 (this is the terminal)
        wrong = isinstance(error, wrong_usage)
        sys.exit(ExitCode.WRONG_USAGE if wrong else ExitCode.COULD_NOT_ASK)
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    except BrokenPipeError:  # the reader of the pipe has closed it, as head does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
