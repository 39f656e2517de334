"""How an instance is confined: the files it sees besides the system, and the user it runs as.

An instance has its own home and ``/tmp``, which are removed when it ends, as in a container. If
an application kept data there, that would work only as long as it is not scaled, and the data
would be lost on the platform, too.

If the directory of an instance is closed to others, the instance runs as the directory's owner,
but without the owner's rights: namespaces and Landlock confine it, as they confine each instance
of an ordinary user's double. If they are missing, the start fails with an error that says what
to do.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from agentdouble.processes.workspace import Workspace
from agentdouble.runtimes.definition import Program

if TYPE_CHECKING:
    from agentdouble.processes.fork_server.confinement import Confinement
    from agentdouble.processes.isolation import Isolation

_CONFIGURATION = "/etc"
_FOR_ALL = stat.S_IROTH | stat.S_IXOTH


def confinement_of(
    found: Isolation,
    workspace: Workspace,
    program: Program,
    visible: Iterable[str],
    process_limit: int,
) -> Confinement | None:
    """Return the tightest confinement in which a program can be read; raise OSError."""
    shown = (str(program.directory), *visible)
    confinement = found.confinement_for(
        workspace,
        workspace.make_run(),
        visible=shown,
        process_limit=process_limit,
    )
    if confinement is not None and found.offers("files"):
        _check_can_be_shown(shown, confinement.run)
    closed = _closed_to_others(program)
    if confinement is None or confinement.uid is None or closed is None:
        return confinement
    if not (found.offers("files") and found.offers("landlock")):
        raise PermissionError(
            f"{closed} is closed to other users, and the runtime would be one: open it "
            f"(chmod -R o+rX {program.directory}), or set isolation = 'none'"
        )
    return _as_owner_of(program.directory, confinement, workspace)


def _check_can_be_shown(shown: Iterable[str], run: str) -> None:
    """Raise OSError for a directory that is never shown, because it has the files of instances."""
    for path in shown:
        if path != "/" and Path(run).is_relative_to(os.path.realpath(path)):
            raise OSError(
                f"isolation cannot show {path}, because the double's temporary files lie in it: "
                "set TMPDIR to a directory elsewhere, or move the runtime's"
            )


def _closed_to_others(program: Program) -> Path | None:
    """Return the first of the program's paths that the instance's own user could not read."""
    for path in (program.directory, *_begun_with(program)):
        mode = path.stat().st_mode
        wanted = _FOR_ALL if stat.S_ISDIR(mode) else stat.S_IROTH
        if mode & wanted != wanted:
            return path
    return None


def _begun_with(program: Program) -> list[Path]:
    """Return the existing files that a program names, as far as it may name them.

    If it could name any, one that is closed would choose the user that it runs as.
    """
    name = (program.application or "").partition(":")[0]
    words = [name, *program.command]
    if name and not name.endswith(".py"):
        place = name.replace(".", "/")
        words += [f"{place}.py", f"{place}/__init__.py"]
    found = (program.directory / one for one in words if one)
    named = (path for path in found if os.path.isfile(path))  # noqa: PTH113 (no error for a NUL)
    return [path for path in named if program.may_show(path)]


def _as_owner_of(directory: Path, confinement: Confinement, workspace: Workspace) -> Confinement:
    """Return a confinement that runs as the owner of the files, without the owner's rights.

    Namespaces and Landlock confine the instance, as they confine the runtimes of an ordinary user's
    double. There is no process limit, because it would count the owner's other processes, too. The
    owner's closed files in /etc look empty: those of root include the passwords.
    """
    owner = directory.stat().st_uid
    for place in (workspace.home, workspace.tmp):
        os.chown(place, owner, owner)
    masked = tuple(_closed_below(_CONFIGURATION, owner))
    return replace(confinement, uid=owner, process_limit=None, masked=masked)


def _closed_below(directory: str, owner: int) -> Iterator[str]:
    """Yield the outermost files and directories of an owner that others cannot read."""
    with os.scandir(directory) as entries:
        for entry in entries:
            with suppress(FileNotFoundError, PermissionError):  # removed, or nobody's here
                found = entry.stat(follow_symlinks=False)
                if found.st_uid == owner and not found.st_mode & stat.S_IROTH:
                    yield entry.path
                elif stat.S_ISDIR(found.st_mode):
                    yield from _closed_below(entry.path, owner)
