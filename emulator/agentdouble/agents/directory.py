"""The agents directory: each subdirectory with a ``root_agent`` is an application (API-16)."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import ClassVar

from agentdouble.agents.agent import Adapter, Agent, as_agent
from agentdouble.agents.importing import reason
from agentdouble.errors import AgentLoadError, AgentNotFoundError
from agentdouble.imports import import_now, import_theirs
from agentdouble.threads import apart

SHIPPED = Path(__file__).parent / "shipped"
_SHIPPED_PACKAGE = "agentdouble.agents.shipped"

_NAME = re.compile(r"\w+", re.ASCII)
_paths = threading.Lock()
_importing: dict[str, threading.Lock] = {}  # modules have one name in the whole process
_imported: set[str] = set()
_folders: set[str] = set()


class AgentsDirectory:
    """The applications below a directory, imported when they are first asked for.

    With ``reload`` an application is imported anew when a file of its has changed. Raises
    AgentNotFoundError if there is no such directory.
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
        """Return the applications' names, sorted, those that do not import included."""
        return sorted(one.name for one in self.path.iterdir() if _is_application(one))

    def loaded(self, name: str) -> Agent | None:
        """Return an application's agent if it has been imported and that is still right."""
        if self._reload and self._seen.get(name) != _files(self.path / name):
            return None
        return self._agents.get(name)

    def load(self, name: str) -> Agent:
        """Return an application's agent; it may have to import it, which can take long.

        Raises AgentNotFoundError, and AgentLoadError that says what is wrong and where.
        """
        self._check(name)
        with _turn_of(name):
            agent = self.loaded(name)
            if agent is None:
                agent = self._load(name)
            return agent

    def loading(self, name: str) -> Future[Agent]:
        """Return what ``load`` comes to, in a thread of its own: an import can take long.

        All who ask for an application meanwhile wait for the same.
        """
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
        if self.path == SHIPPED:
            module_name = f"{_SHIPPED_PACKAGE}.{name}"
            import_now(module_name)
            return sys.modules[module_name].root_agent
        with _paths:
            self._make_way(name)
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
                f"Failed to load agent {name!r}: {reason(error)}", app=name
            ) from error

    def _make_way(self, name: str) -> None:
        """Have the import find the application here, and anew."""
        place = self.path / name
        _folders.add(str(self.path))
        taken = _other_module(name)
        if taken is not None:
            raise AgentLoadError(
                f"Failed to load agent {name!r}: there is another module of that name, {taken}. "
                f"Rename the directory '{place}'.",
                app=name,
            )
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
    """Finds an application in its own directory, whichever another double has put into the path."""

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


def _turn_of(name: str) -> threading.Lock:
    """Return what holds other imports of an application of that name, and no others."""
    with _paths:
        return _importing.setdefault(name, threading.Lock())


def _other_module(name: str) -> str | None:
    """Return where a module comes from that an application of that name would hide, if any."""
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
    for source in place.rglob("*.py"):  # a .pyc is told apart by whole seconds
        Path(importlib.util.cache_from_source(str(source))).unlink(missing_ok=True)


def _is_application(path: Path) -> bool:
    if path.name.startswith((".", "__")) or not path.is_dir():
        return False
    return (path / "__init__.py").is_file() or (path / "agent.py").is_file()


def _files(path: Path) -> object:
    """Return what changes when a Python file below ``path`` does."""
    stats = ((source, source.stat()) for source in sorted(path.rglob("*.py")))
    return tuple((str(source), stat.st_mtime_ns, stat.st_size) for source, stat in stats)
