"""The command line, directory, environment and Python interpreter of an instance."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from agentdouble import environment
from agentdouble.processes.workspace import Workspace
from agentdouble.runtimes.definition import Definition, Program

_ASKED = """
import json, sys
print(json.dumps([sys.prefix, getattr(sys, 'base_prefix', sys.prefix)] + sys.path))
"""  # valid in any version of Python
_PATIENCE_S = 30
HOSTING = Path(__file__).with_name("runner") / "hosting.py"
_INHERITED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ")
_PORT = re.compile(r"\$(?:PORT\b|\{PORT\})")


@dataclass(frozen=True)
class Interpreter:
    """A Python interpreter; its programs have to read the paths in ``lies_in``."""

    path: Path
    lies_in: tuple[str, ...] = ()

    def variables(self, path: str) -> Mapping[str, str]:
        """Return the environment variables for its programs, as in an activated environment."""
        scripts = self.path.parent
        found = {"PATH": os.pathsep.join((str(scripts), path) if path else (str(scripts),))}
        if (scripts.parent / "pyvenv.cfg").exists():
            found["VIRTUAL_ENV"] = str(scripts.parent)
        return found


OWN = Interpreter(Path(sys.executable))  # the fork server knows its paths


async def examine(python: Path, env: Mapping[str, str]) -> Interpreter:
    """Ask an interpreter for its paths; raise OSError if it does not answer."""
    try:
        process = await asyncio.create_subprocess_exec(
            *(str(python), "-c", _ASKED),
            env=env,
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
    """Return the interpreter's paths that an instance must see, but never the root directory."""
    real = Path(os.path.realpath(python))
    paths = {*found, str(python), str(real), str(real.parent.parent)}
    return tuple(sorted(path for path in paths if path.startswith("/") and path != "/"))


@dataclass(frozen=True)
class Command:
    """A command that is to be executed; its instance has to read the paths in ``needs``."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    needs: tuple[str, ...] = ()

    def in_workspace(self, workspace: Workspace) -> Command:
        """Return the command with the home and temporary directory of a workspace."""
        own = {"HOME": str(workspace.home), "TMPDIR": str(workspace.tmp)}
        return replace(self, env={**self.env, **own})


def command_of(
    definition: Definition, interpreter: Interpreter, variables: Mapping[str, str], port: int | None
) -> Command:
    """Return the command that an instance executes.

    ``variables`` tell the instance where the double is. The runtime's own variables override them.
    Without a ``port`` it does not listen.
    """
    program = definition.program
    given = inherited(program) | dict(definition.environment)
    env = {
        **variables,
        "PYTHONUNBUFFERED": "1",  # otherwise output reaches the log too late
        **given,
        **interpreter.variables(given.get("PATH", os.defpath)),
        **({} if port is None else {"PORT": str(port)}),
    }
    argv = _argv(program, interpreter, port)
    needs = (_program_of(argv[0], program, interpreter), variables.get(environment.CA_FILE))
    return Command(argv, program.directory, env, tuple(path for path in needs if path))


def inherited(program: Program) -> dict[str, str]:
    """Return the part of the double's environment that a program gets: nothing that is secret.

    If the double finds its modules by PYTHONPATH, a program of the same Python gets it, too.
    """
    names = (*_INHERITED, *(() if program.python else ("PYTHONPATH",)))
    return {name: os.environ[name] for name in names if name in os.environ}


def _argv(program: Program, interpreter: Interpreter, port: int | None) -> tuple[str, ...]:
    """Return the command line; in the arguments of a command, replace ``$PORT`` by the port."""
    if program.application is None and port is None:
        return program.command
    if program.application is None:
        return tuple(_PORT.sub(str(port), argument) for argument in program.command)
    return (str(interpreter.path), str(HOSTING), program.application)


def _program_of(word: str, program: Program, interpreter: Interpreter) -> str | None:
    """Return the file of a command's first word, if the program may make it visible.

    A name is one of the double's PATH, whose programs every runtime may run; with the runtime's own
    PATH, it could be any file.
    """
    if "/" not in word:
        path = inherited(program).get("PATH", os.defpath)
        return shutil.which(word, path=interpreter.variables(path)["PATH"])
    found = str(program.directory / word)
    return found if program.may_show(found) else None
