"""Paths of a session: as they are in a file system view of its own, else mapped and checked."""

# the paths are a client's words until they are checked, so they stay strings:
# ruff: noqa: PTH118

from __future__ import annotations

import os
from dataclasses import dataclass

HOME = "/home/gem"
TMP = "/tmp"  # noqa: S108 (the session's own)

# routes for the double alone: what is not below /v1 is not forwarded
DIRECTORY = "/directory"
FACTS = "/facts"
LIVE_COMMAND = "/live/command"
ABANDON = "/live/abandon"


class OutsideError(PermissionError):
    """A path that leads out of the session's directories, where those are mapped."""


@dataclass(frozen=True)
class Paths:
    """Turns paths of the session into paths of this process, and back.

    ``mapped`` names the directory behind each of the session's own, where it has no view of
    the file system of its own: then nothing outside of them can be reached.
    """

    mapped: tuple[tuple[str, str], ...] = ()

    def real(self, path: str) -> str:
        """Return where a path of the session lies; one that is relative begins at home.

        Raises OutsideError, and ValueError for a path with a NUL.
        """
        if "\0" in path:
            raise ValueError("a path has no NUL character")
        absolute = os.path.normpath(os.path.join(HOME, path))
        if not self.mapped:
            return os.path.join(HOME, path)
        for shown, directory in self.mapped:
            if _within(absolute, shown):
                return self._checked(path, directory + absolute[len(shown) :])
        raise OutsideError(13, f"only {HOME} and {TMP} are the session's", path)

    def _checked(self, path: str, found: str) -> str:
        resolved = os.path.realpath(found)
        if any(_within(resolved, os.path.realpath(directory)) for _, directory in self.mapped):
            return found
        raise OutsideError(13, f"it leads out of {HOME} and {TMP}", path)

    def shown(self, path: str) -> str:
        """Return a path of this process as the session names it."""
        for shown, directory in self.mapped:
            for own in (directory, os.path.realpath(directory)):
                if _within(path, own):
                    return shown + path[len(own) :]
        return path

    @property
    def home(self) -> str:
        """Where the session's home lies."""
        return self.real(HOME)


def _within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")
