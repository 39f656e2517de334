"""The command line: ``agentdouble serve | demo | env | exec | call | session | mcp | ...``.

``app`` has the root command. Small commands have their options and their work in one file:
``sessions``, ``clock``, ``nodes``, ``faults``, ``mcp_commands``, ``call``, ``sign``. Of the others,
``app`` has the options, and the file of the work is imported when the command runs: ``serving``,
``executing``, ``env``, ``demo``, ``doctor``, ``journal``, ``unknowns``. So ``--help`` imports
neither httpx nor the double. ``session_console`` is ``agentdouble session attach``.
``connections`` finds the double that a command is for, and ``control`` is a client of its control
plane. ``secret_options`` reads secrets, ``options`` has what several commands share, and
``completion`` what a shell completes.

This package may import every other one.
"""

from __future__ import annotations

import os
import sys

from agentdouble.core.imports import without_collecting
from agentdouble.errors import AgentDoubleError


def main() -> None:
    """Run the command line; report an AgentDoubleError on stderr and exit with code 2."""
    with without_collecting():
        from agentdouble.cli.app import app  # slow: typer

    try:
        app(prog_name="agentdouble")
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # the reader of a pipe ended, as head does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except Exception as error:
        if not isinstance(error, AgentDoubleError):
            raise
        print(f"agentdouble: {error}", file=sys.stderr)  # noqa: T201 (this is the terminal)
        sys.exit(2)
