"""A kernel's own view of the file system: only the system, Python and its session.

The view is built on an empty root, as in bubblewrap, so only the named paths exist in it: no other
session, no home of the server, no socket of a daemon. Nothing is written on the host outside the
session's own directories.
"""

# pathlib would make each fork 1 ms slower:
# ruff: noqa: PTH102, PTH103, PTH110, PTH112, PTH114, PTH115, PTH120, PTH123, PTH211

from __future__ import annotations

import functools
import os
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress

from agentdouble.processes.fork_server import linux

HOME = "/home/gem"  # where clients of the platform put their files (section 1)
TMP = "/tmp"  # noqa: S108 (the session's own)
USER = "gem"

SYSTEM = (
    *("/bin", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/sbin", "/usr", "/opt", "/sys"),
    *("/gnu", "/nix"),  # the directories of Guix and Nix
)
DEVICES = tuple(f"/dev/{name}" for name in ("full", "null", "random", "tty", "urandom", "zero"))
_NOBODYS_GROUP = 65534
_PRIVATE = linux.MS_NOSUID | linux.MS_NODEV


def enter(
    *,
    home: str,
    tmp: str,
    run: str,
    root: str | None,
    visible: Iterable[str],
    shm_size: int,
    own_processes: bool,
) -> None:
    """Make the view the root of this process; ``home`` and ``tmp`` move, ``run`` stays.

    If ``root``, a directory above ``run``, is below ``/tmp``, it is a separate file system, so that
    the directories that lead to ``run`` are not made in the session's ``tmp``. This process must be
    alone in its own mount namespace.
    """
    links = {path: os.readlink(path) for path in SYSTEM if os.path.islink(path)}
    visible_paths = [path for path in readable(visible, run) if path not in links]
    trees = {path: linux.open_tree(path, read_only=True) for path in visible_paths}
    sources = {HOME: home, TMP: tmp, **{path: path for path in (*DEVICES, run)}}
    trees |= {path: linux.open_tree(source, read_only=False) for path, source in sources.items()}
    # Closing the unused tree takes 1 ms.
    host_processes = None if own_processes else linux.open_tree("/proc", read_only=True)

    mount_empty(run)
    linux.become_root(run)
    before = os.umask(0o022)
    for path, target in links.items():
        os.symlink(target, path)
    mount_shared_memory(shm_size)  # first, because visible paths may be below it
    covered = root if root is not None and is_below(root, (HOME, TMP)) else None
    for path in sorted(trees, key=len):  # a path comes after its parent directories
        if path == run and covered is not None:
            mount_empty(covered)
        attach(trees[path], path)
    if covered is not None:
        linux.make_read_only(covered)
    _mount("devpts", "/dev/pts", "newinstance,ptmxmode=0666,mode=620")
    os.symlink("pts/ptmx", "/dev/ptmx")
    os.symlink("/proc/self/fd", "/dev/fd")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{number}", f"/dev/{name}")
    _show_processes(host_processes)
    os.umask(before)


def mask(paths: Iterable[str]) -> None:
    """Make files and directories of the system look empty."""
    for path in paths:
        with suppress(FileNotFoundError):  # the path has been removed since
            if os.path.isdir(path):
                linux.mount("tmpfs", path, "tmpfs", _PRIVATE, "mode=755,size=4k")
                linux.make_read_only(path)
            else:
                linux.mount("/dev/null", path, "", linux.MS_BIND)


def seal() -> None:
    """Make the root itself read-only; call this last."""
    linux.make_read_only("/")


def name_user(uid: int, gid: int) -> None:
    """Give this user a name, so that code can look it up."""
    accounts = {
        "passwd": f"root:x:0:0::/root:/bin/sh\n{USER}:x:{uid}:{gid}::{HOME}:/bin/sh\n",
        "group": f"root:x:0:\n{USER}:x:{gid}:\n",
    }
    os.makedirs("/run", exist_ok=True)
    for name, text in accounts.items():
        with open(f"/run/{name}", "x") as file:
            file.write(text)
        with suppress(FileNotFoundError):
            linux.mount(f"/run/{name}", f"/etc/{name}", "", linux.MS_BIND)


@functools.cache
def python_paths() -> frozenset[str]:
    """Return the paths of this Python, of its imports, and of the list of name servers.

    The result is cached in the fork server, because following the links takes a while.
    """
    paths = {sys.prefix, sys.base_prefix, *sys.path, "/etc/resolv.conf"}
    paths |= {os.path.realpath(path) for path in paths if path.startswith("/")}
    return frozenset(paths)


def readable(visible: Iterable[str], run: str) -> list[str]:
    """Return the paths that a kernel may read: the system, this Python, its imports, ``visible``.

    The file of the name servers is often below /run. A directory that contains the session's own
    ``run`` also contains the ``run`` of other sessions, so it is always left out.
    """
    candidates = {*python_paths(), *visible, *map(os.path.realpath, visible)}
    paths = list(SYSTEM)
    for path in sorted(candidates, key=len):
        if path.startswith("/") and not is_below(path, paths) and not is_below(run, [path]):
            paths.append(path)
    return [path for path in paths if os.path.exists(path)]


def is_below(path: str, others: Iterable[str]) -> bool:
    """Return whether a path is one of the others, or below one."""
    return any(f"{path}/".startswith(f"{parent.rstrip('/')}/") for parent in others)


def attach(tree: int, path: str) -> None:
    """Mount a detached tree at a path, which is made if it does not exist."""
    if stat.S_ISDIR(os.fstat(tree).st_mode):
        os.makedirs(path, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC))
    linux.attach_tree(tree, path)


def _mount(kind: str, path: str, options: str) -> None:
    os.makedirs(path, exist_ok=True)
    linux.mount(kind, path, kind, _PRIVATE if kind == "tmpfs" else linux.MS_NOSUID, options)


def mount_empty(path: str) -> None:
    """Mount an empty file system, in which mount points can be made."""
    _mount("tmpfs", path, "mode=755,size=256k")


def mount_shared_memory(size: int) -> None:
    """Mount an empty file system for named shared memory of at most ``size`` bytes."""
    _mount("tmpfs", "/dev/shm", f"mode=1777,size={size}")  # noqa: S108


def mount_processes() -> None:
    """Show the processes of this process namespace, each user only its own."""
    # Without a group it is root's group, 0, and all its members would see every process.
    options = f"hidepid=invisible,gid={_NOBODYS_GROUP}"
    linux.mount("proc", "/proc", "proc", linux.MS_NOSUID, options)


def _show_processes(host: int | None) -> None:
    """Show the session's own processes; if that is not permitted, show all of the ``host``'s.

    In the session's own process namespace, where the pids of the host would be wrong, ``host`` is
    None, so raise OSError instead.
    """
    os.mkdir("/proc")
    try:
        mount_processes()
    except OSError:  # an ordinary user would need a process namespace
        if host is None:
            raise
        linux.attach_tree(host, "/proc")
    else:
        if host is not None:
            os.close(host)
