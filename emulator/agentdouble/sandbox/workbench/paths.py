"""Paths of a session: real if the session has its own file system view, else mapped."""

# The paths come from a client and are unchecked at first, so they stay strings:
# ruff: noqa: PTH118

from __future__ import annotations

import os
from dataclasses import dataclass

HOME = "/home/gem"
TMP = "/tmp"  # noqa: S108 (the session's own)

# for the double only: paths outside /v1 are not forwarded
DIRECTORY = "/directory"


class OutsideError(PermissionError):
    """A path outside the session's mapped directories."""


@dataclass(frozen=True)
class Paths:
    """Converts paths of the session to paths of this process, and back.

    If the session has no file system view of its own, ``mapped`` gives the real directory of each
    of the session's directories, and no path outside of these can be reached.
    """

    mapped: tuple[tuple[str, str], ...] = ()

    def real(self, path: str) -> str:
        """Return the real path of a path of the session; a relative path starts at home.

        Raises OutsideError, and ValueError for a path with a NUL character.
        """
        if "\0" in path:
            raise ValueError("a path must not contain NUL characters")
        absolute = os.path.normpath(os.path.join(HOME, path))
        if not self.mapped:
            return os.path.join(HOME, path)
        for prefix, directory in self.mapped:
            if _within(absolute, prefix):
                return self._checked(path, directory + absolute[len(prefix) :])
        raise OutsideError(13, f"only {HOME} and {TMP} are accessible", path)

    def _checked(self, path: str, real: str) -> str:
        resolved = os.path.realpath(real)
        if any(_within(resolved, os.path.realpath(directory)) for _, directory in self.mapped):
            return real
        raise OutsideError(13, f"it leads outside {HOME} and {TMP}", path)

    def shown(self, path: str) -> str:
        """Return the session's path for a path of this process."""
        for prefix, directory in self.mapped:
            for root in (directory, os.path.realpath(directory)):
                if _within(path, root):
                    return prefix + path[len(root) :]
        return path

    @property
    def home(self) -> str:
        """The real path of the session's home."""
        return self.real(HOME)


def _within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")
