"""The command line, directory, environment and Python interpreter of an instance."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
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


_PYTHON = re.compile(r"(?:python|pypy)[0-9.]*t?")
_SYSTEM = ("/bin", "/usr", "/opt")
_PATH = re.compile(r"(?<![^\s=:'\"!])/(?!/)[^\s'\":;,|&<>$*?()]+")
_SCRIPT = re.compile(rb"#![ \t]*(/[^ \t\r\n]+)")
_LONGEST_COMMAND = 10_000


def interpreter_of(program: Program) -> Path | None:
    """Return the interpreter that a program names, as ``python`` or by its path in ``command``.

    Of a command, only an interpreter that exists.
    """
    if program.python is not None:
        return program.python
    named = named_interpreter(program)
    return named if named is not None and os.access(named, os.X_OK) else None


def named_interpreter(program: Program) -> Path | None:
    """Return the path at which a command names an interpreter that is not the double's own.

    Links are not resolved, because a virtual environment's interpreter is a link.
    """
    first = program.command[0] if program.command else ""
    if "/" not in first or _PYTHON.fullmatch(os.path.basename(first)) is None:  # noqa: PTH119
        return None
    found = Path(os.path.normpath(program.directory / first))
    return None if found.parent == Path(sys.executable).parent else found


def is_of_the_system(interpreter: Path) -> bool:
    """Return whether every instance sees an interpreter, wherever its links lead."""
    real = Path(os.path.realpath(interpreter))
    return all(any(one.is_relative_to(place) for place in _SYSTEM) for one in (interpreter, real))


def hidden_from(
    command: Sequence[str], program: Program, path: str, readable: Iterable[str]
) -> list[str]:
    """Return the paths that a command names and that are not ``readable``.

    Of an operator's command, what the file of its first word needs counts as well, and only what
    exists. What a client of the control plane names is told whether it exists or not, because that
    client may not know; ``path``, the runtime's own PATH, may always be from one.
    """
    shown = tuple(readable)
    named = [one for word in command for one in _PATH.findall(word[:_LONGEST_COMMAND])]
    by_name = "/" not in command[0]
    if program.sources is None:
        found = shutil.which(command[0]) if by_name else None
        named += _needed_by(program.directory / (found or command[0]))
        named = [one for one in named if os.path.exists(one)]  # noqa: PTH110 (takes any text)
    if by_name:
        named += (one for one in path.split(os.pathsep) if one.startswith("/"))
    return [one for one in dict.fromkeys(named) if not _is_shown(one, shown)]


def _needed_by(program: Path) -> list[str]:
    """Return the environment of an interpreter, and what links and the head of a script name."""
    found = [os.path.realpath(program)]
    if os.path.isfile(program.parent.parent / "pyvenv.cfg"):  # noqa: PTH113 (takes any text)
        found.append(str(program.parent.parent))
    try:
        with program.open("rb") as file:
            script = _SCRIPT.match(file.read(300))
    except (OSError, ValueError):
        return []
    return found if script is None else [*found, os.fsdecode(script[1])]


def _is_shown(path: str, shown: Sequence[str]) -> bool:
    normal = Path(os.path.normpath(path))
    return any(normal.is_relative_to(place) for place in shown)
