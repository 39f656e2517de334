"""What a runtime is: the program that it runs, how far it scales, what its processes are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agentdouble.runtimes.authentication.authorizers import Authorizer


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
