"""Findings: what this machine offers or lacks, each the result of a test."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import threading
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata

PATIENCE_S = 30
_IMPORTING = threading.Lock()  # sections run in parallel, and the process has one list of filters


@dataclass(frozen=True)
class Finding:
    """One thing that a machine offers or lacks.

    ``id`` never changes, and ``remedy`` says how to get the thing. Without an ``essential`` thing
    no double runs. Without another one, a double does less.
    """

    id: str
    name: str
    says: str
    good: bool = True
    remedy: str | None = None
    essential: bool = False


@dataclass(frozen=True)
class Section:
    """The findings about one subject."""

    title: str
    findings: Sequence[Finding]


def lacking(id: str, name: str, why: object, remedy: str, *, essential: bool = False) -> Finding:  # noqa: A002
    """Return the finding that something is missing, why, and how to get it."""
    return Finding(id, name, f"not here: {_told(why)}", False, remedy, essential)


def _told(why: object) -> str:
    """Return a reason in one line; a missing module is reported in our words."""
    if isinstance(why, ModuleNotFoundError) and why.name:
        return f"{why.name} is not installed"
    first, *_ = str(why).strip().splitlines() or ["?"]
    return first


def extra(name: str) -> str:
    """Return the command that installs an extra."""
    return f"pip install 'agentdouble[{name}]'"


def version_told_by(command: Sequence[str]) -> str:
    """Run a program that prints its version; raise OSError or SubprocessError if it fails."""
    answer = subprocess.run(  # noqa: S603 (programs that the double would run too)
        command, capture_output=True, check=True, errors="replace", timeout=PATIENCE_S
    )
    return answer.stdout.strip().partition("\n")[0].partition("(")[0].strip()


def on_path(names: Iterable[str]) -> str | None:
    """Return the path of the first of these programs that is installed, or None."""
    return next((found for found in map(shutil.which, names) if found is not None), None)


def installed(id: str, name: str, says: str, names: Sequence[str], *, remedy: str) -> Finding:  # noqa: A002
    """Return whether these distributions are installed; ``{}`` in ``says`` is their versions.

    Used for packages that take most of a second to import, and that come with tested ones.
    """
    try:
        versions = ", ".join(f"{one} {metadata.version(one)}" for one in names)
    except metadata.PackageNotFoundError as error:  # a ModuleNotFoundError
        return lacking(id, name, error, remedy)
    return Finding(id, name, says.format(versions))


def imported(id: str, name: str, says: str, modules: Mapping[str, str], *, remedy: str) -> Finding:  # noqa: A002
    """Return whether these modules can be imported; ``{}`` in ``says`` is their versions.

    The keys of ``modules`` are the names of the distributions.
    """
    try:
        for module in modules.values():
            _import(module)
    except Exception as error:  # a broken installation may raise any error
        return lacking(id, name, error, remedy)
    return installed(id, name, says, [*modules], remedy=remedy)


def _import(module: str) -> None:
    with _IMPORTING, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module(module)
