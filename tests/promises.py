"""List what versions keep: ``python -m tests.promises > tests/promises.txt`` at each release.

These are what users write down, as far as the documentation shows it: names that a page or notebook
has, and all settings, clauses, unknowns and exit codes.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

from agentdouble import Emulator
from agentdouble.cli.app import app as agentdouble_app
from agentdouble.core import ledger
from agentdouble.settings import Settings
from doublecheck import fixtures
from doublecheck.cli import app as doublecheck_app
from doublecheck.contracts.clauses import clauses
from doublecheck.results import ExitCode
from tests.readme.pages import FOLDERS, FRONT, read

MODULES = ("agentdouble", "agentdouble.agents", "agentdouble.errors", "doublecheck")
MORE = ("doublecheck.errors", "doublecheck.results")
COMMANDS = {"agentdouble": agentdouble_app, "doublecheck": doublecheck_app}
OWN = ("agentdouble", "doublecheck")
NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
FILE = Path(__file__).with_suffix(".txt")


def promises() -> Iterator[str]:
    """Yield what emulator/docs/stability.md promises, one line each."""
    pages = [read(place) for place in (FRONT, *FOLDERS)]
    text = "\n".join([*pages, *(file.read_text("utf-8") for file in NOTEBOOKS.glob("*.ipynb"))])
    yield from (promise for promise in candidates() if is_shown(promise, text))


def is_shown(promise: str, text: str) -> bool:
    """Whether the documentation shows what a line names, or lists all of its kind."""
    kind, _, name = promise.partition(" ")
    if kind in ("name", "member", "argument"):
        path, _, argument = name.removesuffix(")").partition("(")
        last = re.escape(path.rpartition(".")[2])
        member = rf"\.{last}\b" if kind == "member" else rf"\b{last}\b"
        as_argument = rf"[(,\s]{argument}=" if argument else ""
        return all(re.search(pattern, text) for pattern in (member, as_argument))
    if kind in ("command", "option", "route", "pytest"):
        return all(word in text for word in name.split())
    return True


def candidates() -> Iterator[str]:
    """Yield what could be promised: everything public, without the awaited twins of classes."""
    for module in (*MODULES, *MORE):
        for name in public_names(module):
            value = getattr(import_module(module), name)
            yield f"name {module}.{name}"
            if module in MODULES:
                yield from arguments(f"{module}.{name}", value)
            if inspect.isclass(value):
                yield from members(f"{module}.{name}", value)
    yield from (f"fixture {name}" for name in fixtures.__all__ if name[0].islower())
    yield from (f"pytest {option}" for option in pytest_options())
    yield from (f"setting {name}" for name in Settings.model_fields)
    for name, command in COMMANDS.items():
        yield from options(name, typer.main.get_command(command))
    yield from (f"exit code {code.name} = {code.value}" for code in ExitCode)
    yield from (f"route {route}" for route in routes())
    yield from (f"clause {name}" for name in clauses())
    for name, unknown in ledger.unknowns().items():
        answers = (unknown.default, *unknown.alternatives)
        yield from (f"unknown {name} = {it.name}" for it in answers)


def public_names(module: str) -> list[str]:
    """Return what a module exports; a module without a list exports its own classes."""
    members = vars(import_module(module))
    own = [name for name, value in members.items() if getattr(value, "__module__", "") == module]
    listed = members.get("__all__", [name for name in own if name[0].isupper()])
    return [str(name) for name in listed if not name.startswith("Async")]


def arguments(name: str, value: Any) -> Iterator[str]:
    """Yield the arguments of a function, or of a class that users instantiate."""
    if inspect.isclass(value) and not issubclass(value, BaseException):
        value = value.__init__ if value.__init__.__module__.startswith(OWN) else object.__init__
    if inspect.isfunction(value):
        named = (it for it in inspect.signature(value).parameters.values() if it.kind in NAMED)
        yield from (f"argument {name}({it.name})" for it in named if it.name not in ("self", "cls"))


def members(name: str, value: type) -> Iterator[str]:
    """Yield the public members of a class and their arguments, without those of other libraries."""
    for own in (base for base in value.__mro__ if base.__module__.startswith(OWN)):
        public = {**vars(own), **vars(own).get("__annotations__", {})}
        for member in (it for it in public if it[0] != "_" and it not in Settings.model_fields):
            yield f"member {name}.{member}"
            yield from arguments(f"{name}.{member}", vars(own).get(member))


def pytest_options() -> list[str]:
    """Return the options of the plugin, as pytest's help shows them."""
    command = [sys.executable, "-m", "pytest", "--help", "-n0"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    return sorted(set(re.findall(r"^ +(--(?:platform|model)-[\w-]+)", printed.stdout, re.M)))


def options(name: str, command: Any) -> Iterator[str]:
    """Yield the options of a command and of those below it."""
    if not hasattr(command, "commands"):
        yield f"command {name}"
    yield from (f"option {name} {opt}" for it in command.params for opt in it.opts if opt[0] == "-")
    for word, inner in getattr(command, "commands", {}).items():
        yield from options(f"{name} {word}", inner)


def routes() -> list[str]:
    """Return the routes below ``/_emulator``."""
    with Emulator(pool_size=0) as double:
        surfaces = double._platform.context.surfaces
        served: list[Any] = [route for surface in surfaces for route in surface.admin_routes()]
    methods = [(route, {*(route.methods or ["GET"])} - {"HEAD"}) for route in served]
    return sorted(f"{method} {route.path}" for route, names in methods for method in names)


if __name__ == "__main__":
    print(*dict.fromkeys(promises()), sep="\n")  # noqa: T201
