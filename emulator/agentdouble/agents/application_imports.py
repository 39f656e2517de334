"""Imports the modules of applications by their names, each from its own directory."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
import traceback
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import ClassVar

from agentdouble.errors import AgentLoadError

_paths = threading.Lock()
_import_locks: dict[str, threading.Lock] = {}  # a module name is unique in the whole process
_imported: set[str] = set()
_folders: set[str] = set()


def import_lock(name: str) -> threading.Lock:
    """Return the lock for imports of applications with this name."""
    with _paths:
        return _import_locks.setdefault(name, threading.Lock())


def import_application(module: str, name: str) -> ModuleType:
    """Import a module of an application; raise AgentLoadError with the place and the reason."""
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit) as error:
        raise AgentLoadError(
            f"Failed to load agent {name!r}: {import_failure(error)}", app=name
        ) from error


def prepare_import(name: str, folder: Path) -> None:
    """Make the next import find the application in a directory and read its files again."""
    with _paths:
        _folders.add(str(folder))
        origin = _other_module(name)
        if origin is not None:
            raise AgentLoadError(
                f"Failed to load agent {name!r}: it has the name of another module, {origin}. "
                f"Rename '{folder / name}'.",
                app=name,
            )
        # The name was imported from another directory, or before a change of this one.
        if name in _imported:
            _forget(name, folder)
        _imported.add(name)
        _Applications.find(name, folder)
        if str(folder) in sys.path:
            sys.path.remove(str(folder))
        sys.path.insert(0, str(folder))
        importlib.invalidate_caches()


class _Applications:
    """A meta path finder for applications in their directories, independent of ``sys.path``.

    Another double in this process may have put its own directory first in the path.
    """

    _places: ClassVar[dict[str, Path]] = {}

    @classmethod
    def find(cls, name: str, folder: Path) -> None:
        cls._places[name] = folder
        if cls not in sys.meta_path:
            sys.meta_path.insert(0, cls)

    @classmethod
    def find_spec(cls, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        folder = cls._places.get(name)
        if folder is None:
            return None
        spec = PathFinder.find_spec(name, [str(folder)])
        if spec is not None and spec.origin is None:  # a namespace of all such directories
            spec.submodule_search_locations = [str(folder / name)]
        return spec


def _other_module(name: str) -> str | None:
    """Return the origin of the module that an application of that name would hide, or None."""
    if name in _imported:
        return None
    spec = importlib.util.find_spec(name)
    if spec is None:
        return None
    places = {str(Path(location).parent) for location in spec.submodule_search_locations or ()}
    # a single module, not a package
    if spec.has_location and spec.submodule_search_locations is None:
        places = {str(Path(spec.origin or "").parent)}
    return None if places & _folders else spec.origin or "a namespace package"


def _forget(name: str, folder: Path) -> None:
    for module in [key for key in sys.modules if key == name or key.startswith(f"{name}.")]:
        del sys.modules[module]
    for source in (folder / f"{name}.py", *(folder / name).rglob("*.py")):
        # a .pyc file is compared by whole seconds
        Path(importlib.util.cache_from_source(str(source))).unlink(missing_ok=True)


_PACKAGE = str(Path(__file__).parent.parent)


def import_failure(error: BaseException) -> str:
    """Return why a user's module failed to import, with the line in the user's code."""
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    location = _location(error)
    return f"{type(error).__name__}: {message}{f' ({location})' if location else ''}"


def _location(error: BaseException) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    if error.__traceback__ is None:
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    user_frames = [
        frame for frame in frames if not frame.filename.startswith((_PACKAGE, "<frozen importlib"))
    ]
    frame = (user_frames or list(frames))[-1]
    return f"{frame.filename}:{frame.lineno}"
