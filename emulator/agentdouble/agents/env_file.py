"""The ``.env`` file of an application, read as ``adk`` reads it.

It is the nearest one, from the application's directory up to the root. It is read before the
application is imported, and sets variables of the whole process. Variables that the process had
before always win. Of two applications in one process, the one that is imported later wins.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path

from agentdouble.errors import AgentLoadError
from agentdouble.imports import import_now

_DISABLED = "ADK_DISABLE_LOAD_DOTENV"
_TRUE = ("1", "true", "yes", "on")
_lock = threading.Lock()
_from_files: set[str] = set()  # names that some file has set in this process


class EnvFiles:
    """The variables that the files of a directory's applications have set."""

    def __init__(self) -> None:
        self._before = set(os.environ) - _from_files
        self._set: dict[str, str] = {}

    def read(self, application: Path) -> None:
        """Set the variables of an application's file, if there is one; raise AgentLoadError."""
        path = env_file(application)
        if path is None or os.environ.get(_DISABLED, "").strip().lower() in _TRUE:
            return
        import_now("dotenv")
        from dotenv import dotenv_values

        try:
            with _lock:
                self._take(dotenv_values(path))
        except (OSError, ValueError) as error:
            told = f"Failed to load agent {application.name!r}: '{path}' cannot be read: {error}"
            raise AgentLoadError(told, app=application.name) from error

    def _take(self, values: Mapping[str, str | None]) -> None:
        for name, value in values.items():
            if value is not None and name not in self._before:
                os.environ[name] = self._set[name] = value
                _from_files.add(name)

    def undo(self) -> None:
        """Remove the variables that have still the values that the files gave them."""
        with _lock:
            for name, value in self._set.items():
                _from_files.discard(name)
                if os.environ.get(name) == value:
                    del os.environ[name]
            self._set.clear()


def env_file(application: Path) -> Path | None:
    """Return the file that counts for an application, or None."""
    folders = (application, *application.parents)
    return next((one / ".env" for one in folders if (one / ".env").is_file()), None)
