"""What an instance executes, where, with what environment, and the Python that it has."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from agentdouble.processes.workspace import Workspace
from agentdouble.runtimes.definition import Definition, Program

_ASKED = """
import json, sys
print(json.dumps([sys.prefix, getattr(sys, 'base_prefix', sys.prefix)] + sys.path))
"""  # in words that any Python knows
_PATIENCE_S = 30
HOSTING = Path(__file__).with_name("runner") / "hosting.py"
_INHERITED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ")
_PORT = re.compile(r"\$(?:PORT\b|\{PORT\})")


@dataclass(frozen=True)
class Interpreter:
    """An interpreter; ``lies_in`` are the paths that a program of its has to read."""

    path: Path
    lies_in: tuple[str, ...] = ()

    def variables(self, path: str) -> Mapping[str, str]:
        """Return what its programs find in their environment, as in an activated one."""
        scripts = self.path.parent
        found = {"PATH": os.pathsep.join((str(scripts), path) if path else (str(scripts),))}
        if (scripts.parent / "pyvenv.cfg").exists():
            found["VIRTUAL_ENV"] = str(scripts.parent)
        return found


OWN = Interpreter(Path(sys.executable))  # where it lies, the fork server knows


async def examine(python: Path, environment: Mapping[str, str]) -> Interpreter:
    """Ask an interpreter where it lies; raise OSError if it does not answer."""
    try:
        process = await asyncio.create_subprocess_exec(
            *(str(python), "-c", _ASKED),
            env=environment,
            cwd="/",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        raise OSError(f"the interpreter {python} cannot be executed: {error.strerror}") from error
    try:
        answer, said = await asyncio.wait_for(process.communicate(), _PATIENCE_S)
        found = json.loads(answer)
    except asyncio.TimeoutError:
        process.kill()
        await process.communicate()
        raise OSError(f"the interpreter {python} gave no answer for {_PATIENCE_S} s") from None
    except ValueError:
        last = said.decode(errors="replace").strip().rpartition("\n")[2][:300]
        told = f"it exited with code {process.returncode}" + (f": {last}" if last else "")
        raise OSError(f"the interpreter {python} is none: {told}") from None
    return Interpreter(python, _places(python, found))


def _places(python: Path, found: list[str]) -> tuple[str, ...]:
    """Return what is to be shown of it; one that lies in /bin does not show the root."""
    real = Path(os.path.realpath(python))
    paths = {*found, str(python), str(real), str(real.parent.parent)}
    return tuple(sorted(path for path in paths if path.startswith("/") and path != "/"))


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
