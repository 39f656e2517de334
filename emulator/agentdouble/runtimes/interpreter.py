"""The Python of a runtime: where it lies, and where it finds what it imports."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_ASKED = """
import json, sys
print(json.dumps([sys.prefix, getattr(sys, 'base_prefix', sys.prefix)] + sys.path))
"""  # in words that any Python knows
_PATIENCE_S = 30


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
