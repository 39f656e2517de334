from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st

from doublecheck.contracts import inputs
from doublecheck.contracts.engine import Examples
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
