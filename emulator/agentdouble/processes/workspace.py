"""The directories of sessions, and the environment of their kernels.

A double keeps all session directories in one directory and locks it while the double is alive. A
killed double leaves its directory. The next double finds that no process holds the lock, and
removes the directory.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from agentdouble.errors import AgentDoubleError

if sys.platform == "linux":
    from agentdouble.processes.fork_server import view

# A socket's path has at most 107 bytes (103 on macOS), and ends such as
# "/agentdouble-12345678/12345/run/12345678/javascript-ipc-5".
_LONGEST = 49 if sys.platform == "linux" else 48
_PACKAGES = str(Path(__file__).parents[2])


def find() -> Path:
    """Return the first directory that sessions can be in; raise AgentDoubleError without one."""
    refused: list[str] = []
    for directory in _candidates():
        reason = _why_not(directory)
        if reason is None:
            return directory
        refused.append(f"{directory} {reason}")
    raise AgentDoubleError(
        f"No directory is usable for the files of sessions: {'; '.join(refused)}. "
        "Set TMPDIR to a short, writable path."
    )


def _candidates() -> list[Path]:
    try:
        first = [Path(tempfile.gettempdir()).resolve()]
    except FileNotFoundError:  # Python finds no writable directory
        first = []
    return list(dict.fromkeys([*first, Path("/tmp"), Path("/var/tmp")]))  # noqa: S108


def _why_not(directory: Path) -> str | None:
    if not os.access(directory, os.W_OK | os.X_OK):
        return "is not writable"
    if len(os.fsencode(directory)) > _LONGEST:
        return f"is longer than {_LONGEST} bytes, too long for the paths of sockets"
    if sys.platform == "linux":
        for path in _visible_directories():
            if view.is_below(str(directory), [path]):
                return f"is in {path}, whose files are visible to every session"
    return None


@functools.cache
def _visible_directories() -> list[str]:
    """Return directories whose files every session sees, and those hidden by its own ones."""
    paths = (*view.SYSTEM, "/dev", "/proc", sys.prefix, sys.base_prefix, _PACKAGES)
    return [path for path in map(os.path.realpath, paths) if path != "/"]


if sys.platform != "win32":
    import fcntl

PREFIX = "agentdouble-"
_LOCK = "lock"
RESERVED = (
    "HOME",
    "TMPDIR",
    "IPYTHONDIR",
    "JUPYTER_RUNTIME_DIR",
    "MPLCONFIGDIR",
    "PYTHONIOENCODING",
)
_INHERITED = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "SYSTEMROOT")


@dataclass(eq=False)
class Workspace:
    """The directories of one session: ``home`` and ``tmp`` for its code, ``runs`` for sockets.

    ``variables`` are additional variables for the environment. ``shares_user`` says whether copies
    of the session have the same user, so that their processes count as this session's.
    """

    home: Path
    tmp: Path
    runs: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    shares_user: bool = False
    _hold_count: int = 0  # how many holders need the empty directories after removal
    _removed: bool = False

    @property
    def root(self) -> Path:
        """The directory of the double that contains the directories of all its sessions."""
        return self.home.parents[1]

    def make_run(self) -> Path:
        """Make a new directory for the sockets of one more kernel.

        Only the double can replace this directory.
        """
        return Path(tempfile.mkdtemp(prefix="", dir=self.runs))

    def environment(self, run: Path, readable: Iterable[str] = ("/",)) -> Mapping[str, str]:
        """Return a kernel's whole environment, without any secrets of the server.

        ``readable`` are the paths of this machine that the kernel can read.
        """
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        return {
            **inherited,
            **_environment_of_python(),
            **self.variables,
            "PATH": self._path(readable),
            "HOME": str(self.home),
            "TMPDIR": str(self.tmp),
            "IPYTHONDIR": str(run),
            "JUPYTER_RUNTIME_DIR": str(run),
            "MPLCONFIGDIR": str(run / "matplotlib"),
            "PYTHONIOENCODING": "utf-8",
        }

    def _path(self, readable: Iterable[str]) -> str:
        """Return a PATH on which ``python`` is the kernel's, whatever the double was started with.

        The machine's directories that the kernel cannot read are left out. A session's own PATH is
        kept as it is, after the kernel's Python unless it has that, too.
        """
        scripts = str(Path(sys.executable).parent)
        own = self.variables.get("PATH")
        if own is not None:
            directories = own.split(os.pathsep)
            return own if scripts in directories else os.pathsep.join((scripts, own))
        shown = tuple(readable)
        directories = [
            directory
            for directory in os.environ.get("PATH", os.defpath).split(os.pathsep)
            if sys.platform != "linux" or view.is_below(directory, shown)
        ]
        return os.pathsep.join(dict.fromkeys((scripts, *directories)))

    def remove(self) -> None:
        """Remove the directories and their content; the time grows with the number of files."""
        self._removed = True
        if not self._hold_count:
            _remove(self.home.parent)
            return
        for path in (*self.home.iterdir(), *self.tmp.iterdir(), self.runs):
            _remove(path)

    def hold(self) -> None:
        """Keep the empty directories after removal, until ``release``.

        Copies of the session have their own files mounted on them, and Linux would unmount those.
        """
        self._hold_count += 1

    def release(self) -> None:
        """Remove the directories if the workspace was removed and has no other holder."""
        self._hold_count -= 1
        if self._removed and not self._hold_count:
            _remove(self.home.parent)


def _environment_of_python() -> Mapping[str, str]:
    """Return what activating this Python's virtual environment sets, apart from PATH.

    One that is active for the double may be another, and IPython would import from it.
    """
    return {"VIRTUAL_ENV": sys.prefix} if sys.prefix != sys.base_prefix else {}


class Workspaces:
    """Makes session directories inside one private directory of this double."""

    def __init__(self) -> None:
        sweep()
        self._root = Path(tempfile.mkdtemp(prefix=PREFIX, dir=find()))
        self._lock = _lock(self._root)
        self._made = 0

    def make(self, variables: Mapping[str, str] = MappingProxyType({})) -> Workspace:
        """Make the directories of a new session, with additional variables for its environment."""
        self._made += 1
        base = self._root / str(self._made)
        workspace = Workspace(
            home=base / "home", tmp=base / "tmp", runs=base / "run", variables=variables
        )
        for path in (workspace.home, workspace.tmp, workspace.runs):
            path.mkdir(mode=0o700, parents=True)
        return workspace

    def remove(self) -> None:
        """Remove this double's directory."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        _remove(self._root)


def sweep() -> None:
    """Remove the directories of this user's killed doubles."""
    if sys.platform == "win32":
        return
    for root in find().glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if root.lstat().st_uid != os.getuid() or not (root / _LOCK).exists():
                continue
            lock = os.open(root / _LOCK, os.O_RDWR)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(root)
            finally:
                os.close(lock)


def _remove(directory: Path) -> None:
    """Remove a file, or a directory even if it is nested very deep or inaccessible to its owner."""
    with contextlib.suppress(OSError):
        if directory.is_symlink() or not directory.is_dir():
            directory.unlink()
            return
    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(directory)
    for command in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
        if directory.exists() and sys.platform != "win32":
            subprocess.run([*command, str(directory)], stderr=subprocess.DEVNULL, check=False)  # noqa: S603


def _lock(root: Path) -> int | None:
    if sys.platform == "win32":
        return None
    unlocked = root / f"{_LOCK}.new"
    lock = os.open(unlocked, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    unlocked.rename(root / _LOCK)  # the file appears already locked, so no sweep can lock it first
    return lock
