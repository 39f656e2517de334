"""What a shell completes: targets, clauses and unknowns."""

from __future__ import annotations

from collections.abc import Iterator

import typer

from agentdouble.cli.completion import quietly


@quietly
def targets(_ctx: typer.Context) -> Iterator[str]:
    """Yield double, live, and the targets of the nearest pyproject.toml."""
    from doublecheck.target import config_files  # slow: 20 ms

    yield from config_files.RESERVED
    project = config_files.nearest_project()
    file = None if project is None else config_files.read_project(project)
    yield from () if file is None else file.targets


@quietly
def clauses(_ctx: typer.Context) -> Iterator[str]:
    """Yield the groups of clauses, and the clauses."""
    from doublecheck.contracts import clauses as contracts  # slow: pytest

    yield from contracts.groups()
    yield from contracts.clauses()


@quietly
def unknowns(_ctx: typer.Context) -> Iterator[str]:
    """Yield the unknowns that have alternatives."""
    from agentdouble.core import ledger  # slow: 40 ms

    yield from (id_ for id_, unknown in ledger.unknowns().items() if unknown.alternatives)


@quietly
def levels(_ctx: typer.Context) -> Iterator[str]:
    """Yield the levels of a run."""
    from doublecheck.target.config_files import LEVELS  # slow: 20 ms

    yield from LEVELS
