"""The files of a session without its processes: in directories, or in an archive."""

from __future__ import annotations

import asyncio
import io
import sys
import tarfile
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from agentdouble.core.threads import run_in_thread
from agentdouble.processes import usage
from agentdouble.processes.session_files import copy_content
from agentdouble.processes.workspace import Workspace

_HOME, _TMP = "home", "tmp"  # the two directories in an archive


def _never() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


@dataclass(eq=False)
class FilesSnapshot:
    """The files of a session that has ended; ``omitted`` names what else the session had.

    ``size`` is their size in bytes, 0 before ``measure``.
    """

    files: Workspace
    omitted: tuple[str, ...]
    gone: asyncio.Future[None] = field(default_factory=_never)
    size: int = 0
    ending: ClassVar[str] = "its files are gone"

    async def measure(self) -> int:
        """Return the size of the files, in bytes; raise TooDeepError."""
        self.size = await run_in_thread(lambda: size_of(self.files))
        return self.size

    def copy_to(self, workspace: Workspace) -> None:
        """Copy the files to an empty workspace; raise OSError."""
        copy_files(self.files, workspace)
        workspace.shares_user = True  # their owner

    async def discard(self) -> None:
        """Remove the files."""
        await run_in_thread(self.files.remove)


@dataclass(frozen=True, eq=False)
class ArchivedFiles:
    """The files of a session in a compressed tar archive, which ``archive`` has made."""

    data: bytes = field(repr=False)
    omitted: tuple[str, ...] = ()
    gone: asyncio.Future[None] = field(default_factory=_never)
    files: ClassVar[None] = None
    ending: ClassVar[str] = "its archive is gone"

    @property
    def size(self) -> int:
        """The size of the archive, in bytes."""
        return len(self.data)

    def copy_to(self, workspace: Workspace) -> None:
        """Extract the files into an empty workspace, as files of this user; raise OSError.

        The users that own them in the archive may be those of other sessions by now.
        """
        try:
            with tarfile.open(fileobj=io.BytesIO(self.data), mode="r:gz") as tar:
                for member in tar:
                    member.uid = member.gid = -1
                    tar.extract(member, workspace.home.parent, numeric_owner=True, filter="tar")
        except tarfile.TarError as error:
            raise OSError(f"the archive of its files cannot be read: {error}") from error

    async def discard(self) -> None:
        """Do nothing: the archive is in memory."""


def archive(files: Workspace) -> bytes:
    """Return files as a compressed tar archive; raise OSError.

    They are copied first, because a process of the session may still replace a directory by a link
    to the host's files, which ``tarfile`` would follow.
    """
    buffer = io.BytesIO()
    with (
        tempfile.TemporaryDirectory(prefix="agentdouble-archive-") as copied,
        tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as tar,
    ):
        for name, directory in ((_HOME, files.home), (_TMP, files.tmp)):
            target = Path(copied, name)
            target.mkdir()
            copy_content(directory, target)
            tar.add(target, name)
    return buffer.getvalue()


def size_of(files: Workspace) -> int:
    """Return the size of files, in bytes."""
    return usage.files(map(str, (files.home, files.tmp)), (), sys.maxsize)


def copy_files(source: Workspace, target: Workspace) -> None:
    """Copy a session's files, with their owners and times; raise OSError."""
    copy_content(source.home, target.home)
    copy_content(source.tmp, target.tmp)
