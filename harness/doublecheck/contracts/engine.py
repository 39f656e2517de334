"""Ask the question of a check in every way in which its answer must be true.

A check states what is true of one call: its body takes the values that the call sends, and compares
the answer with them. The engine runs the body

- alone, for each example: the edges of its inputs first, then generated values;
- again several times for the same example, and after disturbances, such as a failure, an aborted
  stream or a refusal;
- several times at once, for different examples, where each answer must belong to its question.

So a body must be repeatable: it creates what it needs, and shares nothing with another run of it.
Hypothesis generates the values, and finds a smaller example that fails, within a budget of calls.

``sequences`` asks in the same way what must be true after any sequence of calls: each example is a
sequence.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, example, given, reject, seed, settings
from hypothesis.errors import HypothesisWarning

from doublecheck.contracts.inputs import Input
from doublecheck.contracts.losses import Patience
from doublecheck.contracts.verdicts import QUICK
from doublecheck.errors import LostAnswersError, NoAnswerError

if TYPE_CHECKING:
    from doublecheck.target.plan import Plan
    from doublecheck.target.target import Target

ON_A_DOUBLE, FEW = 6, 2  # few on a live platform, and at the quick level
FEW_CALLS, SOME_CALLS = 8, 20
REPEATS, AT_ONCE = 2, 4
SHRINK_CALLS, SHRINK_WITHIN_S = 100, 10.0  # more would send too many requests to a failing platform
SHOWN_CHARS = 300
FIXTURE = "examples"
SEED = 0

T = TypeVar("T")
Values = Mapping[str, Any]
Body = Callable[..., None]
# pytest.fail() and a failed pytest.raises() do not raise an Exception
FAILURES = (Exception, pytest.fail.Exception)
NEVER_ANSWERED = (NoAnswerError, LostAnswersError)  # each further try would take as long


@functools.singledispatch
def for_caller(fixture: Any, _number: int, _stack: ExitStack) -> Any:
    """Return what a fixture is for another caller, who asks at the same time.

    By default all callers share it. ``stack`` closes what is opened for the caller.
    """
    return fixture


@functools.singledispatch
def renewed(fixture: Any, _number: int) -> Any:
    """Return what a fixture is for another attempt of a check, whose names must be new.

    By default it is the same.
    """
    return fixture


def at_once(
    calls: Sequence[Callable[[], T]], *, busy: tuple[type[BaseException], ...] = ()
) -> list[T]:
    """Return the results of calls that are made at the same time.

    A call that raises ``busy`` is made again when the others have ended (U-EXEC-CONCURRENCY).
    """
    ready = threading.Barrier(max(len(calls), 1))

    def run(call: Callable[[], T]) -> T:
        ready.wait()
        return call()

    with ThreadPoolExecutor(max(len(calls), 1)) as pool:
        try:
            futures = [pool.submit(run, call) for call in calls]
            wait(futures)
        except BaseException:
            # Ctrl-C: the barrier may never be complete, so that threads would wait for ever, and
            # the pool for them
            ready.abort()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    results = []
    for call, future in zip(calls, futures, strict=True):
        results.append(call() if isinstance(future.exception(), busy) else future.result())
    return results


def for_each(cost: int = 1, *, at_once: bool = True, **inputs: Input) -> Callable[[Body], Body]:
    """Run a check for each example of its inputs, after disturbances, and several at once.

    ``cost`` is the cost of an example in requests. The higher it is, the fewer examples are tried,
    but always at least one. Without ``at_once``, examples never run at the same time.
    """

    def decorate(check: Body) -> Body:
        @functools.wraps(check)
        def run(**fixtures: Any) -> None:
            examples: Examples = fixtures[FIXTURE] if takes_examples else fixtures.pop(FIXTURE)
            examples.run(check, inputs, fixtures, cost, at_once=at_once)

        signature = inspect.signature(check)
        takes_examples = FIXTURE in signature.parameters
        named = [it for it in signature.parameters.values() if it.name not in inputs]
        if not takes_examples:
            named.append(inspect.Parameter(FIXTURE, inspect.Parameter.KEYWORD_ONLY))
        run.__signature__ = signature.replace(parameters=named)  # type: ignore[attr-defined]
        return run

    return decorate


@dataclass(frozen=True)
class Disturbance:
    """A request that fails, made with the fixtures of a check; its answer is ignored."""

    name: str
    act: Callable[[Mapping[str, Any]], object]


@dataclass
class Examples:
    """How many examples a check tries, from which seed, and what it does between them.

    ``failing`` describes the smallest example for which the check failed. ``forget`` is called
    before that example is tried again, so that its exchanges are the last. ``quick`` tries no
    example several times. A sequence has at most ``longest`` calls, or any number if it is None.
    """

    count: int
    seed: int
    forget: Callable[[], None]
    patience: Patience | None = None
    disturbances: Sequence[Disturbance] = ()
    failing: str = ""
    quick: bool = False
    longest: int | None = None

    def run(
        self,
        check: Body,
        inputs: Mapping[str, Input],
        fixtures: Mapping[str, Any] | None = None,
        cost: int = 1,
        *,
        at_once: bool = False,
    ) -> None:
        """Run a check for each example. Raise the error of the smallest example that fails."""
        fixtures = fixtures or {}
        alone = functools.partial(check, **fixtures)
        examples = self._search(alone, inputs, max(1, self.count // cost))
        usual = examples[-2:][0]  # the last may be empty
        for number in range(REPEATS if at_once and not self.quick else 0):
            self._attempt(alone, usual, f", {number + 2} times")
        for number, disturbance in enumerate(self.disturbances):
            with contextlib.suppress(*FAILURES):
                disturbance.act(fixtures)
            self._attempt(alone, examples[number % len(examples)], f", after {disturbance.name}")
        if at_once and len(examples) > 1:
            self._at_once(check, fixtures, examples[:AT_ONCE])

    def patiently(self, attempt: Callable[[int], None]) -> None:
        """Call a function with the number of the attempt, again while answers are lost."""
        if self.patience is None:
            attempt(0)
        else:
            self.patience.repeat(attempt, FAILURES)

    def _search(self, check: Body, inputs: Mapping[str, Input], count: int) -> list[Values]:
        """Run a check for the edges of its inputs, then for generated examples, and return them."""
        edges = list(itertools.islice(_edges(inputs), count))
        runs = ExampleRuns(functools.partial(self._attempt, check))
        if edges:
            self._hypothesis(runs, inputs, edges=edges)
        if count > len(edges) and runs.failed is None:
            self._hypothesis(runs, inputs, count - len(edges))
        if runs.failed is None:
            return runs.tried
        if SHRINK_CALLS and not isinstance(runs.failed[1], NEVER_ANSWERED):
            self._hypothesis(runs, inputs, SHRINK_CALLS, Phase.shrink)
        values, error = runs.failed
        self.failing = f"{_described(values)}, with the seed {self.seed}"
        if len(runs.tried) > 1:
            self.forget()
            check(**values)
        raise error from None  # it did not fail again: the platform may behave differently

    def _hypothesis(
        self,
        runs: ExampleRuns,
        inputs: Mapping[str, Input],
        count: int = 1,
        *phases: Phase,
        edges: Sequence[Values] = (),
    ) -> None:
        """Run a check for edges, or for generated examples, until one fails."""
        test: Any = given(**{name: field.strategy for name, field in inputs.items()})(runs.run)
        for values in reversed(edges):  # the decorator that is applied last is tried first
            test = example(**values)(test)
        limits = settings(
            max_examples=count,
            phases=(Phase.explicit if edges else Phase.generate, *phases),
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=False,
            report_multiple_bugs=False,
        )
        # other threads may use the random module, and objects may be frozen: both are harmless
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HypothesisWarning)
            try:
                seed(self.seed)(limits(test))()
            except FAILURES:
                if runs.failed is None:
                    raise
                # the notes repeat the whole example, which ``failing`` cuts
                vars(runs.failed[1]).pop("__notes__", None)

    def _attempt(self, check: Body, values: Values, circumstances: str = "") -> None:
        """Run a check for one example."""
        try:
            self.patiently(lambda _number: check(**values))
        except FAILURES:
            self.failing = f"{_described(values)}{circumstances}"
            raise

    def _at_once(
        self, check: Body, fixtures: Mapping[str, Any], examples: Sequence[Values]
    ) -> None:
        """Run a check for all examples at the same time, each as another caller.

        While answers are lost on the way, there are fewer callers.
        """

        def attempt(attempts: int) -> None:
            count = max(len(examples) >> attempts, 2)

            def run(number: int, fixtures: Mapping[str, Any]) -> None:
                try:
                    check(**fixtures, **examples[number])
                except FAILURES:
                    together = f"at the same time as {count - 1} others"
                    self.failing = f"{_described(examples[number])}, {together}"
                    raise

            with ExitStack() as stack:
                callers = [
                    {name: for_caller(it, number, stack) for name, it in fixtures.items()}
                    for number in range(count)
                ]
                at_once([functools.partial(run, *caller) for caller in enumerate(callers)])

        self.patiently(attempt)


class ExampleRuns:
    """The runs of a check with the values that Hypothesis chooses.

    ``tried`` are all the values; ``failed`` is the smallest failure. After the first failure there
    is a budget of calls and time for smaller ones.
    """

    def __init__(self, check: Callable[[Values], None]) -> None:
        self._check = check
        self._left, self._until = SHRINK_CALLS, 0.0
        self.tried: list[Values] = []
        self.failed: tuple[Values, BaseException] | None = None

    def run(self, **values: Any) -> None:
        """Run the check, unless the budget is used up."""
        if self.failed is not None:
            self._left -= 1
            if self._left < 0 or time.monotonic() > self._until:
                reject()
        self.tried.append(values)
        try:
            self._check(values)
        except FAILURES as error:
            if self.failed is None:
                self._until = time.monotonic() + SHRINK_WITHIN_S
            if self.failed is None or len(repr(values)) <= len(repr(self.failed[0])):
                self.failed = values, error
            raise


def longest_sequence(target: Target, *, quick: bool) -> int | None:
    """Return the largest number of calls in a sequence, or None if there is no limit.

    Each call may cost a live platform's agent a request to a model.
    """
    if quick or not (target.kind == "double" or target.reference_app):
        return FEW_CALLS
    return None if target.kind == "double" else SOME_CALLS


def chosen(plan: Plan) -> tuple[int, int]:
    """Return how many examples a platform's checks try, and from which seed."""
    thorough = plan.kind == "double" and plan.value("level") != QUICK
    usual = ON_A_DOUBLE if thorough else FEW
    return plan.value("examples") or usual, plan.value("seed") or SEED


def _edges(inputs: Mapping[str, Input]) -> Iterator[Values]:
    """Yield the examples that are always tried, combined across the inputs in order."""
    most = max(len(field.always) for field in inputs.values())
    if not all(field.always for field in inputs.values()):
        return
    for number in range(most):
        yield {name: field.always[number % len(field.always)] for name, field in inputs.items()}


def _described(values: Values) -> str:
    return ", ".join(f"{name}={_cut(repr(value))}" for name, value in values.items())


def _cut(text: str) -> str:
    omitted = len(text) - SHOWN_CHARS
    if omitted <= 0:
        return text
    half = SHOWN_CHARS // 2
    return f"{text[:half]} ... {omitted} characters omitted ... {text[-half:]}"
