"""The ledger of unknowns: questions that the specification leaves open, and the double's answers.

Every unspecified behaviour of the double is read from here, so each answer can list the guesses it
relies on. ``choose()`` returns the name of the chosen alternative and notes the unknown for the
current request (see ``using``). The ledger in force is a context variable, so no function needs it
as an argument. Call ``choose()`` where the answer matters and not earlier: otherwise a request
that never reaches the question would count as relying on it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from agentdouble.core import evidence as evidence_of
from agentdouble.core.evidence import MEASURED, Evidence
from agentdouble.core.suggestions import did_you_mean
from agentdouble.errors import LedgerError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_in_force: ContextVar[_InForce | None] = ContextVar("agentdouble_ledger", default=None)


@dataclass(frozen=True)
class Alternative:
    """One answer to an unknown; ``built`` says whether the double supports it."""

    name: str
    meaning: str
    built: bool = True


@dataclass(frozen=True)
class Effect:
    """A difference between two platforms' answers that an unknown explains, and no experiment.

    The head of ``unknowns.toml`` says what the fields mean.
    """

    operations: tuple[str, ...]
    paths: tuple[str, ...]
    other_than: tuple[str, ...] = ()
    values: tuple[tuple[str, ...], ...] = ()
    missing: bool = False
    double_says: tuple[str, ...] = ()
    request_lacks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Unknown:
    """One question that the specification leaves open.

    ``explains`` are its effects on answers that no alternative shows. ``not_visible`` says why no
    answer shows it at all.
    """

    id: str
    section: str
    question: str
    default: Alternative
    alternatives: tuple[Alternative, ...]
    evidence: tuple[Evidence, ...]
    explains: tuple[Effect, ...] = ()
    not_visible: str | None = None

    def rests_on(self, name: str | None = None) -> str:
        """Return the strongest kind of evidence for the answer of that name, or for the default."""
        is_default = name in (None, self.default.name)
        return evidence_of.strongest(self.evidence, None if is_default else name)

    def answer(self, name: str) -> Alternative:
        """Return the answer of that name; raise LedgerError if it is missing or not built."""
        answers = {answer.name: answer for answer in (self.default, *self.alternatives)}
        alternative = answers.get(name)
        if alternative is None:
            names = ", ".join(answers)
            raise LedgerError(
                f"{self.id} has no alternative {name!r}. It has: {names}."
                f"{did_you_mean(name, answers)}",
                unknown=self.id,
            )
        if not alternative.built:
            raise LedgerError(
                f"{self.id}: this version of agentdouble has not built the alternative "
                f"{name!r} ({alternative.meaning}) yet.",
                unknown=self.id,
            )
        return alternative


@cache
def unknowns() -> Mapping[str, Unknown]:
    """Return all unknowns by id, in the order of the file."""
    text = resources.files("agentdouble.core").joinpath("unknowns.toml").read_text("utf-8")
    return {id_: _unknown(id_, entry) for id_, entry in tomllib.loads(text).items()}


def _unknown(id_: str, entry: Mapping[str, Any]) -> Unknown:
    ways = sum(map(bool, (entry.get("explains"), entry.get("not_visible"))))
    if ways > 1 or not (ways or any(it.get("built", True) for it in entry["alternatives"])):
        raise LedgerError(
            f"{id_} must have an alternative that is built, or either explains, the differences that "
            "it explains, or not_visible, the reason why no answer shows it.",
            unknown=id_,
        )
    return Unknown(
        id=id_,
        section=entry["section"],
        question=entry["question"],
        default=Alternative(**entry["default"]),
        alternatives=tuple(Alternative(**alternative) for alternative in entry["alternatives"]),
        evidence=evidence_of.parse(
            id_, entry.get("evidence"), [it["name"] for it in entry["alternatives"]]
        ),
        explains=tuple(effect(id_, item) for item in entry.get("explains", ())),
        not_visible=entry.get("not_visible"),
    )


def effect(id_: str, entry: Mapping[str, Any]) -> Effect:
    """Return an effect of an unknown from its entry; raise LedgerError if the entry is wrong."""
    for name, value in entry.items():
        if name not in _EFFECT or not _EFFECT[name](value):
            names = ", ".join(_EFFECT)
            raise LedgerError(
                f"{id_} explains with {name} = {value!r}, which is wrong. The keys are {names}; "
                "unknowns.toml says what each may be.",
                unknown=id_,
            )
    for name in ("operations", "paths"):
        if name not in entry:
            raise LedgerError(f"{id_} explains without {name}.", unknown=id_)
    return Effect(**{name: _frozen(value) for name, value in entry.items()})


def _texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)


def _groups(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(_texts(item) for item in value)


_EFFECT: Mapping[str, Callable[[Any], bool]] = {
    "operations": _texts,
    "paths": _texts,
    "other_than": _texts,
    "values": _groups,
    "missing": lambda value: value is True,
    "double_says": _texts,
    "request_lacks": _texts,
}


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


class Ledger:
    """The unknowns with one chosen answer for each; ``chosen`` overrides the defaults by name.

    ``settled`` are the unknowns whose answer is known from a deployment and is not a guess;
    ``measured`` is what was seen there, if the profile says it. Raises LedgerError if ``chosen`` has
    an unknown or an alternative that does not exist or is not built.
    """

    def __init__(
        self,
        chosen: Mapping[str, str] | None = None,
        settled: Iterable[str] = (),
        measured: Mapping[str, Evidence] | None = None,
    ) -> None:
        self._chosen = dict(chosen or {})
        self.settled = frozenset(settled)
        self._measured = dict(measured or {})
        self._answers = _answers(self._chosen)
        self.version = 0  # increases with each change

    def answer(self, id_: str) -> Alternative:
        """Return the answer in force; raise LedgerError if the unknown does not exist."""
        answer = self._answers.get(id_)
        return answer if answer is not None else self._answers[find(id_).id]

    def answers(self) -> Mapping[str, str]:
        """Return the names of the answers in force, by the ids of their unknowns."""
        return {id_: answer.name for id_, answer in self._answers.items()}

    def evidence(self, id_: str) -> tuple[Evidence, ...]:
        """Return the evidence about an unknown, a deployment's first."""
        measured = self._measured.get(id_) if id_ in self.settled else None
        evidence = find(id_).evidence
        return evidence if measured is None else (measured, *evidence)

    def rests_on(self, id_: str) -> str:
        """Return the strongest kind of evidence for the answer in force."""
        return MEASURED if id_ in self.settled else find(id_).rests_on(self.answer(id_).name)

    def summary(self) -> str:
        """Say how many of the unknowns rest on what."""
        ids = unknowns().keys()
        evidence = [it for id_ in ids for it in self.evidence(id_)]
        return evidence_of.summary([self.rests_on(id_) for id_ in ids], evidence)

    def change(self, chosen: Mapping[str, str]) -> None:
        """Choose other answers, on top of those the ledger was made with; ``{}`` removes them.

        This holds from the next question on, wherever this ledger is in force. If it raises
        LedgerError, nothing has changed.
        """
        self._answers = _answers({**self._chosen, **chosen})
        self.version += 1


def _answers(chosen: Mapping[str, str]) -> dict[str, Alternative]:
    answers = {id_: unknown.default for id_, unknown in unknowns().items()}
    for id_, name in chosen.items():
        answers[id_] = find(id_).answer(name)
    return answers


def find(id_: str) -> Unknown:
    """Return the unknown of that id; raise LedgerError, which suggests the nearest id."""
    unknown = unknowns().get(id_)
    if unknown is None:
        hint = did_you_mean(id_, unknowns(), "See: agentdouble unknowns")
        raise LedgerError(f"There is no unknown {id_!r}.{hint}", unknown=id_)
    return unknown


@dataclass(frozen=True)
class _InForce:
    ledger: Ledger
    relied_on: set[str]


@cache
def _defaults() -> Ledger:
    return Ledger()


def choose(id_: str) -> str:
    """Return the name of the answer in force and note that the current request relied on it.

    Outside ``using`` the defaults are in force. Raises LedgerError if the unknown does not exist.
    """
    in_force = _in_force.get()
    if in_force is None:
        return _defaults().answer(id_).name
    in_force.relied_on.add(id_)
    return in_force.ledger.answer(id_).name


@contextmanager
def using(ledger: Ledger) -> Iterator[set[str]]:
    """Put a ledger in force; yield the set in which ``choose()`` notes the unknowns.

    Tasks and threads that start inside with a copy of the context use the same ledger and the same
    set.
    """
    in_force = _InForce(ledger, set())
    token = _in_force.set(in_force)
    try:
        yield in_force.relied_on
    finally:
        _in_force.reset(token)
