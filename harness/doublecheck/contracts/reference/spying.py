"""What a process can reach of a neighbour that has told where it is and what it hides.

A process is recognised by its number and the moment of its start, which is the same in every
namespace: the neighbour's number may be another process's here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def reached(neighbour: Mapping[str, Any]) -> list[str]:
    """Return which secrets of a neighbour can be reached: none if it is isolated."""
    pid, secret = neighbour["pid"], neighbour["secret"]
    found = [f"its file {path}" for path in neighbour["files"] if _reads(path, secret)]
    found += [f"the environment of process {one}" for one in _processes() if _holds(one, secret)]
    if _is_there(neighbour) and _may_signal(pid):
        found.append(f"its process {pid}, to signal it")
    return found


def _processes() -> list[int]:
    try:
        return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    except OSError:  # no such thing here, or not for us
        return []


def _begun(pid: int) -> str:
    """Return when a process was started, in ticks of the machine; "" if that cannot be read."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _is_there(neighbour: Mapping[str, Any]) -> bool:
    """Whether the process of that number is the neighbour's, as far as can be seen."""
    begun = _begun(neighbour["pid"])
    return neighbour["pid"] != os.getpid() and begun in ("", neighbour["begun"])


def _may_signal(pid: int) -> bool:
    try:
        os.kill(pid, 0)  # noqa: TID251 (0 is no signal)
    except OSError:
        return False
    return True


def _holds(pid: int, secret: str) -> bool:
    try:
        return secret.encode() in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False


def _reads(path: str, secret: str) -> bool:
    """Whether a file with the secret outside of this application's folders can be read."""
    try:
        if Path.cwd() in Path(path).parents:
            return False
        return secret in Path(path).read_text()
    except (OSError, ValueError):
        return False
