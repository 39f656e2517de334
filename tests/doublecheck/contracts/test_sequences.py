"""Sequences of the steps of a model."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from doublecheck.contracts import sequences
from doublecheck.contracts.engine import Examples
from doublecheck.contracts.sequences import NUMBERS, Model, call, step


class Numbers(Model):
    """A model of a set that keeps what was removed, if it had three numbers."""

    scenario = (call("add", number=3), call("remove", number=0))

    def __init__(self, steps: list[str]) -> None:
        self.steps = steps
        self.actual: set[int] = set()
        self.expected: set[int] = set()

    @step(number=NUMBERS)
    def add(self, number: int) -> None:
        """Add a number."""
        self.steps.append("add")
        self.actual.add(number)
        self.expected.add(number)

    @step(number=NUMBERS)
    def remove(self, number: int) -> None:
        """Remove a number."""
        self.steps.append("remove")
        self.expected.discard(number)
        if len(self.actual) < 3:
            self.actual.discard(number)

    def compare(self) -> None:
        """Fail if the set differs."""
        assert self.expected == self.actual


def test_a_model_reports_the_shortest_sequence_that_fails() -> None:
    examples = Examples(40, 0, forget=lambda: None)

    with pytest.raises(AssertionError):
        sequences.run(examples, lambda: Numbers([]), Numbers.sequences((), 20))

    lines = examples.failing.splitlines()[1:]
    assert ["add", "add", "add", "remove"] == [line.split("(")[0].strip() for line in lines]


def test_a_scenario_is_tried_first() -> None:
    steps: list[str] = []

    sequences.run(
        Examples(1, 0, forget=lambda: None), lambda: Numbers(steps), Numbers.sequences((), 20)
    )

    assert ["add", "remove"] == steps


def test_a_failure_that_comes_sooner_when_it_is_repeated_is_reported() -> None:
    calls: list[int] = []

    class Wearing(Model):
        @step(number=st.integers(0, 9))
        def call(self, number: int) -> None:
            calls.append(number)
            assert len(calls) < 30, "worn"

    with pytest.raises(AssertionError, match="worn"):
        sequences.run(Examples(20, 0, forget=lambda: None), Wearing, Wearing.sequences((), 24))


def test_a_model_has_only_the_chosen_steps() -> None:
    steps: list[str] = []
    chosen = Numbers.sequences(["add"], 20)

    sequences.run(Examples(20, 0, forget=lambda: None), lambda: Numbers(steps), chosen)

    assert {"add"} == set(steps)
