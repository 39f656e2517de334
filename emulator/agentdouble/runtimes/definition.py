"""The definition of a runtime: the program that it runs, how far it scales, and its versions."""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agentdouble.errors import RuntimeNameError, UnknownVersionError
from agentdouble.runtimes.authentication.authorizers import Authorizer

NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$"
NAME_RULE = (
    "a name is one segment of a path: up to 100 letters, digits and _ . -, a letter or digit first"
)
VERSIONS_KEPT = 50


def check_name(name: str, taken: Collection[str] = ()) -> None:
    """Raise RuntimeNameError for a name that cannot be used; ``taken`` are applications' names."""
    if re.fullmatch(NAME, name) is None:
        raise RuntimeNameError(name, NAME_RULE)
    if name in taken:
        raise RuntimeNameError(name, f"an application of this process answers at /runtimes/{name}")


@dataclass(frozen=True)
class Program:
    """The program that a runtime's instances run in ``directory``: an application or a command.

    ``application`` is ``module:attribute`` or ``file.py:attribute``. ``command`` is any program
    that listens on ``$PORT`` of 127.0.0.1. Its arguments may contain ``$PORT``: for API-server mode
    ``agentdouble serve --agents DIRECTORY --port $PORT``. ``python`` is the interpreter of either
    (for a command it comes first on PATH), or None for the double's own. A command that begins with
    the path of an interpreter has that one. The interpreter of a virtual environment has the
    libraries of that environment.

    With ``sources``, whoever asked for the program may name only paths below these directories, and
    nothing that it names makes other paths visible.
    """

    directory: Path
    application: str | None = None
    command: tuple[str, ...] = ()
    python: Path | None = None
    sources: tuple[Path, ...] | None = None

    def may_show(self, path: str | Path) -> bool:
        """Return whether the program may make a path visible; links are followed."""
        real = Path(os.path.realpath(path))
        return self.sources is None or any(map(real.is_relative_to, self.sources))


@dataclass(frozen=True)
class Scaling:
    """How many instances there may be, and how many requests an instance gets at a time.

    After ``idle_s`` without a request, on the double's clock, instances beyond ``min_instances``
    end; if it is None, the ledger decides (U-SCALE-IDLE). ``start_timeout_s`` is how long an
    instance may take to become ready, and ``stop_timeout_s`` how long it may take to end when
    asked. ``drain_timeout_s`` is how long the requests of a replaced instance may take. A request
    waits ``queue_timeout_s`` at most for a free instance, and at most ``queue_limit`` requests may
    wait.
    """

    min_instances: int = 0
    max_instances: int = 4
    max_concurrency: int = 10
    idle_s: float | None = None
    start_timeout_s: float = 120.0
    stop_timeout_s: float = 5.0
    drain_timeout_s: float = 60.0
    queue_timeout_s: float = 60.0
    queue_limit: int = 1000


@dataclass(frozen=True)
class Definition:
    """A version of a runtime; its processes get ``environment`` in addition to the system's.

    ``authorizer`` checks the callers; if it is None, every caller is admitted. ``memory_limit`` is
    the memory in bytes that all processes of an instance may use together, or None for no limit.
    """

    name: str
    program: Program
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    scaling: Scaling = Scaling()
    authorizer: Authorizer | None = None
    memory_limit: int | None = None


@dataclass(frozen=True)
class Version:
    """A definition of a runtime and its time; numbers begin with 1 and are never used twice."""

    number: int
    definition: Definition
    created_at: dt.datetime


class Versions:
    """The versions that are kept, oldest first; the version in force is always kept."""

    def __init__(self, first: Version) -> None:
        self._kept = {first.number: first}
        self.in_force = first
        self.released = first.number  # the highest that was ever released

    def all(self) -> tuple[Version, ...]:
        """Return the versions that are kept, the oldest first."""
        return tuple(self._kept.values())

    @property
    def latest(self) -> Version:
        """The newest version."""
        return self._kept[max(self._kept)]

    def find(self, number: int) -> Version:
        """Return the version with this number; raise UnknownVersionError."""
        found = self._kept.get(number)
        if found is None:
            raise UnknownVersionError(self.in_force.definition.name, number, sorted(self._kept))
        return found

    def add(self, definition: Definition, at: dt.datetime) -> Version:
        """Keep a definition as the newest version; drop the oldest if there are too many."""
        version = Version(self.latest.number + 1, definition, at)
        self._kept[version.number] = version
        if len(self._kept) > VERSIONS_KEPT:
            del self._kept[next(n for n in self._kept if n != self.in_force.number)]
        return version

    def bring_in_force(self, version: Version) -> None:
        """Route new requests to a version."""
        self.in_force = version
        self.released = max(self.released, version.number)

    def restore(self, kept: Sequence[Version], in_force: int) -> None:
        """Restore versions that were stored, oldest first."""
        self._kept = {version.number: version for version in kept}
        self.bring_in_force(self.find(in_force))
