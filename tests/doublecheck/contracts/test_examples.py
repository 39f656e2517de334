from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st

from doublecheck.contracts import inputs
from doublecheck.contracts.inputs import Examples, Input
from doublecheck.errors import NoAnswerError

ANY = Input(st.lists(st.sampled_from("ab ü\n")).map("".join), ("a" * 40 + "ü", ""))


def inputs_of(count: int, seed: int = 0, **some: Input) -> list[dict[str, Any]]:
    inputs: list[dict[str, Any]] = []
    Examples(count, seed, forget=lambda: None).run(lambda **values: inputs.append(values), some)
    return inputs


def test_the_examples_that_are_always_tried_come_first() -> None:
    """The richest one is the first, so that a single example tells most."""
    texts = [example["text"] for example in inputs_of(20, text=ANY)]

    assert ["a" * 40 + "ü", ""] == texts[:2]
    assert 20 == len(texts)


def test_the_same_seed_tries_the_same() -> None:
    """And another one tries others."""
    assert inputs_of(30, 7, text=ANY) == inputs_of(30, 7, text=ANY)
    assert inputs_of(30, 7, text=ANY) != inputs_of(30, 8, text=ANY)


def test_a_failure_is_told_for_the_smallest_example() -> None:
    """That one is tried last, after what came before is forgotten."""
    tried: list[str] = []
    examples = Examples(6, 0, forget=tried.clear)

    def check(text: str) -> None:
        tried.append(text)
        assert "ü" not in text

    with pytest.raises(AssertionError):
        examples.run(check, {"text": ANY})

    assert ["ü"] == tried
    assert "text='ü', with the seed 0" == examples.failing


def test_a_platform_that_does_not_answer_is_not_asked_again() -> None:
    """Each further try would take as long."""
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
def test_inputs_have_what_is_always_tried_and_what_varies(spec: Input) -> None:
    """All of them are values of the same kind."""
    some = [example["value"] for example in inputs_of(25, value=spec)]

    assert some[: len(spec.always)] == list(spec.always)
    assert 10 < len({repr(value) for value in some})
