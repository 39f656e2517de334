"""A platform whose calls a double repeats: tests get the live answer, and the double is compared.

The tests get the answers and errors of the live platform. The ids that they pass on are the live
platform's; the double gets its own ids instead.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator
from types import TracebackType
from typing import Any

from agentdouble.signing import ALGORITHM
from doublecheck.client._sync.a2a import A2aClient
from doublecheck.client._sync.browser import Browser
from doublecheck.client._sync.mcp import McpClient
from doublecheck.client._sync.platform import Platform
from doublecheck.client._sync.sandbox import PlatformSandbox
from doublecheck.comparing.references import Pairs
from doublecheck.errors import DoubleCheckError
from doublecheck.twins.comparison import Compared, compared, seeded
from doublecheck.twins.conversation_run import BODY_LIMIT
from doublecheck.twins.guesses import Guesses
from doublecheck.wire.calls import Request
from doublecheck.wire.exchanges import without_secrets

_CLIENTS = (A2aClient, Browser, McpClient, PlatformSandbox)
_WRONG_ANSWERS = (DoubleCheckError, LookupError, TypeError, ValueError, AttributeError)


class Shadowed:
    """A client of a live platform whose calls are repeated on a double."""

    def __init__(self, live: Any, double: Any, both: Both) -> None:
        self._live = live
        self._double = double
        self._both = both

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._live, name)
        if name.startswith("_") or not callable(found):
            return found
        return self._both.of(found, getattr(self._double, name))

    def __enter__(self) -> Shadowed:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{self._live!r}, shadowed by a double>"


class Both:
    """The calls made on a live platform and on its double."""

    def __init__(self, live: Platform, double: Platform) -> None:
        self._live = live
        self._double = double
        self._pairs = seeded(double.target, live.target)
        self._guesses = Guesses(double)
        for platform in (live, double):
            platform.exchanges.body_limit = BODY_LIMIT
        self.calls: list[Compared] = []

    def platform(self) -> Platform:
        """Return the platform that makes each call on both."""
        shadowed: Any = Shadowed(self._live, self._double, self)
        found: Platform = shadowed
        return found

    def of(self, live: Callable[..., Any], double: Callable[..., Any]) -> Callable[..., Any]:
        """Return a method that is called on both."""

        def call(*args: Any, **kwargs: Any) -> Any:
            if any(_signed(one) for one in args):  # only for the live platform
                return live(*args, **kwargs)
            shadow = _Shadow(self, lambda: double(*self._own(args), **self._own(kwargs)))
            try:
                result = live(*args, **kwargs)
            except DoubleCheckError:
                shadow.follow()
                raise
            if isinstance(result, Generator):
                return _streamed(result, shadow)
            followed = shadow.follow()
            if isinstance(result, _CLIENTS) and type(followed) is type(result):
                return Shadowed(result, followed, self)
            return result

        return call

    def mark(self) -> tuple[int, int]:
        """Return the number of exchanges on both sides."""
        return self._live.exchanges.total, self._double.exchanges.total

    def compare_since(self, mark: tuple[int, int]) -> None:
        """Compare the exchanges of both sides since a mark."""
        theirs = without_secrets(self._live.exchanges.since(mark[0]), self._live.target)
        ours = without_secrets(self._double.exchanges.since(mark[1]), self._double.target)
        self.calls += compared(self._guesses.named(ours), theirs, self._pairs)

    def _own(self, given: Any) -> Any:
        """Return arguments with the double's ids."""
        return with_own_ids(given, self._pairs)


class _Shadow:
    """One call that the double makes after the live platform."""

    def __init__(self, both: Both, ask: Callable[[], Any]) -> None:
        self._both = both
        self._ask = ask
        self._mark = both.mark()

    def follow(self) -> Any:
        """Repeat the call and compare; if the double cannot, the comparison shows it."""
        try:
            result = self._ask()
            if isinstance(result, Generator):
                result = list(result)
        except _WRONG_ANSWERS:
            result = None
        self._both.compare_since(self._mark)
        return result


def with_own_ids(given: Any, pairs: Pairs) -> Any:
    """Return values with the double's ids in place of the live platform's."""
    if isinstance(given, (list, tuple)):
        return type(given)(with_own_ids(one, pairs) for one in given)
    if isinstance(given, dict):
        return {name: with_own_ids(one, pairs) for name, one in given.items()}
    if dataclasses.is_dataclass(given) and not isinstance(given, type):
        fields = {
            one.name: getattr(given, one.name) for one in dataclasses.fields(given) if one.init
        }
        return dataclasses.replace(given, **with_own_ids(fields, pairs))
    return pairs.to_double(given)


def _streamed(events: Generator[Any, None, None], shadow: _Shadow) -> Generator[Any, None, None]:
    """Yield the live platform's events as they arrive; repeat the call on the double at the end."""
    try:
        yield from events
    finally:
        events.close()
        shadow.follow()


def _signed(argument: Any) -> bool:
    if not isinstance(argument, Request):
        return False
    return any(value.startswith(ALGORITHM) for value in argument.headers.values())
