"""Load an application from ``module:attribute`` or ``path/to/file.py:attribute``."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

from agentdouble.agents.application_imports import import_failure
from agentdouble.apps.a2a import A2AApp
from agentdouble.apps.mcp import MCPApp
from agentdouble.apps.simple import SimpleApp
from agentdouble.errors import ApplicationLoadError

DEFAULT_ATTRIBUTE = "app"

App = SimpleApp | MCPApp | A2AApp


def load(spec: str) -> App:
    """Import an application; with ``name=`` at its start, ``spec`` also renames it.

    Raises ApplicationLoadError with the place and the reason. If the module fails to import, the
    reason is the module's own error.
    """
    name, _, target = spec.rpartition("=")
    module_name, _, attribute = target.partition(":")
    module = _import(module_name, spec)
    app = getattr(module, attribute or DEFAULT_ATTRIBUTE, None)
    if app is None:
        raise ApplicationLoadError(
            f"{module_name} has no {attribute or DEFAULT_ATTRIBUTE!r}. "
            f"Name the application: {module_name}:<attribute>. {_candidates(module)}".rstrip(),
            spec=spec,
        )
    loaded = application(app, called=target, spec=spec)
    if name:
        loaded.name = name
    return loaded


def application(app: object, *, called: str, spec: str = "") -> App:
    """Return an application; raise ApplicationLoadError for any other object."""
    if isinstance(app, str):
        raise ApplicationLoadError(
            f"{app!r} is the name of an application. Import it, or use "
            f"doublecheck.connect(apps=[{app!r}]) or agentdouble serve {app}.",
            spec=spec,
        )
    if not isinstance(app, App):
        raise ApplicationLoadError(
            f"{called} is a {type(app).__name__}, not an application. agentdouble serves "
            "SimpleApp, MCPApp and "
            "A2AApp.",
            spec=spec,
        )
    return app


def _import(module_name: str, spec: str) -> ModuleType:
    if not module_name:
        raise ApplicationLoadError(f"{spec!r} names no module. Use module:app.", spec=spec)
    try:
        if module_name.endswith(".py"):
            return _import_file(Path(module_name))
        cwd = str(Path.cwd())
        if cwd not in sys.path:
            sys.path.insert(0, cwd)
        return importlib.import_module(module_name)
    except FileNotFoundError as error:
        raise ApplicationLoadError(f"File not found: {error.filename}.", spec=spec) from None
    except ModuleNotFoundError as error:
        if error.name is not None and module_name.split(".")[0] == error.name.split(".")[0]:
            raise ApplicationLoadError(
                f"No module named {module_name!r} in the working directory, on PYTHONPATH or "
                "installed.",
                spec=spec,
            ) from None
        raise _broken(module_name, error, spec) from error
    except (Exception, SystemExit) as error:
        raise _broken(module_name, error, spec) from error


def _import_file(path: Path) -> ModuleType:
    if not os.path.isfile(path):  # noqa: PTH113 (takes names of any length)
        raise FileNotFoundError(2, "No such file", str(path))
    module_spec = importlib.util.spec_from_file_location(path.stem, path)
    if module_spec is None or module_spec.loader is None:
        raise FileNotFoundError(2, "No such file", str(path))
    module = importlib.util.module_from_spec(module_spec)
    sys.modules[path.stem] = module
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module_spec.loader.exec_module(module)
    return module


def _broken(module_name: str, error: BaseException, spec: str) -> ApplicationLoadError:
    """Return the error for a module that fails to import, with the line of the user's code."""
    return ApplicationLoadError(
        f"{module_name} does not import: {import_failure(error)}", spec=spec
    )


def _candidates(module: ModuleType) -> str:
    names = [name for name, value in vars(module).items() if isinstance(value, App)]
    return f"It has {', '.join(names)}." if names else ""
