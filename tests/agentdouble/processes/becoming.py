"""Run a module as another user: ``python -m tests.agentdouble.processes.becoming UID MODULE ...``.

It uses its own process instead of ``preexec_fn``, which runs in a fork of the tests' process and
may deadlock on other threads.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from agentdouble.processes.fork_server import linux, view
from tests import machine

ROOT, ORDINARY = 0, 12345
REPOSITORY = Path(__file__).parents[3]


def as_user(uid: int, *module: str) -> list[str]:
    """Return the command that runs a module with arguments as a user, which only root can do.

    Skip or fail the test if the user could not read this Python, and nobody may mount it elsewhere.
    """
    if os.geteuid() != ROOT:
        return [sys.executable, "-m", *module]
    if any(_closed_above(path) for path in _needed()):
        machine.require("files")
    return [sys.executable, "-m", __name__, str(uid), *module]


def _become(uid: int) -> None:
    """Become a user and make this Python readable to all users."""
    closed = {path: top for path in _needed() if (top := _closed_above(path)) is not None}
    if closed:
        _mount_elsewhere(closed)
    if uid != ROOT:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)


def _mount_elsewhere(closed: Mapping[str, Path]) -> None:
    """Show these paths below an empty directory in place of the closed one above them."""
    linux.unshare(linux.CLONE_NEWNS)
    linux.mount("none", "/", "", linux.MS_REC | linux.MS_SLAVE)
    trees = {path: linux.open_tree(path, read_only=False) for path in closed}
    for top in set(closed.values()):
        linux.mount("tmpfs", str(top), "tmpfs", 0, "mode=755")
    for path, tree in trees.items():
        Path(path).mkdir(parents=True, exist_ok=True)
        linux.attach_tree(tree, path)


def _needed() -> list[str]:
    return [p for p in view.readable([str(REPOSITORY)], "/nowhere") if Path(p).is_dir()]


def _closed_above(path: str) -> Path | None:
    return next((p for p in reversed(Path(path).parents) if not p.stat().st_mode & 0o001), None)


if __name__ == "__main__":
    _become(int(sys.argv[1]))
    os.execv(sys.executable, [sys.executable, "-m", *sys.argv[2:]])
