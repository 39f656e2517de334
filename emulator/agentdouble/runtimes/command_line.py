"""What an instance executes, where, and with what environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from agentdouble.processes.workspace import Workspace
from agentdouble.runtimes.definition import Definition, Program
from agentdouble.runtimes.interpreter import Interpreter

HOSTING = Path(__file__).with_name("inside") / "hosting.py"
_INHERITED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ")
_PORT = re.compile(r"\$(?:PORT\b|\{PORT\})")


@dataclass(frozen=True)
class Command:
    """What is to be executed."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]

    def in_workspace(self, workspace: Workspace) -> Command:
        """Return it with directories of its own."""
        own = {"HOME": str(workspace.home), "TMPDIR": str(workspace.tmp)}
        return replace(self, env={**self.env, **own})


def command_of(
    definition: Definition, interpreter: Interpreter, variables: Mapping[str, str], port: int
) -> Command:
    """Return what an instance executes; ``variables`` lead to the double, its own go first."""
    program = definition.program
    given = inherited(program) | dict(definition.environment)
    env = {
        **variables,
        "AGENTDOUBLE_ALLOW_SESSIONS": "true",  # one that is hosted leaves to its gateway who calls
        "PYTHONUNBUFFERED": "1",  # else what is printed is in the log when it is too late
        **given,
        **interpreter.variables(given.get("PATH", os.defpath)),
        "PORT": str(port),
    }
    return Command(_argv(program, interpreter, port), program.directory, env)


def inherited(program: Program) -> dict[str, str]:
    """Return what a program has of the double's own environment: nothing that is secret.

    Where the double finds its modules by PYTHONPATH, a program of the same Python does so, too.
    """
    names = (*_INHERITED, *(() if program.python else ("PYTHONPATH",)))
    return {name: os.environ[name] for name in names if name in os.environ}


def _argv(program: Program, interpreter: Interpreter, port: int) -> tuple[str, ...]:
    """Return the command line; ``$PORT`` in the arguments of a command is the port."""
    if program.application is None:
        return tuple(_PORT.sub(str(port), argument) for argument in program.command)
    return (str(interpreter.path), str(HOSTING), program.application)
