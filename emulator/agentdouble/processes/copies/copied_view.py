"""A copy's own files: they cover those of its source in the copy's view of the file system.

The copy cannot do this itself, because Landlock lets it mount nothing. So the fork server does it
from outside, in a process that the copy's code cannot inspect.
"""

# pathlib would make each fork slower:
# ruff: noqa: PTH123

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress

from agentdouble.processes.fork_server import linux, namespaces, view
from agentdouble.processes.fork_server.confinement import Confinement
from agentdouble.processes.fork_server.namespaces import fork_inside
from agentdouble.processes.fork_server.protocol import Mount

_DONE = b"."
_OCTAL = re.compile(rb"\\(\d{3})")  # how mountinfo writes a space, for example


def mount_files(request: Mount, copy: int, user_namespace_of: int | None = None) -> None:
    """Mount a copy's directories, ``/proc`` and ``/dev/shm`` in its view.

    ``copy`` is its pidfd; it has its own mount and process namespaces. ``user_namespace_of`` is the
    pidfd of a process whose user namespace contains the copy's, for an ordinary user. Raises
    OSError.
    """
    if user_namespace_of is None:
        _in_a_child(lambda: _enter_and_mount(copy, request), lambda: fork_inside(copy))
    else:
        _in_a_child(lambda: _mount_as_user(copy, request, user_namespace_of))


def _mount_as_user(copy: int, request: Mount, user_namespace_of: int) -> None:
    """Mount in a child of this process, which cannot return from the namespaces."""
    linux.prctl(linux.PR_SET_DUMPABLE, 0)
    linux.join(user_namespace_of, linux.CLONE_NEWUSER)
    namespaces.enter(user=False, network=False, shared_memory=False)
    linux.join(copy, linux.CLONE_NEWPID)  # affects only children
    _in_a_child(lambda: _enter_and_mount(copy, request))


def _in_a_child(act: Callable[[], None], fork: Callable[[], int] = os.fork) -> None:
    """Call a function in a child process; raise OSError with the reason if it fails."""
    reading, writing = os.pipe()
    try:
        pid = fork()
    except OSError:
        os.close(reading)
        os.close(writing)
        raise
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
        outcome = answer.read()
    os.waitpid(pid, 0)
    if outcome != _DONE:
        raise OSError(outcome.decode(errors="replace") or "the process that mounts it has ended")


def _enter_and_mount(copy: int, request: Mount) -> None:
    linux.prctl(linux.PR_SET_DUMPABLE, 0)  # or code with the same user could take over this process
    places = {view.HOME: request.home, view.TMP: request.tmp, request.run: request.run}
    trees = {path: linux.open_tree(source, read_only=False) for path, source in places.items()}
    linux.join(copy, linux.CLONE_NEWNS)
    _mount(trees, request.root)


def _mount(trees: dict[str, int], root: str) -> None:
    """Mount the copy's own trees, and again the system's mounts below them.

    An interpreter below ``/tmp``, for example, is a mount that the copy's own ``/tmp`` covers.
    ``root`` contains the run directories of all kernels. It is covered too, to hide the source's
    sockets, and because the view's root is read-only, so no run directory could be created there.
    """
    system = {
        path: linux.open_tree(path, read_only=False)
        for path in _mount_points((view.HOME, view.TMP))
        if not view.is_below(path, (root,))
    }
    before = os.umask(0o022)
    for path in (view.HOME, view.TMP):
        linux.attach_tree(trees.pop(path), path)
    _attach(system)
    view.mount_empty(root)
    _attach(trees)
    linux.make_read_only(root)
    view.mount_shared_memory(Confinement.shm_size)
    view.mount_processes()
    os.umask(before)


def _attach(trees: dict[str, int]) -> None:
    for path in sorted(trees, key=len):  # a path comes after its parent directories
        if os.path.realpath(path) != path:  # code of the session could lead the mount elsewhere
            raise OSError(f"{path} is behind a symbolic link of the session")
        view.attach(trees[path], path)


def _mount_points(directories: tuple[str, ...]) -> Iterator[str]:
    """Yield the outermost visible mount points below directories, but not the directories."""
    with open("/proc/self/mountinfo", "rb") as file:
        fields = [line.split() for line in file]
    mounts = {(os.fsdecode(_OCTAL.sub(_character, field[4])), int(field[0])) for field in fields}
    outermost: list[str] = []
    for path in sorted({path for path, _ in mounts}, key=len):
        below = path not in directories and view.is_below(path, directories)
        if below and not view.is_below(path, outermost) and (path, _mount_id(path)) in mounts:
            outermost.append(path)
    yield from outermost


def _character(octal: re.Match[bytes]) -> bytes:
    return bytes([int(octal[1], 8)])


def _mount_id(path: str) -> int | None:
    """Return the id of the mount at a path, which may cover earlier ones; None without a path."""
    with suppress(FileNotFoundError, NotADirectoryError):
        descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW)
        try:
            with open(f"/proc/self/fdinfo/{descriptor}") as file:
                return next(int(line.split()[1]) for line in file if line.startswith("mnt_id:"))
        finally:
            os.close(descriptor)
    return None
