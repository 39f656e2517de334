"""The basis of models: what must be true after any sequence of calls.

Each model is a state machine of Hypothesis. Its rules make a call, compare the answer with the
model, and change the model; when a sequence ends, everything that it created is compared once more.
A check runs random sequences of the rules that concern its clause, and shows the shortest that
fails.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, ClassVar, TypeVar, cast

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine

from doublecheck.contracts import inputs

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
