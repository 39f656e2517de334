"""Where a double keeps the directories of its sessions: Python's temporary directory, or /tmp.

``TMPDIR`` may name a place in which no session can be: too deep for the paths of its sockets, or
among the files that sessions see as they are on the host.
"""

from __future__ import annotations

import functools
import logging
import os
import sys
import tempfile
from pathlib import Path

from agentdouble.errors import AgentDoubleError

if sys.platform == "linux":
    from agentdouble.processes.fork_server import view

# A socket's path has at most 107 bytes (103 on macOS), and ends such as
# "/agentdouble-12345678/12345/run/12345678/javascript-ipc-5".
_LONGEST = 49 if sys.platform == "linux" else 48
_PACKAGES = str(Path(__file__).parents[2])
_log = logging.getLogger(__name__)


def find() -> Path:
    """Return the directory; raise AgentDoubleError if sessions can be in none."""
    chosen, _ = _choose()
    return chosen


def check() -> None:
    """Log a warning if it is not Python's temporary directory; raise AgentDoubleError as ``find``."""
    chosen, refused = _choose()
    for reason in refused:
        _log.warning("The files of sessions are in %s: %s.", chosen, reason)


def _choose() -> tuple[Path, list[str]]:
    """Return the first suitable directory, and why the ones before it are not."""
    refused: list[str] = []
    for directory in _candidates():
        reason = _why_not(directory)
        if reason is None:
            return directory, refused
        refused.append(f"{directory} {reason}")
    raise AgentDoubleError(
        f"Sessions have no directory for their files: {'; '.join(refused)}. "
        "Set TMPDIR to a short path that can be written."
    )


def _candidates() -> list[Path]:
    try:
        first = [Path(tempfile.gettempdir()).resolve()]
    except FileNotFoundError:  # Python can write to none that it knows
        first = []
    return list(dict.fromkeys([*first, Path("/tmp"), Path("/var/tmp")]))  # noqa: S108


def _why_not(directory: Path) -> str | None:
    if not os.access(directory, os.W_OK | os.X_OK):
        return "cannot be written"
    if len(os.fsencode(directory)) > _LONGEST:
        return f"is longer than {_LONGEST} bytes, too long for the paths of sockets"
    if sys.platform == "linux":
        for path in _seen():
            if view.is_below(str(directory), [path]):
                return f"is in {path}, whose files every session sees"
    return None


@functools.cache
def _seen() -> list[str]:
    """Return the directories whose files every session sees, and those that its own ones hide."""
    paths = (*view.SYSTEM, "/dev", "/proc", sys.prefix, sys.base_prefix, _PACKAGES)
    return [path for path in map(os.path.realpath, paths) if path != "/"]
