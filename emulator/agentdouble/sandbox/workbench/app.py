"""The workbench as an ASGI application."""

from __future__ import annotations

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException

from agentdouble.sandbox.workbench import directories, facts
from agentdouble.sandbox.workbench.bash import Bash
from agentdouble.sandbox.workbench.files import Files
from agentdouble.sandbox.workbench.paths import Paths
from agentdouble.sandbox.workbench.shell import Shell
from agentdouble.sandbox.workbench.terminals import Terminals
from agentdouble.sandbox.workbench.transfer import Transfer
from agentdouble.sandbox.workbench.wire import FailedError, failed, invalid, unrouted


def build(paths: Paths, memory_limit: int | None) -> Starlette:
    """Return the application; ``memory_limit`` (bytes) holds for each process it starts."""
    return Starlette(
        routes=[
            *Bash(paths, memory_limit).routes(),
            *Shell(paths, memory_limit).routes(),
            Terminals(paths, memory_limit).route(),
            *Files(paths).routes(),
            *Transfer(paths).routes(),
            *directories.routes(paths),
            *facts.routes(),
        ],
        exception_handlers={
            FailedError: failed,
            HTTPException: unrouted,
            ValidationError: invalid,
        },
    )
