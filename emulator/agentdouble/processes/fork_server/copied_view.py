"""A copy's own files: they cover those of its source in the copy's view of the file system.

The copy cannot do this itself, because Landlock lets it mount nothing. So the fork server does it
from outside, in a process that the copy's code cannot inspect.
"""

# pathlib would make each fork slower:
# ruff: noqa: PTH103

from __future__ import annotations

import os
from collections.abc import Callable

from agentdouble.processes.fork_server import linux, namespaces, view
from agentdouble.processes.fork_server.confinement import Confinement

_DONE = b"."


def furnish(
    copy: int, home: str, tmp: str, run: str, *, user_namespace_of: int | None = None
) -> None:
    """Mount a copy's directories in its view, with ``/proc`` and ``/dev/shm`` of its own.

    ``copy`` is its pidfd; it has its own mount and process namespaces. ``user_namespace_of`` is the
    pid of a process whose user namespace contains the copy's, for an ordinary user. Raises OSError.
    """
    _in_a_child(lambda: _enter_and_mount(copy, home, tmp, run, user_namespace_of))


def _in_a_child(act: Callable[[], None]) -> None:
    """Call a function in a child of its own; raise OSError with its reason if it fails."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            act()
            os.write(writing, _DONE)
        except BaseException as error:
            os.write(writing, (str(error) or type(error).__name__).encode()[:1000])
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        said = answer.read()
    os.waitpid(pid, 0)
    if said != _DONE:
        raise OSError(said.decode(errors="replace") or "the process that mounts it has ended")


def _enter_and_mount(copy: int, home: str, tmp: str, run: str, user_of: int | None) -> None:
    linux.prctl(linux.PR_SET_DUMPABLE, 0)  # or code with the same user could take over this process
    if user_of is not None:
        linux.join(os.pidfd_open(user_of), linux.CLONE_NEWUSER)
        namespaces.enter(user=False, network=False, shared_memory=False)
    places = {view.HOME: home, view.TMP: tmp, run: run}
    trees = {path: linux.open_tree(place, read_only=False) for path, place in places.items()}
    linux.join(copy, linux.CLONE_NEWNS | linux.CLONE_NEWPID)
    _in_a_child(lambda: _mount(trees))  # only a child is in the process namespace


def _mount(trees: dict[str, int]) -> None:
    before = os.umask(0o022)
    for path, tree in trees.items():
        os.makedirs(path, exist_ok=True)
        linux.attach_tree(tree, path)
    view.mount_shared_memory(Confinement.shm_size)
    view.mount_processes()
    os.umask(before)
