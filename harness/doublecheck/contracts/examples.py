"""Checks over generated inputs: a check runs once for each example, the same ones for one seed.

Hypothesis generates the examples and shrinks a failing one. A check names its inputs, and its other
parameters stay pytest's fixtures::

    @clause("INV-01")
    @for_each(payload=inputs.payloads())
    def test_every_field_arrives(platform: Platform, payload: dict[str, Any]) -> None: ...

The examples of an Input that it always has come first, because each of them stands for a mistake
that platforms make. Random ones follow, until the number of examples is reached.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import HypothesisWarning
from hypothesis.internal.conjecture.providers import HypothesisProvider
from hypothesis.strategies import SearchStrategy

from doublecheck.errors import NoAnswerError

if TYPE_CHECKING:
    from doublecheck.target.plan import Plan

ON_A_DOUBLE, ON_A_LIVE_PLATFORM = 6, 2
SHRINK_CALLS, SHRINK_WITHIN_S = 60, 10.0  # more would ask a platform that fails for too much
SHOWN_CHARS = 300
FIXTURE = "examples"

SEED = 0

Values = Mapping[str, Any]
Body = Callable[..., None]
# pytest.fail() and a failed pytest.raises() are no Exception
FAILURES = (Exception, pytest.fail.Exception)


@dataclass(frozen=True)
class Input:
    """What an input may be; ``always`` are the examples that come first, the richest one first."""

    strategy: SearchStrategy[Any]
    always: tuple[Any, ...] = ()

    def map(self, change: Callable[[Any], Any]) -> Input:
        """Return an input whose examples are changed by a function."""
        return Input(self.strategy.map(change), tuple(change(one) for one in self.always))


def for_each(cost: int = 1, **inputs: Input) -> Callable[[Body], Body]:
    """Make a check run for each example of its inputs.

    ``cost`` is how many times as expensive as one request an example is: so many times fewer
    examples are tried, but always one.
    """

    def decorate(check: Body) -> Body:
        @functools.wraps(check)
        def run(**fixtures: Any) -> None:
            examples: Examples = fixtures[FIXTURE] if takes_examples else fixtures.pop(FIXTURE)
            examples.run(functools.partial(check, **fixtures), inputs, cost)

        signature = inspect.signature(check)
        takes_examples = FIXTURE in signature.parameters
        named = [one for one in signature.parameters.values() if one.name not in inputs]
        if not takes_examples:
            named.append(inspect.Parameter(FIXTURE, inspect.Parameter.KEYWORD_ONLY))
        run.__signature__ = signature.replace(parameters=named)  # type: ignore[attr-defined]
        return run

    return decorate


@dataclass
class Examples:
    """How many examples a check is run for, and from which seed.

    ``failing`` is the smallest example for which the check failed, in words; ``forget`` is called
    before that one is tried again, so that its exchanges are the last.
    """

    count: int
    seed: int
    forget: Callable[[], None]
    failing: str = ""
    _failures: list[tuple[Values, BaseException]] = field(default_factory=list)

    def run(self, check: Body, inputs: Mapping[str, Input], cost: int = 1) -> None:
        """Run a check for each example; raise what it raises for the smallest that fails."""
        count = max(1, self.count // cost)
        first = list(itertools.islice(_always(inputs), count))
        try:
            for values in first:
                self._try(check, values)
            if count > len(first):
                self._generate(check, inputs, count - len(first))
        except NoAnswerError:
            raise  # each further try would take as long
        except FAILURES:
            if not self._failures:
                raise  # Hypothesis did, not the check
            self._shrink(check, inputs)
            self._raise_smallest(check)

    def _try(self, check: Body, values: Values) -> None:
        try:
            check(**values)
        except FAILURES as error:
            self._failures.append((values, error))
            self.failing = _described(values)
            raise

    def _generate(self, check: Body, inputs: Mapping[str, Input], count: int) -> None:
        """Try random examples; the first that fails ends it."""
        calls = itertools.count()

        def try_one(**values: Any) -> None:
            if next(calls) < count:  # older versions of Hypothesis try some more
                self._try(check, values)

        self._hypothesis(try_one, inputs, count, Phase.generate)

    def _shrink(self, check: Body, inputs: Mapping[str, Input]) -> None:
        """Look for smaller examples that fail, for a bounded time and number of tries."""
        until, calls = time.monotonic() + SHRINK_WITHIN_S, itertools.count()
        told: dict[str, BaseException | None] = {}

        def try_once(**values: Any) -> None:
            key = repr(values)
            if key not in told:
                if time.monotonic() > until or next(calls) >= SHRINK_CALLS:
                    return
                told[key] = self._failure(check, values)
            found = told[key]
            if found is not None:
                raise found  # the same each time, as Hypothesis expects

        with contextlib.suppress(*FAILURES):  # they are noted
            self._hypothesis(try_once, inputs, self.count, Phase.generate, Phase.shrink)

    def _failure(self, check: Body, values: Values) -> BaseException | None:
        try:
            self._try(check, values)
        except FAILURES as error:
            return error
        return None

    def _hypothesis(
        self, check: Body, inputs: Mapping[str, Input], count: int, *phases: Phase
    ) -> None:
        asked = given(**{name: one.strategy for name, one in inputs.items()})(check)
        chosen = settings(
            max_examples=count,
            phases=phases,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=False,
            report_multiple_bugs=False,
        )
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
            # It warns where other threads use the random module while examples are drawn, and where
            # the garbage collector's objects are frozen: neither is anything to a check.
            warnings.simplefilter("ignore", HypothesisWarning)
            # It would also draw constants of the code that is imported: slowly (it parses all of
            # it), and not the same ones everywhere for one seed.
            patch.setattr(HypothesisProvider, "_maybe_draw_constant", _no_constant, raising=False)
            hypothesis.seed(self.seed)(chosen(asked))()

    def _raise_smallest(self, check: Body) -> None:
        values, error = min(self._failures, key=lambda one: len(repr(one[0])))
        self.failing = f"{_described(values)}, with the seed {self.seed}"
        self.forget()
        check(**values)
        raise error  # it did not fail again; the platform is not the same each time


def _no_constant(*_: Any, **__: Any) -> None:
    return None


def chosen(plan: Plan) -> tuple[int, int]:
    """Return how many examples the checks of a platform try, and from which seed."""
    usual = ON_A_DOUBLE if plan.kind == "double" else ON_A_LIVE_PLATFORM
    return plan.value("examples") or usual, plan.value("seed") or SEED


def _always(inputs: Mapping[str, Input]) -> Iterator[Values]:
    """Yield the examples that are always tried, each input's next to each other's."""
    most = max(len(one.always) for one in inputs.values())
    if not all(one.always for one in inputs.values()):
        return
    for number in range(most):
        yield {name: one.always[number % len(one.always)] for name, one in inputs.items()}


def _described(values: Values) -> str:
    return ", ".join(f"{name}={_cut(repr(value))}" for name, value in values.items())


def _cut(text: str) -> str:
    left_out = len(text) - SHOWN_CHARS
    if left_out <= 0:
        return text
    half = SHOWN_CHARS // 2
    return f"{text[:half]} ... {left_out} characters ... {text[-half:]}"
