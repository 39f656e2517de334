"""What a runtime is: the program that it runs, how far it scales, and the versions of that."""

from __future__ import annotations

import datetime as dt
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
    """Raise RuntimeNameError if no runtime can have that name; ``taken`` are applications' names."""
    if re.fullmatch(NAME, name) is None:
        raise RuntimeNameError(name, NAME_RULE)
    if name in taken:
        raise RuntimeNameError(name, f"an application of this process answers at /runtimes/{name}")


@dataclass(frozen=True)
class Program:
    """What a runtime's instances run, in ``directory``: an application or a command.

    ``application`` is ``module:attribute`` or ``file.py:attribute``; ``command`` is anything that
    listens on ``$PORT`` of 127.0.0.1, which may stand in its arguments: for API-server mode
    ``agentdouble serve --agents DIRECTORY --port $PORT``. ``python`` is the interpreter of either
    (for a command it comes first on PATH), None for the double's own; a virtual environment's
    keeps its libraries.
    """

    directory: Path
    application: str | None = None
    command: tuple[str, ...] = ()
    python: Path | None = None


@dataclass(frozen=True)
class Scaling:
    """How many instances there may be, and how many requests one is given at a time.

    ``idle_s`` is the time without a request after which instances beyond ``min_instances`` end, on
    the double's clock; None asks the ledger (U-SCALE-IDLE). ``start_timeout_s`` is the patience
    with an instance that is not ready yet, ``stop_timeout_s`` with one that was asked to end,
    ``drain_timeout_s`` with the requests of one that is replaced, ``queue_timeout_s`` that of a
    request for which no instance is free; ``queue_limit`` is how many such may wait.
    """

    min_instances: int = 0
    max_instances: int = 4
    max_concurrency: int = 10
    idle_s: float | None = None
    start_timeout_s: float = 30.0
    stop_timeout_s: float = 5.0
    drain_timeout_s: float = 60.0
    queue_timeout_s: float = 60.0
    queue_limit: int = 1000


@dataclass(frozen=True)
class Definition:
    """One version of a runtime; ``environment`` is what its processes get besides the system's.

    ``authorizer`` is how its callers prove themselves; None lets everybody in. ``memory_limit`` is
    what the processes of an instance may have of memory together, in bytes; None for no limit.
    """

    name: str
    program: Program
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    scaling: Scaling = Scaling()
    authorizer: Authorizer | None = None
    memory_limit: int | None = None


@dataclass(frozen=True)
class Version:
    """What a runtime was said to be at a time; numbers begin with 1 and are never used twice."""

    number: int
    definition: Definition
    created_at: dt.datetime


class Versions:
    """The versions that are kept, oldest first; the one in force stays, however old."""

    def __init__(self, first: Version) -> None:
        self._kept = {first.number: first}
        self.in_force = first
        self.released = first.number  # the highest that was ever released

    def all(self) -> tuple[Version, ...]:
        """Return those that are kept, the oldest first."""
        return tuple(self._kept.values())

    @property
    def latest(self) -> Version:
        """The newest."""
        return self._kept[max(self._kept)]

    def find(self, number: int) -> Version:
        """Return the version of that number; raise UnknownVersionError."""
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
        """Restore versions that were kept elsewhere, oldest first."""
        self._kept = {version.number: version for version in kept}
        self.bring_in_force(self.find(in_force))
