"""Results that can be a failure: ``raise_for_error()`` raises it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

from doublecheck.errors import ResultError

if TYPE_CHECKING:
    from typing_extensions import Self

R = TypeVar("R", bound="CanFail")

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class CanFail:
    """A result that can be a failure."""

    __slots__ = ()

    def raise_for_error(self) -> Self:
        """Return this result. Raise ResultError if it is a failure."""
        error = self.failure()
        if error is not None:
            raise error
        return self

    def failure(self) -> ResultError | None:
        """Return the error that ``raise_for_error()`` raises, or None if this is not a failure."""
        raise NotImplementedError


def checked(result: R, check: bool) -> R:
    """Return a result. With ``check``, raise ResultError if it is a failure."""
    return result.raise_for_error() if check else result


def plain(text: str) -> str:
    """Return a text without the ANSI codes for colours."""
    return _ANSI.sub("", text)
