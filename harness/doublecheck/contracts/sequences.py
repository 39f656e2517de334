"""Ask what must be true after any sequence of calls.

A model holds what a platform must hold. Each of its steps makes a call, compares the answer with
the model, and changes the model; when a sequence ends, everything that it created is compared once
more. A check runs the model's own scenario, then random sequences of the steps that concern its
clause, and shows the shortest that fails.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from doublecheck.contracts import inputs
from doublecheck.contracts.engine import Examples
from doublecheck.contracts.inputs import Input

TEXTS = st.sampled_from(inputs.EDGES) | st.text("ab 01ü🦉\n", min_size=1, max_size=12)
NUMBERS = st.integers(0, 9)  # of things that a sequence has created; it may have fewer
FEWEST = 3  # calls, while answers are lost on the way
COST = 2  # of a sequence, beside an example of one call

F = TypeVar("F", bound=Callable[..., None])
T = TypeVar("T")


@dataclass(frozen=True)
class StepCall:
    """A step of a sequence, with its arguments."""

    name: str
    arguments: Mapping[str, Any]

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"\n  {self.name}({arguments})"


def call(name: str, /, **arguments: Any) -> StepCall:
    """Return a step of a scenario."""
    return StepCall(name, arguments)


def step(**arguments: SearchStrategy[Any]) -> Callable[[F], F]:
    """Mark a method of a model as a step, with the possible values of its arguments."""

    def mark(method: F) -> F:
        method.arguments = arguments  # type: ignore[attr-defined]
        return method

    return mark


class Model:
    """What must be true of a platform after any sequence of steps.

    ``scenario`` is a sequence that is always tried.
    """

    scenario: ClassVar[Sequence[StepCall]] = ()

    def compare(self) -> None:
        """Fail if the platform differs from the model."""

    @classmethod
    def sequences(cls, names: Iterable[str], length: int) -> Input:
        """Return the sequences of some steps, by default all, of about this length.

        Hypothesis prefers short lists, and leaves out steps when it looks for a shorter sequence.
        """
        steps = {
            name: method.arguments
            for name, method in vars(cls).items()
            if hasattr(method, "arguments")
        }
        chosen = [*names] or [*steps]
        calls = [
            st.fixed_dictionaries(dict(steps[name])).map(functools.partial(StepCall, name))
            for name in chosen
        ]
        scenario = [it for it in cls.scenario if it.name in chosen]
        sequence = st.lists(st.none() | st.one_of(calls), min_size=length, max_size=length)
        return Input(sequence.map(_without_none), (scenario,) if scenario else ())


def _without_none(calls: Iterable[StepCall | None]) -> Sequence[StepCall]:
    return [it for it in calls if it is not None]


def numbered(things: Iterable[T], numbers: Iterable[int]) -> list[T]:
    """Return the things with these numbers, which go on from the start after the last one."""
    some = [*things]
    return list(dict.fromkeys(some[number % len(some)] for number in numbers if some))


def run(examples: Examples, make: Callable[[], Model], sequences: Input) -> None:
    """Run sequences of a model's steps. Raise the error of the shortest that fails.

    Sequences are shorter on a live platform, at the quick level, and while answers are lost.
    """
    most = examples.longest or sys.maxsize

    def check(calls: Sequence[StepCall]) -> None:
        def attempt(number: int) -> None:
            model, count = make(), min(len(calls), most) >> number
            for it in calls[: max(count, FEWEST)]:
                getattr(model, it.name)(**it.arguments)
            model.compare()

        examples.patiently(attempt)

    examples.run(check, {"calls": sequences}, cost=COST)
