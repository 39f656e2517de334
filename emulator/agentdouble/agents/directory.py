"""The agents directory: its applications, found as ``adk`` finds them (API-16).

An application is a package ``NAME/``, ``NAME/agent.py`` or ``NAME.py`` with ``app`` (an App of
Google's ADK) or ``root_agent``, or ``NAME/root_agent.yaml``. A module ``NAME.py`` runs and is not
listed. A directory that has ``agent.py`` or ``root_agent.yaml`` itself is its only application.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import ModuleType

from agentdouble.agents import application_imports
from agentdouble.agents.adk import is_app
from agentdouble.agents.agent import Adapter, Agent, as_agent
from agentdouble.core import environment
from agentdouble.core.imports import import_now
from agentdouble.core.threads import apart
from agentdouble.errors import AgentLoadError, AgentNotFoundError

_DISABLED = "ADK_DISABLE_LOAD_DOTENV"
_TRUE = ("1", "true", "yes", "on")
_lock = threading.Lock()
_from_files: set[str] = set()  # names that .env files have set in this process

ROOT_AGENT = "root_agent.yaml"
_LOADER = "google.adk.agents.config_agent_utils"

SHIPPED = Path(__file__).parent / "shipped"
_SHIPPED_PACKAGE = "agentdouble.agents.shipped"

_NAME = re.compile(r"\w+", re.ASCII)
_SUFFIXES = {".py", ".yaml", ".yml"}


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
        from dotenv import dotenv_values  # slow: 20 ms

        try:
            with _lock:
                self._take(dotenv_values(path))
        except (OSError, ValueError) as error:
            message = f"Failed to load agent {application.name!r}: '{path}' cannot be read: {error}"
            raise AgentLoadError(message, app=application.name) from error

    def _take(self, values: Mapping[str, str | None]) -> None:
        environment.withdraw(name for name, value in values.items() if value is not None)
        for name, value in values.items():
            if value is not None and name not in self._before:
                os.environ[name] = self._set[name] = value
                _from_files.add(name)

    def undo(self) -> None:
        """Remove the variables that still have the values from the files."""
        with _lock:
            for name, value in self._set.items():
                _from_files.discard(name)
                if os.environ.get(name) == value:
                    del os.environ[name]
            self._set.clear()


def env_file(application: Path) -> Path | None:
    """Return the ``.env`` file that applies to an application, or None."""
    folders = (application, *application.parents)
    return next((folder / ".env" for folder in folders if (folder / ".env").is_file()), None)


def yaml_agent(path: Path, app: str) -> object:
    """Return the agent that a file describes; raise AgentLoadError with the reason."""
    try:
        import_now(_LOADER)
    except ImportError as error:
        raise AgentLoadError(
            f"Failed to load agent {app!r}: '{path}' needs Google's ADK ({error}). "
            "pip install google-adk",
            app=app,
        ) from error
    from google.adk.agents.config_agent_utils import from_config  # optional: google-adk

    try:
        return from_config(str(path))
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}"
        raise AgentLoadError(
            f"Failed to load agent {app!r}: '{path}': {reason}", app=app
        ) from error


class AgentsDirectory:
    """The applications in a directory, each imported when it is first used.

    With ``reload`` an application is imported again after one of its files has changed. Raises
    AgentNotFoundError if the directory does not exist.
    """

    def __init__(
        self, path: Path = SHIPPED, *, adapters: Sequence[Adapter] = (), reload: bool = False
    ) -> None:
        resolved = path.resolve()
        self._only = resolved.name if _is_one_application(resolved) else None
        self.path = resolved.parent if self._only else resolved
        self._adapters = tuple(adapters)
        self._reload = reload
        self._agents: dict[str, Agent] = {}
        self._seen: dict[str, object] = {}
        self._loading: dict[str, Future[Agent]] = {}
        self._env = EnvFiles()
        if not resolved.is_dir():
            raise AgentNotFoundError(f"Agents directory not found: {resolved}.", app="")

    def names(self) -> list[str]:
        """Return the sorted names of the applications, including those that fail to import."""
        if self._only:
            return [self._only]
        return sorted(entry.name for entry in self.path.iterdir() if _is_application(entry))

    def language(self, name: str) -> str:
        """Return the language of an application: ``yaml`` or ``python``."""
        return "yaml" if (self.path / name / ROOT_AGENT).is_file() else "python"

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
        with application_imports.import_lock(name):
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

    def close(self) -> None:
        """Remove the variables that ``.env`` files have set."""
        self._env.undo()

    def _load(self, name: str) -> Agent:
        self._agents.pop(name, None)
        self._seen[name] = _files(self.path / name)
        agent = self._agents[name] = self._find(name)
        return agent

    def _check(self, name: str) -> None:
        if self._only and name != self._only:
            raise AgentNotFoundError(
                f"Agent not found: {name!r}. In single agent mode, only {self._only!r} is "
                "accessible.",
                app=name,
            )
        if not _NAME.fullmatch(name):
            raise AgentNotFoundError(
                f"Invalid agent name: {name!r}. Agent names must be valid Python identifiers "
                "(letters, digits, and underscores only).",
                app=name,
            )
        base = self.path / name
        if not (os.path.isdir(base) or os.path.isfile(f"{base}.py")):  # noqa: PTH112, PTH113 (the others raise for long names)
            raise AgentNotFoundError(
                f"Agent not found: {name!r}. No matching directory or module exists in '{base}'."
                f"{self._advice()}",
                app=name,
            )

    def _advice(self) -> str:
        """Return how to serve the user's agents, if the double serves only those that it brings."""
        if self.path != SHIPPED:
            return ""
        return (
            f" The double serves its own agents: {', '.join(self.names())}. For yours, name their "
            'directory: --agents DIR, or in tests PlatformConfig(settings={"agents": "DIR"}).'
        )

    def _find(self, name: str) -> Agent:
        """Return the first agent in the application's modules; raise the first error.

        A package may use the name for something else, such as a submodule ``root_agent``.
        """
        unfit: AgentLoadError | None = None
        for root in self._roots(name):
            try:
                return as_agent(root, name, self._adapters)
            except AgentLoadError as error:
                unfit = unfit or error
        if unfit is not None:
            raise unfit
        raise AgentNotFoundError(
            f"No root_agent found for {name!r}. Searched in '{name}.agent.root_agent', "
            f"'{name}.root_agent' and '{name}/{ROOT_AGENT}', in '{self.path / name}'.",
            app=name,
        )

    def _roots(self, name: str) -> Iterator[object]:
        # The shipped agents are in their own package: "echo" must not hide a module of the user.
        if self.path == SHIPPED:
            module_name = f"{_SHIPPED_PACKAGE}.{name}"
            import_now(module_name)
            yield from _root_of(sys.modules[module_name])
            return
        application_imports.prepare_import(name, self.path)
        self._env.read(self.path / name)
        module = application_imports.import_application(name, name)
        yield from _root_of(module)
        if hasattr(module, "__path__") and importlib.util.find_spec(f"{name}.agent"):
            yield from _root_of(application_imports.import_application(f"{name}.agent", name))
        config = self.path / name / ROOT_AGENT
        if config.is_file():
            yield yaml_agent(config, name)


def _root_of(module: ModuleType) -> Iterator[object]:
    """Yield the App of a module, or else its root agent."""
    app = getattr(module, "app", None)
    if is_app(app):
        yield app
    elif hasattr(module, "root_agent"):
        yield module.root_agent


def _is_one_application(path: Path) -> bool:
    return any((path / name).is_file() for name in ("agent.py", ROOT_AGENT))


def _is_application(path: Path) -> bool:
    if path.name.startswith((".", "__")) or not path.is_dir():
        return False
    return (path / "__init__.py").is_file() or _is_one_application(path)


def _files(path: Path) -> object:
    """Return a value that changes when an application's code, YAML or ``.env`` changes."""
    inside = (file for file in path.rglob("*") if file.suffix in _SUFFIXES)
    besides = (path.with_name(f"{path.name}.py"), env_file(path))
    files = [*sorted(inside), *(file for file in besides if file and file.is_file())]
    stats = ((file, file.stat()) for file in files)
    return tuple((str(file), stat.st_mtime_ns, stat.st_size) for file, stat in stats)
