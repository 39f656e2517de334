"""Notice errors of the mutants themselves.

A function that no longer fits what it replaces makes any check fail, for no good reason.
"""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_HERE = Path(__file__).parent


@contextmanager
def changes_of(patch: pytest.MonkeyPatch, errors: list[str]) -> Iterator[None]:
    """Add to a list what goes wrong in the functions that are patched in meanwhile."""
    with pytest.MonkeyPatch.context() as watching:
        set_attribute = patch.setattr
        watching.setattr(
            patch,
            "setattr",
            lambda owner, name, value: set_attribute(owner, name, _watched(value, errors)),
        )
        yield


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
        if type(error).__module__ != "builtins":  # raised on purpose, as a DecorationError
            raise
        raised_in = Path(traceback.extract_tb(error.__traceback__)[-1].filename)
        if _HERE in raised_in.parents and raised_in.name != Path(__file__).name:
            errors.append("".join(traceback.format_exception(error)))
        raise
