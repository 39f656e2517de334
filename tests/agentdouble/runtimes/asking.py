"""Runtimes that evaluate expressions, to inspect their environment."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from agentdouble import Emulator
from tests.agentdouble.calling import http, pid_outside

APPLICATIONS = Path(__file__).with_name("applications")
PROGRAM = APPLICATIONS / "asking.py"


def asking_table(name: str, directory: Path, **fields: Any) -> dict[str, Any]:
    """Return the table of a runtime, with its program written to a directory."""
    shutil.copy(PROGRAM, directory)
    return {"name": name, "command": "python asking.py", "directory": str(directory), **fields}


def ask(double: Emulator, runtime: str, expression: str) -> Any:
    """Return the value of an expression in a runtime, or the name of its exception."""
    answer = http.post(f"{double.url}/runtimes/{runtime}/", content=expression)
    assert 200 == answer.status_code, answer.text
    return answer.json()


def pids_outside(double: Emulator, runtime: str, expression: str) -> list[int]:
    """Return the pids on this machine of the processes that an expression in a runtime lists."""
    result = ask(double, runtime, expression)
    instances = shown_runtime(double, runtime)["instances"]
    return [pid_outside(pid, instances[0]["pid"]) for pid in result]


def shown_runtime(double: Emulator, name: str) -> dict[str, Any]:
    """Return a runtime as the double lists it."""
    runtimes = http.get(f"{double.url}/_emulator/runtimes").json()["runtimes"]
    entry: dict[str, Any]
    (entry,) = (runtime for runtime in runtimes if runtime["name"] == name)
    return entry
