"""Mutations of the double, by the surface that they break."""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Mutation:
    """What breaks the double so that a clause's check fails.

    ``also`` are the clauses of that surface whose checks fail with it, because they promise the
    same or stand on it; every other check of the surface passes.
    """

    clause: str
    break_it: Callable[[pytest.MonkeyPatch], None]
    also: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.clause}-{self.break_it.__name__}"

    def apply(self, patch: pytest.MonkeyPatch) -> list[str]:
        """Break the double; return a list that gets the errors of the mutation itself.

        A function that no longer fits what it replaces makes any check fail, for no good reason.
        """
        errors: list[str] = []
        with pytest.MonkeyPatch.context() as watching:
            set_attribute = patch.setattr
            watching.setattr(
                patch,
                "setattr",
                lambda owner, name, value: set_attribute(owner, name, _watched(value, errors)),
            )
            self.break_it(patch)
        return errors


def _watched(value: Any, errors: list[str]) -> Any:
    """Return the same function, which notes the errors that it makes itself."""
    if not inspect.isfunction(value):
        return value

    @functools.wraps(value)
    async def call_async(*given: Any, **named: Any) -> Any:
        with _noted(errors):
            return await value(*given, **named)

    @functools.wraps(value)
    def call(*given: Any, **named: Any) -> Any:
        with _noted(errors):
            return value(*given, **named)

    return call_async if inspect.iscoroutinefunction(value) else call


@contextmanager
def _noted(errors: list[str]) -> Iterator[None]:
    try:
        yield
    except (TypeError, AttributeError, NameError) as error:
        raised_in = traceback.extract_tb(error.__traceback__)[-1].filename
        if Path(raised_in).parent == _HERE:  # the double may raise them on purpose
            errors.append("".join(traceback.format_exception(error)))
        raise
