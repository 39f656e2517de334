"""Ask the question of a check in every way in which its answer must be true.

A check states what is true of one call: its body takes the values that the call sends, and compares
the answer with them. The engine runs the body

- alone, for each example: the edges of its inputs first, then generated values;
- again several times for the same example, and after disturbances, such as a failure, an aborted
  stream or a refusal;
- several times at once, for different examples, where each answer must belong to its question.

So a body must be repeatable: it creates what it needs, and shares nothing with another run of it.

A model states what is true after any sequence of calls. Its rules make a call, compare the answer
with the model, and change the model; when a sequence ends, everything that it created is compared
once more. A check runs random sequences of the rules that concern its clause, and shows the
shortest that fails.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky, HypothesisWarning
from hypothesis.internal.conjecture import engine as conjecture
from hypothesis.internal.conjecture.providers import HypothesisProvider
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from doublecheck.contracts import inputs
from doublecheck.contracts.inputs import Input
from doublecheck.contracts.losses import Patience
from doublecheck.contracts.verdicts import QUICK
from doublecheck.errors import LostAnswersError, NoAnswerError

if TYPE_CHECKING:
    from doublecheck.target.plan import Plan

ON_A_DOUBLE, FEW = 6, 2  # few on a live platform, and at the quick level
REPEATS, AT_ONCE = 2, 4
SHRINK_CALLS, SHRINK_WITHIN_S = 60, 10.0  # more would send too many requests to a failing platform
SHOWN_CHARS = 300
FIXTURE = "examples"
SEED = 0

T = TypeVar("T")
Values = Mapping[str, Any]
Body = Callable[..., None]
# pytest.fail() and a failed pytest.raises() do not raise an Exception
FAILURES = (Exception, pytest.fail.Exception)


@functools.singledispatch
def for_caller(fixture: Any, _number: int, _stack: ExitStack) -> Any:
    """Return what a fixture is for another caller, who asks at the same time.

    By default all callers share it. ``stack`` closes what is opened for the caller.
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

    ``failing`` describes the smallest example or sequence for which the check failed. ``forget`` is
    called before that example is tried again, so that its exchanges are the last. ``quick`` tries
    no example several times, and makes sequences short.
    """

    count: int
    seed: int
    forget: Callable[[], None]
    patience: Patience | None = None
    disturbances: Sequence[Disturbance] = ()
    failing: str = ""
    quick: bool = False

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
        examples = self._examples(inputs, max(1, self.count // cost))
        try:
            for values in examples:
                self._attempt(alone, values)
        except (NoAnswerError, LostAnswersError):
            raise  # each further try would take as long
        except FAILURES as error:
            self._shrink(alone, inputs, values, error)
        for number in range(REPEATS if at_once and not self.quick else 0):
            self._attempt(alone, examples[-1], f", {number + 2} times")
        for number, disturbance in enumerate(self.disturbances):
            with contextlib.suppress(*FAILURES):
                disturbance.act(fixtures)
            self._attempt(alone, examples[number % len(examples)], f", after {disturbance.name}")
        if at_once and len(examples) > 1:
            self._at_once(check, fixtures, examples[:AT_ONCE])

    def run_model(
        self, model: type[RuleBasedStateMachine], *, steps: int = 24, cost: int = 3
    ) -> None:
        """Run random sequences of a model's rules. Raise the error of the shortest that fails.

        While answers are lost on the way, the sequences become shorter.
        """

        def attempt(number: int) -> None:
            phases = (Phase.generate, Phase.shrink) if SHRINK_CALLS else (Phase.generate,)
            # Hypothesis's first example is trivial
            limits = _limits(self.count // cost + 1, *phases)
            count = max(steps >> number + 2 * self.quick, 3)
            with _quiet(), pytest.MonkeyPatch.context() as patch:
                patch.setattr(hypothesis.core, "global_force_seed", self.seed)
                patch.setattr(conjecture, "MAX_SHRINKING_SECONDS", SHRINK_WITHIN_S, raising=False)
                run_state_machine_as_test(
                    model, settings=settings(limits, stateful_step_count=count)
                )

        try:
            self._patiently(attempt)
        except FAILURES as error:
            notes = "\n".join(getattr(error, "__notes__", ()))
            calls = [line for line in notes.splitlines() if "state." in line]
            self.failing = "".join(f"\n  {call}" for call in calls if "teardown" not in call)
            if isinstance(error, Flaky):  # the second time, it failed earlier in the sequence
                error = getattr(model, "failure", None) or error
            raise _first(error) from None

    def _attempt(self, check: Body, values: Values, circumstances: str = "") -> None:
        """Run a check for one example."""
        try:
            self._patiently(lambda _number: check(**values))
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

        self._patiently(attempt)

    def _patiently(self, attempt: Callable[[int], None]) -> None:
        """Call a function, and again while answers are lost on the way."""
        if self.patience is None:
            attempt(0)
        else:
            self.patience.repeat(attempt, FAILURES)

    def _examples(self, inputs: Mapping[str, Input], count: int) -> list[Values]:
        """Return the first examples of inputs: the edges, then generated ones."""
        examples = list(itertools.islice(_always(inputs), count))
        more: list[Values] = []
        if count > len(examples):
            limits = _limits(count - len(examples), Phase.generate)
            self._generate(lambda **values: more.append(values), inputs, limits)
        return [*examples, *more[: count - len(examples)]]

    def _shrink(
        self, check: Body, inputs: Mapping[str, Input], values: Values, error: BaseException
    ) -> None:
        """Raise the error of the smallest example that fails, which runs last."""
        failures = [(values, error)]

        def attempt(**values: Any) -> None:
            try:
                check(**values)
            except FAILURES as error:
                failures.append((values, error))
                raise

        with contextlib.suppress(*FAILURES):  # the failures are in the list
            limits = _limits(SHRINK_CALLS, Phase.generate, Phase.shrink)
            self._generate(_bounded(attempt), inputs, limits)
        values, error = min(failures, key=lambda failure: len(repr(failure[0])))
        self.failing = f"{_described(values)}, with the seed {self.seed}"
        self.forget()
        check(**values)
        raise error from None  # it did not fail again: the platform may behave differently

    def _generate(self, check: Body, inputs: Mapping[str, Input], limits: settings) -> None:
        """Run a function for random examples, until one fails."""
        strategies = {name: field.strategy for name, field in inputs.items()}
        with _quiet():
            hypothesis.seed(self.seed)(limits(given(**strategies)(check)))()


def _first(error: BaseException) -> BaseException:
    """Return the error of a check; Hypothesis groups errors that do not occur every time."""
    errors = getattr(error, "exceptions", ())
    return _first(errors[0]) if errors else error


def _limits(count: int, *phases: Phase) -> settings:
    return settings(
        max_examples=max(count, 1),
        phases=phases,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
        report_multiple_bugs=False,
    )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Prepare Hypothesis for checks.

    It warns if other threads use the random module while it draws examples, and if the garbage
    collector's objects are frozen. Neither affects a check. It would also draw constants from the
    imported code. That is slow, because it parses all of it, and not reproducible from a seed.
    """
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", HypothesisWarning)
        patch.setattr(
            HypothesisProvider, "_maybe_draw_constant", lambda *_, **__: None, raising=False
        )
        yield


def _bounded(check: Body) -> Body:
    """Return a check that stops running after a number of calls, or some time."""
    until, calls = time.monotonic() + SHRINK_WITHIN_S, itertools.count()

    def run(**values: Any) -> None:
        if next(calls) < SHRINK_CALLS and time.monotonic() < until:
            check(**values)

    return run


def chosen(plan: Plan) -> tuple[int, int]:
    """Return how many examples a platform's checks try, and from which seed."""
    thorough = plan.kind == "double" and plan.value("level") != QUICK
    usual = ON_A_DOUBLE if thorough else FEW
    return plan.value("examples") or usual, plan.value("seed") or SEED


def _always(inputs: Mapping[str, Input]) -> Iterator[Values]:
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


M = TypeVar("M", bound=RuleBasedStateMachine)

TEXTS = st.sampled_from(inputs.EDGES) | st.text("ab 01ü🦉\n", min_size=1, max_size=12)
_RULE = "hypothesis_stateful_rule"


class EveryRule:
    """The rules that a sequence may use: Hypothesis would leave out half of them in each."""

    def is_enabled(self, _name: str) -> bool:
        """Whether a sequence may use a rule."""
        return True


class Model(RuleBasedStateMachine):
    """A model that compares everything at the end of each sequence that has not failed.

    ``failure`` is the last failure of a rule.
    """

    failure: ClassVar[BaseException | None] = None

    def __init__(self) -> None:
        super().__init__()
        self._rules_strategy.enabled_rules_strategy = st.just(cast(Any, EveryRule()))

    def compare(self) -> None:
        """Fail if the platform differs from the model."""

    def teardown(self) -> None:
        """Compare everything, unless a rule has failed."""
        error = sys.exc_info()[1]
        if error is None:
            self.compare()
        elif isinstance(error, AssertionError):
            type(self).failure = error


def model(machine: type[M], rules: Iterable[str] = (), **attributes: Any) -> type[M]:
    """Return a model with these attributes and only these rules, or all of them."""
    names = {name for name, value in vars(machine).items() if hasattr(value, _RULE)}
    unwanted = names - set(rules) if rules else ()
    return type(machine.__name__, (machine,), {**dict.fromkeys(unwanted), **attributes})
