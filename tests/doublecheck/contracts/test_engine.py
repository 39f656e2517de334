from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import strategies as st

from doublecheck.contracts import inputs
from doublecheck.contracts.engine import (
    AT_ONCE,
    REPEATS,
    Disturbance,
    Examples,
    at_once,
    for_caller,
    for_each,
)
from doublecheck.contracts.inputs import Input
from doublecheck.errors import NoAnswerError

ANY = Input(st.lists(st.sampled_from("ab ü\n")).map("".join), ("a" * 40 + "ü", ""))


def inputs_of(count: int, seed: int = 0, **some: Input) -> list[dict[str, Any]]:
    inputs: list[dict[str, Any]] = []
    Examples(count, seed, forget=lambda: None).run(lambda **values: inputs.append(values), some)
    return inputs


def test_fixed_examples_are_tried_first() -> None:
    """The richest one leads, so a run with a single example covers the most."""
    texts = [example["text"] for example in inputs_of(20, text=ANY)]

    assert ["a" * 40 + "ü", ""] == texts[:2]
    assert 20 == len(texts)


def test_the_seed_determines_the_examples() -> None:
    assert inputs_of(30, 7, text=ANY) == inputs_of(30, 7, text=ANY)
    assert inputs_of(30, 7, text=ANY) != inputs_of(30, 8, text=ANY)


def test_a_failure_is_reported_for_the_smallest_example() -> None:
    """The smallest example runs last, after ``forget`` has discarded the earlier ones."""
    tried: list[str] = []
    examples = Examples(6, 0, forget=tried.clear)

    def check(text: str) -> None:
        tried.append(text)
        assert "ü" not in text

    with pytest.raises(AssertionError):
        examples.run(check, {"text": ANY})

    assert ["ü"] == tried
    assert "text='ü', with the seed 0" == examples.failing


def test_no_further_examples_run_after_a_missing_answer() -> None:
    """Each one would wait as long."""
    tried: list[str] = []

    def check(text: str) -> None:
        tried.append(text)
        raise NoAnswerError("http://127.0.0.1:1", "timed out")

    with pytest.raises(NoAnswerError):
        Examples(6, 0, forget=lambda: None).run(check, {"text": ANY})

    assert 1 == len(tried)


@dataclass
class Caller:
    """A fixture of which each caller has its own."""

    number: int | None = None


@for_caller.register
def _caller(_caller: Caller, number: int, _stack: ExitStack) -> Caller:
    return Caller(number)


def test_a_check_runs_alone_again_after_disturbances_and_several_at_once() -> None:
    """At the same time, each example is of another caller, and waits for none of the others."""
    numbers: list[int | None] = []
    acts: list[int] = []

    @for_each(text=ANY)
    def check(caller: Caller, text: str) -> None:
        numbers.append(caller.number)

    disturbance = Disturbance("a failure", lambda _fixtures: acts.append(len(numbers)))
    examples = Examples(6, 0, forget=lambda: None, disturbances=[disturbance])
    check(caller=Caller(), examples=examples)

    alone = 6 + REPEATS
    assert [alone] == acts
    assert [None] * (alone + 1) == numbers[: alone + 1]
    assert list(range(AT_ONCE)) == sorted(number or 0 for number in numbers[alone + 1 :])


def test_a_failure_among_several_callers_is_reported() -> None:
    def check(caller: Caller, text: str) -> None:
        assert caller.number != 3, "mixed up"

    examples = Examples(6, 0, forget=lambda: None)
    with pytest.raises(AssertionError, match="mixed up"):
        examples.run(check, {"text": ANY}, {"caller": Caller()}, at_once=True)

    assert examples.failing.endswith(", at the same time as 3 others")


def test_a_failure_after_a_disturbance_is_reported() -> None:
    broken: list[bool] = []

    def check(text: str) -> None:
        assert not broken

    disturbance = Disturbance("a failure", lambda _fixtures: broken.append(True))
    examples = Examples(2, 0, forget=lambda: None, disturbances=[disturbance])
    with pytest.raises(AssertionError):
        examples.run(check, {"text": ANY})

    assert examples.failing.endswith(", after a failure")


@pytest.mark.parametrize("number", [0, 1, 3])
def test_an_interrupt_while_calls_begin_ends_them(
    monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Those that have begun wait for the others, which do not begin any more."""
    submit, numbers, own = ThreadPoolExecutor.submit, itertools.count(), threading.get_ident()

    def interrupted(pool: ThreadPoolExecutor, *arguments: Any) -> Any:
        # Only here: a double of another test may run in a thread of this process.
        if threading.get_ident() == own and next(numbers) == number:
            raise KeyboardInterrupt
        return submit(pool, *arguments)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", interrupted)

    with pytest.raises(KeyboardInterrupt):
        at_once([int] * 4)
    assert [] == [t for t in threading.enumerate() if t.name.startswith("ThreadPool") and still(t)]


def still(thread: threading.Thread) -> bool:
    thread.join(10)
    return thread.is_alive()


def test_results_of_calls_at_once_are_in_order() -> None:
    assert [0, 1, 2, 3] == at_once([lambda number=number: number for number in range(4)])
    assert [] == at_once([])


@pytest.mark.parametrize(
    "spec",
    [
        inputs.texts(),
        inputs.texts(carriage_returns=True, empty=False),
        inputs.words(),
        inputs.ids(),
        inputs.values(),
        inputs.payloads(),
        inputs.files(),
        inputs.histories(),
    ],
)
def test_inputs_have_fixed_and_varying_examples(spec: Input) -> None:
    some = [example["value"] for example in inputs_of(25, value=spec)]

    assert some[: len(spec.always)] == list(spec.always)
    assert 10 < len({repr(value) for value in some})
