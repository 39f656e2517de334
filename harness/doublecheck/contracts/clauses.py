"""The clauses of the specification, and the marker that connects a check to its clause."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

import pytest

from agentdouble.core.suggestions import did_you_mean
from doublecheck.errors import ArgumentError
from doublecheck.target.facts import Surface

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MARKER = "clause"


@dataclass(frozen=True)
class Clause:
    """One checkable sentence of the specification, from section ``section``.

    A target must offer ``surface``, with ``routes``. ``smoke`` and ``quick`` tell which levels have
    its checks.
    """

    id: str
    section: str
    level: Literal["must", "should"]
    scope: Literal["wire", "app", "library"]
    text: str
    surface: Surface
    routes: tuple[str, ...] = ()
    smoke: bool = False
    quick: bool = True

    @property
    def group(self) -> str:
        """The keyword of its group for pytest's ``-k``; no test name contains it."""
        return f"group:{self.id[:3]}"

    def __repr__(self) -> str:
        return f"<Clause {self}>"

    def __str__(self) -> str:
        return f"{self.id} ({self.level}): {self.text}"


@cache
def clauses() -> Mapping[str, Clause]:
    """Return every clause by its id, in the order of the specification."""
    text = resources.files("doublecheck.contracts").joinpath("clauses.toml").read_text("utf-8")
    return {
        id_: Clause(id_, **{**entry, "routes": tuple(entry.get("routes", ()))})
        for id_, entry in tomllib.loads(text).items()
    }


def groups() -> Collection[str]:
    """Return the groups of the clauses, in the specification's order."""
    return dict.fromkeys(id_[:3] for id_ in clauses())


def selection(expression: str) -> str:
    """Return a selection for pytest's ``-k`` in which RUN means the clauses of that group.

    Otherwise it would also match every test with "run" in its name or in the name of its file.
    """
    names = "|".join(groups())
    return re.sub(rf"(?<![^\s()])({names})(?![^\s()])", r"group:\1", expression)


def modules_of(expression: str) -> list[str]:
    """Return the modules with the checks of clauses and groups. Return [] for any other selection.

    To collect all modules takes longer than most checks.
    """
    words = [word for word in re.split(r"[\s()]+", expression) if word not in ("", "or")]
    ids = {id_ for id_ in clauses() if any(word in (id_, id_[:3]) for word in words)}
    if not words or not all(word in groups() or word in ids for word in words):
        return []
    folder = resources.files("doublecheck.contracts")
    texts = {
        file.name.removesuffix(".py"): file.read_text("utf-8")
        for file in folder.iterdir()
        if file.name.startswith("test_")
    }
    named = re.compile("|".join(map(re.escape, ids)) or "(?!)")
    return sorted(module for module, text in texts.items() if named.search(text))


def find(id_: str) -> Clause:
    """Return the clause with this id. Raise ArgumentError, with the closest id, if none has it."""
    match = clauses().get(id_)
    if match is None:
        raise ArgumentError(f"There is no clause {id_!r}.{did_you_mean(id_, clauses())}")
    return match


def clause(
    id_: str,
    *,
    reference_app: bool | None = None,
    writes: bool = False,
    smoke: bool = False,
    surface: Surface | None = None,
) -> pytest.MarkDecorator:
    """Mark a check with the clause it checks. Raise ArgumentError for an unknown id.

    ``reference_app``: the check needs the reference application although the clause applies to
    every deployment (by default, the clause's scope decides). ``writes``: the check creates or
    deletes something on the target. ``smoke``: the check replaces one that needs the reference
    application (see ``verdicts.select``). ``surface``: the surface that the check uses, if it is
    not the clause's.
    """
    checked = find(id_)
    needs = checked.scope == "app" and not smoke if reference_app is None else reference_app
    named: pytest.MarkDecorator = getattr(pytest.mark, MARKER)
    return named(
        checked, reference_app=needs, writes=writes, smoke=smoke, surface=surface or checked.surface
    )


def for_clauses(ids: Iterable[str], **options: Any) -> pytest.MarkDecorator:
    """Run a check for each clause, as its parameter ``id_``; ``options`` as for ``clause``."""
    marked = [pytest.param(id_, marks=clause(id_, **options)) for id_ in ids]
    return pytest.mark.parametrize("id_", marked)
