"""The ledger of unknowns: what the specification leaves open, and what the double does about it.

Every unspecified behaviour of the double is read from here, so that each answer can name the
guesses it rests on. ``choose()`` returns the name of the chosen alternative and notes the
unknown for the request at hand (see ``using``). The ledger in force is a context variable, so
nothing needs to be passed in. Choose where the answer matters, not before: a request that never met
the question does not rely on its answer.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from agentdouble.errors import LedgerError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Alternative:
    """One answer to an unknown; ``built`` says whether the double can live it."""

    name: str
    meaning: str
    built: bool = True


@dataclass(frozen=True)
class Unknown:
    """One question that the specification leaves open."""

    id: str
    section: str
    question: str
    default: Alternative
    alternatives: tuple[Alternative, ...]
    evidence: str

    def answer(self, name: str) -> Alternative:
        """Return the answer of that name; raise LedgerError if there is none or it is not built."""
        answers = {answer.name: answer for answer in (self.default, *self.alternatives)}
        found = answers.get(name)
        if found is None:
            known = ", ".join(answers)
            raise LedgerError(
                f"{self.id} has no alternative {name!r}. It has: {known}.", unknown=self.id
            )
        if not found.built:
            raise LedgerError(
                f"{self.id}: this version of agentdouble has not built the alternative "
                f"{name!r} ({found.meaning}) yet.",
                unknown=self.id,
            )
        return found


@cache
def unknowns() -> Mapping[str, Unknown]:
    """Return every unknown by its id, in the order of the file."""
    text = resources.files("agentdouble").joinpath("unknowns.toml").read_text("utf-8")
    return {id_: _unknown(id_, entry) for id_, entry in tomllib.loads(text).items()}


def _unknown(id_: str, entry: Mapping[str, Any]) -> Unknown:
    return Unknown(
        id=id_,
        section=entry["section"],
        question=entry["question"],
        default=Alternative(**entry["default"]),
        alternatives=tuple(Alternative(**alternative) for alternative in entry["alternatives"]),
        evidence=entry["evidence"],
    )


class Ledger:
    """The unknowns with one answer chosen for each; ``chosen`` overrides defaults by name.

    ``settled`` are those whose answer is known from a deployment and no guess. Raises
    LedgerError when ``chosen`` names an unknown or an alternative that does not exist or is
    not built.
    """

    def __init__(
        self, chosen: Mapping[str, str] | None = None, settled: Iterable[str] = ()
    ) -> None:
        self._chosen = dict(chosen or {})
        self.settled = frozenset(settled)
        self._answers = _answers(self._chosen)

    def answer(self, id_: str) -> Alternative:
        """Return the answer in force; raise LedgerError if there is no such unknown."""
        found = self._answers.get(id_)
        return found if found is not None else self._answers[find(id_).id]

    def answers(self) -> Mapping[str, str]:
        """Return the name of each answer in force by the id of its unknown."""
        return {id_: answer.name for id_, answer in self._answers.items()}

    def change(self, chosen: Mapping[str, str]) -> None:
        """Choose other answers on top of those it was made with; ``{}`` goes back to those.

        Holds from the next question on, wherever this ledger is in force. Raises LedgerError,
        and changes nothing.
        """
        self._answers = _answers({**self._chosen, **chosen})


def _answers(chosen: Mapping[str, str]) -> dict[str, Alternative]:
    answers = {id_: unknown.default for id_, unknown in unknowns().items()}
    for id_, name in chosen.items():
        answers[id_] = find(id_).answer(name)
    return answers


def find(id_: str) -> Unknown:
    """Return the unknown of that id; raise LedgerError, suggesting the nearest, if there is none."""
    found = unknowns().get(id_)
    if found is None:
        near = difflib.get_close_matches(id_.upper(), unknowns(), n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise LedgerError(f"There is no unknown {id_!r}.{hint}", unknown=id_)
    return found


@dataclass(frozen=True)
class _InForce:
    ledger: Ledger
    relied_on: set[str]


_in_force: ContextVar[_InForce | None] = ContextVar("agentdouble_ledger", default=None)


@cache
def _defaults() -> Ledger:
    return Ledger()


def choose(id_: str) -> str:
    """Return the name of the answer in force, and note that the request at hand relied on it.

    Without a ``using`` around it, the defaults are in force. Raises LedgerError if there is
    no such unknown.
    """
    in_force = _in_force.get()
    if in_force is None:
        return _defaults().answer(id_).name
    in_force.relied_on.add(id_)
    return in_force.ledger.answer(id_).name


@contextmanager
def using(ledger: Ledger) -> Iterator[set[str]]:
    """Put a ledger in force; yield the set in which ``choose()`` notes what is relied on.

    Tasks and threads started inside with a copy of the context use the same ledger and note
    into the same set.
    """
    in_force = _InForce(ledger, set())
    token = _in_force.set(in_force)
    try:
        yield in_force.relied_on
    finally:
        _in_force.reset(token)
