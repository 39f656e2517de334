"""How an instance is confined: what it sees besides the system, and which user it is.

An instance's home and ``/tmp`` are its own and go with it, as a container's do: what an
application keeps there and finds again only while it is not scaled would be lost on the
platform, too.

An instance whose directory is closed to others runs as the directory's owner, without his
rights: namespaces and Landlock hold it, as they hold each instance of an ordinary user's
double. Where they are missing, the start fails and says what to do.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from agentdouble.processes.workspace import Workspace
from agentdouble.runtimes.definition import Program

if TYPE_CHECKING:
    from agentdouble.processes.fork_server.confinement import Confinement
    from agentdouble.processes.isolation import Isolation

_FOR_ALL = stat.S_IROTH | stat.S_IXOTH


def confinement_of(
    found: Isolation,
    workspace: Workspace,
    program: Program,
    visible: Iterable[str],
    process_limit: int,
    port: int | None = None,
) -> Confinement | None:
    """Return the tightest confinement in which a program can be read; raise PermissionError.

    ``port`` is where it listens: the double alone is to reach it.
    """
    shown = (str(program.directory), *visible)
    confinement = found.confinement_for(
        workspace,
        workspace.make_run(),
        visible=shown,
        process_limit=process_limit,
        port=port,
    )
    closed = _closed_to_others(program)
    if confinement is None or confinement.uid is None or closed is None:
        return confinement
    if not (found.offers("files") and found.offers("landlock")):
        raise PermissionError(
            f"{closed} is closed to other users, and the runtime would be one: open it "
            f"(chmod -R o+rX {program.directory}), or set isolation = 'none'"
        )
    return _as_owner_of(program.directory, confinement, workspace)


def _closed_to_others(program: Program) -> Path | None:
    """Return what a user of the instance's own could not read, of what it begins with."""
    for path in (program.directory, *_begun_with(program)):
        mode = path.stat().st_mode
        wanted = _FOR_ALL if stat.S_ISDIR(mode) else stat.S_IROTH
        if mode & wanted != wanted:
            return path
    return None


def _begun_with(program: Program) -> list[Path]:
    """Return the files of a program that are named in what it runs, and exist."""
    name = (program.application or "").partition(":")[0]
    named = [name, *program.command]
    if name and not name.endswith(".py"):
        place = name.replace(".", "/")
        named += [f"{place}.py", f"{place}/__init__.py"]
    found = (program.directory / one for one in named if one)
    return [path for path in found if os.path.isfile(path)]  # noqa: PTH113 (no error for a NUL)


def _as_owner_of(directory: Path, confinement: Confinement, workspace: Workspace) -> Confinement:
    """Let it be the user whose files are to be read, without his rights.

    Namespaces and Landlock hold it as they hold the runtimes of an ordinary user's double. His
    processes are not to be counted as the instance's.
    """
    owner = directory.stat().st_uid
    for place in (workspace.home, workspace.tmp):
        os.chown(place, owner, owner)
    return replace(confinement, uid=owner, process_limit=None)
