"""Serve an application on ``$PORT``: ``hosting.py module:attribute`` or ``file.py:attribute``.

This runs in the interpreter of the runtime, which may be much older than the double's and may lack
its libraries. So it uses only the standard library and what the application brings. An object
with a ``run`` method is run by that method, as the decorator contract says; any other object is an
ASGI application.
"""

import importlib
import importlib.util
import inspect
import os
import sys
from types import ModuleType
from typing import Any

HOST = "127.0.0.1"


def main(target: str) -> None:
    """Import the application and serve it until the process is ended."""
    module_name, _, attribute = target.rpartition(":") if ":" in target else (target, "", "")
    sys.path[0] = os.getcwd()  # noqa: PTH109 (it is what a Python started here would have)
    application = _import(module_name)
    for name in (attribute or "app").split("."):
        application = getattr(application, name)
    _serve(application, int(os.environ["PORT"]))


def _serve(application: Any, port: int) -> None:
    if hasattr(application, "run"):
        application.run(*_card(application, port), host=HOST, port=port)
        return
    try:
        import uvicorn  # optional
    except ImportError:
        sys.exit(f"an ASGI application needs a server: {sys.executable} -m pip install uvicorn")
    uvicorn.run(application, host=HOST, port=port)


def _card(application: Any, port: int) -> Any:
    """Return a tuple with the agent card that ``run`` requires, made by the application's library.

    The tuple is empty if ``run`` requires no card: then the application has its own card, whose
    address follows the gateway's.
    """
    parameter = inspect.signature(application.run).parameters.get("agent_card")
    if parameter is None or parameter.default is not inspect.Parameter.empty:
        return ()
    library = sys.modules[type(application).__module__.partition(".")[0]]
    make = getattr(library, "agent_card", None)
    if make is None:
        sys.exit("its run() asks for an agent_card: run it by a command that gives it one")
    return (make(application, os.environ.get("URL", f"http://{HOST}:{port}")),)


def _import(name: str) -> ModuleType:
    if not name.endswith(".py"):
        return importlib.import_module(name)
    stem = os.path.splitext(os.path.basename(name))[0]  # noqa: PTH119, PTH122
    spec = importlib.util.spec_from_file_location(stem, name)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[stem] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main(sys.argv[1])
