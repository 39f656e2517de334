"""The agents directory: each subdirectory with a ``root_agent`` is an application (API-16)."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import os
import re
import sys
import threading
import traceback
from collections.abc import Sequence
from concurrent.futures import Future
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import ClassVar

from agentdouble.agents.agent import Adapter, Agent, as_agent
from agentdouble.errors import AgentLoadError, AgentNotFoundError
from agentdouble.imports import import_now, import_theirs
from agentdouble.threads import apart

SHIPPED = Path(__file__).parent / "shipped"
_SHIPPED_PACKAGE = "agentdouble.agents.shipped"

_NAME = re.compile(r"\w+", re.ASCII)
_paths = threading.Lock()
_import_locks: dict[str, threading.Lock] = {}  # a module name is unique in the whole process
_imported: set[str] = set()
_folders: set[str] = set()


class AgentsDirectory:
    """The applications in a directory, each imported when it is first used.

    With ``reload`` an application is imported again after one of its files has changed. Raises
    AgentNotFoundError if the directory does not exist.
    """

    def __init__(
        self, path: Path = SHIPPED, *, adapters: Sequence[Adapter] = (), reload: bool = False
    ) -> None:
        self.path = path.resolve()
        self._adapters = tuple(adapters)
        self._reload = reload
        self._agents: dict[str, Agent] = {}
        self._seen: dict[str, object] = {}
        self._loading: dict[str, Future[Agent]] = {}
        if not self.path.is_dir():
            raise AgentNotFoundError(f"There is no agents directory {self.path}.", app="")

    def names(self) -> list[str]:
        """Return the sorted names of the applications, including those that fail to import."""
        return sorted(one.name for one in self.path.iterdir() if _is_application(one))

    def loaded(self, name: str) -> Agent | None:
        """Return an application's agent if it is imported and has not changed since."""
        if self._reload and self._seen.get(name) != _files(self.path / name):
            return None
        return self._agents.get(name)

    def load(self, name: str) -> Agent:
        """Return an application's agent; import it if necessary, which can take long.

        Raises AgentNotFoundError, and AgentLoadError with the place and the reason.
        """
        self._check(name)
        with _import_lock(name):
            return self.loaded(name) or self._load(name)

    async def agent(self, name: str) -> Agent:
        """Return an application's agent, loaded in a separate thread; raise like ``load``."""
        loaded = self.loaded(name)
        return await asyncio.wrap_future(self.begin_loading(name)) if loaded is None else loaded

    def begin_loading(self, name: str) -> Future[Agent]:
        """Load an application in a separate thread; concurrent callers share the same load."""
        present = self._loading.get(name)
        if present is None or present.done():
            present = self._loading[name] = apart(lambda: self.load(name))
            present.add_done_callback(lambda _: self._loading.pop(name, None))
        return present

    def _load(self, name: str) -> Agent:
        self._agents.pop(name, None)
        self._seen[name] = _files(self.path / name)
        root = self._root_agent(name)
        agent = self._agents[name] = as_agent(root, name, self._adapters)
        return agent

    def _check(self, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise AgentNotFoundError(
                f"Invalid agent name: {name!r}. Agent names must be valid Python identifiers "
                "(letters, digits, and underscores only).",
                app=name,
            )
        if not os.path.isdir(self.path / name):  # noqa: PTH112 (the other raises for long names)
            raise AgentNotFoundError(
                f"Agent not found: {name!r}. No matching directory or module exists in "
                f"'{self.path / name}'.",
                app=name,
            )

    def _root_agent(self, name: str) -> object:
        # The shipped agents are in their own package: "echo" must not hide a module of the user.
        if self.path == SHIPPED:
            module_name = f"{_SHIPPED_PACKAGE}.{name}"
            import_now(module_name)
            return sys.modules[module_name].root_agent
        with _paths:
            self._prepare_import(name)
        module = self._import(name, name)
        if not hasattr(module, "root_agent") and (self.path / name / "agent.py").is_file():
            module = self._import(f"{name}.agent", name)
        if not hasattr(module, "root_agent"):
            raise AgentNotFoundError(
                f"No root_agent found for {name!r}. Searched in '{name}.agent.root_agent' and "
                f"'{name}.root_agent', in '{self.path / name}'.",
                app=name,
            )
        return module.root_agent

    def _import(self, module: str, name: str) -> ModuleType:
        try:
            return import_theirs(module)
        except (Exception, SystemExit) as error:
            raise AgentLoadError(
                f"Failed to load agent {name!r}: {import_failure(error)}", app=name
            ) from error

    def _prepare_import(self, name: str) -> None:
        """Make the next import find the application here and read its files again."""
        place = self.path / name
        _folders.add(str(self.path))
        taken = _other_module(name)
        if taken is not None:
            raise AgentLoadError(
                f"Failed to load agent {name!r}: there is another module of that name, {taken}. "
                f"Rename the directory '{place}'.",
                app=name,
            )
        # The name was imported from another directory, or before a change of this one.
        if name in _imported:
            _forget(name, place)
        _imported.add(name)
        _Applications.find(name, self.path)
        folder = str(self.path)
        if folder in sys.path:
            sys.path.remove(folder)
        sys.path.insert(0, folder)
        importlib.invalidate_caches()


class _Applications:
    """A meta path finder that finds each application in its directory, whatever ``sys.path`` has.

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


def _import_lock(name: str) -> threading.Lock:
    """Return the lock for imports of applications with this name."""
    with _paths:
        return _import_locks.setdefault(name, threading.Lock())


def _other_module(name: str) -> str | None:
    """Return the origin of the module that an application of that name would hide, or None."""
    if name in _imported:
        return None
    found = importlib.util.find_spec(name)
    if found is None:
        return None
    places = {str(Path(one).parent) for one in found.submodule_search_locations or ()}
    return None if places & _folders else found.origin or "a namespace package"


def _forget(name: str, place: Path) -> None:
    for module in [one for one in sys.modules if one == name or one.startswith(f"{name}.")]:
        del sys.modules[module]
    for source in place.rglob("*.py"):  # a .pyc file is compared by whole seconds
        Path(importlib.util.cache_from_source(str(source))).unlink(missing_ok=True)


def _is_application(path: Path) -> bool:
    if path.name.startswith((".", "__")) or not path.is_dir():
        return False
    return (path / "__init__.py").is_file() or (path / "agent.py").is_file()


def _files(path: Path) -> object:
    """Return a value that changes when a Python file below ``path`` changes."""
    stats = ((source, source.stat()) for source in sorted(path.rglob("*.py")))
    return tuple((str(source), stat.st_mtime_ns, stat.st_size) for source, stat in stats)


_PACKAGE = str(Path(__file__).parent.parent)


def import_failure(error: BaseException) -> str:
    """Return why a user's module failed to import, with the line in the user's code."""
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    place = _place(error)
    return f"{type(error).__name__}: {message}{f' ({place})' if place else ''}"


def _place(error: BaseException) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    if error.__traceback__ is None:
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [
        frame for frame in frames if not frame.filename.startswith((_PACKAGE, "<frozen importlib"))
    ]
    frame = (theirs or list(frames))[-1]
    return f"{frame.filename}:{frame.lineno}"
