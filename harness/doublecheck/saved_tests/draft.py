"""The test that is being written: its variables, its imports and what it asserts."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any
from unittest.mock import ANY

from doublecheck.comparing.references import References
from doublecheck.saved_tests.literals import INDENT, WIDTH, literal
from doublecheck.saved_tests.loosening import in_lines, loosened
from doublecheck.saved_tests.repeating import Repeats
from doublecheck.saved_tests.trial import FIXTURE
from doublecheck.wire.redaction import HIDDEN

PLATFORM = "<platform>"


class Draft:
    """What a test consists of so far, beside its statements.

    ``imports`` are the names that the statements need. ``sessions`` are the variables of sessions
    by the recorded ids. ``addresses`` are the platform's own, which are different where the test
    runs. What ``repeats`` show to change is not asserted. A trial (``is_trial``) asserts nothing,
    it notes the values that are compared.
    """

    def __init__(
        self,
        addresses: Collection[str] = (),
        *,
        repeats: Repeats | None = None,
        trial: bool = False,
    ) -> None:
        self.imports: set[str] = set()
        self.sessions: dict[str, str] = {}
        self.is_trial = trial
        self._repeats = repeats or Repeats()
        self._compared_so_far = 0
        self._seen = References()
        for address in addresses:
            self._seen.add(address, PLATFORM)
        self._numbered = 0

    def numbered(self, kind: str) -> str:
        """Return the name of a new variable of a kind."""
        self._numbered += 1
        return f"{kind}_{self._numbered}"

    def knows(self, id_: str) -> bool:
        """Return whether an earlier answer gave this id."""
        return id_ in self.sessions or bool(self._seen.known(id_))

    def compared(
        self, value: Any, expression: str, indent: int = 0, *, of_code: bool = False
    ) -> Iterator[str]:
        """Yield an assertion that an expression has a value, except for what changes."""
        margin = " " * indent
        if HIDDEN in json.dumps(value):
            yield f"{margin}_ = {expression}  # not compared: a secret was taken out"
            return
        number, self._compared_so_far = self._compared_so_far, self._compared_so_far + 1
        repeats = self._repeats.of(number)
        normal = self._seen.normalised(value)
        # Texts are compared as they are if they were repeated: not each id that somebody printed
        # has the form of one, but each changes.
        if normal != value and not (_is_text(value) and (repeats or self.is_trial)):
            self.imports.add("References")
            value, expression = normal, f"seen.normalised({expression})"
        if self.is_trial:
            yield f"{margin}{FIXTURE}.note({number}, lambda: {expression})"
            return
        for line in self._asserted(value, expression, repeats, indent, of_code):
            yield margin + line

    def _asserted(
        self, value: Any, expression: str, repeats: Sequence[Any], indent: int, of_code: bool
    ) -> Iterator[str]:
        """Yield the assertion of a value, without what changed when the calls were repeated.

        What code comes to is the same in every sandbox. What an application or an agent says may
        differ from the repeats because the tests serve another one.
        """
        kept = loosened(value, repeats, like_recorded=of_code)
        if kept is ANY:
            lines = in_lines(value, repeats, like_recorded=of_code)
            if lines is None:
                yield f"_ = {expression}  # not compared: it changes from one time to the next"
                return
            kept, expression = lines, f"{expression}.splitlines()"
        if kept is not value:
            self.imports.add("ANY")
        one_line = f"assert {literal(kept)} == {expression}"
        if INDENT + indent + len(one_line) <= WIDTH:
            yield one_line
            return
        yield f"assert {literal(kept, INDENT + indent, len('assert '))} == {expression}"


def _is_text(value: Any) -> bool:
    texts = value if isinstance(value, list) else [value]
    return all(isinstance(one, str) for one in texts)
