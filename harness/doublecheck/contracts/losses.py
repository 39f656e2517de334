"""Answers that are lost on the way: connections that break, and errors of gateways.

A lost answer says nothing about the platform. What was being checked is checked again, in full. The
loss counts against the platform only if it never answers the lost request, even when that is sent
again alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import httpx

from doublecheck.client import transport
from doublecheck.contracts.failure_report import route
from doublecheck.errors import DoubleCheckError, LostAnswersError
from doublecheck.target.target import Target
from doublecheck.wire import calls, request_log
from doublecheck.wire.exchanges import Exchange

T = TypeVar("T")

ATTEMPTS = 5
RESENT = 2
PATIENCE_S = 10.0
_GATEWAY_STATUSES = (502, 503, 504, 520, 521, 522, 523, 524)


def is_lost(exchange: Exchange) -> bool:
    """Whether an answer is missing or incomplete, or comes from a gateway.

    A gateway's error has no JSON; a platform's own error usually has. Silence until a timeout is
    not a loss on the way: networks end connections that they lose.
    """
    if exchange.error is not None:
        return not exchange.error.startswith("ReadTimeout")
    if exchange.status is None:
        return False
    kind = exchange.headers.get("content-type", "")
    return exchange.status in _GATEWAY_STATUSES and "json" not in kind


@dataclass
class LossWatch:
    """The exchanges of one attempt. ``lost`` holds those without an answer of the platform.

    ``place`` is the number and the route of the first of them.
    """

    count: int = 0
    lost: list[Exchange] = field(default_factory=list)
    place: tuple[int, str] | None = None

    def saw(self, exchange: Exchange) -> None:
        """Count an exchange that has ended."""
        self.count += 1
        if is_lost(exchange):
            self.lost.append(exchange)
            if self.place is None:
                self.place = self.count, route(exchange.request.method, exchange.request.url)


class Patience:
    """Repeat what fails because answers are lost on the way.

    ``total`` counts the lost answers of failures that were repeated.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self.total = 0

    def repeat(self, attempt: Callable[[int], T], failures: tuple[type[BaseException], ...]) -> T:
        """Call a function until no answer that it needs is lost, and return its result.

        It takes the number of the attempt. Raises its error if no answer was lost, or if the
        platform does not answer at all; LostAnswersError if each attempt has lost one.
        """
        places = set()
        for number in range(ATTEMPTS):
            watch = LossWatch()
            with request_log.listening(watch.saw):
                try:
                    return attempt(number)
                except failures as error:
                    if not watch.lost or isinstance(error, LostAnswersError):
                        raise
                    if self._is_of_the_platform(watch.lost[-1]):
                        raise
                    last = error
            places.add(watch.place)
            self.total += len(watch.lost)
            self._shift(number)
        if len(places) == 1:  # each attempt lost the same answer, although they were shifted
            raise last
        exchange = watch.lost[-1]
        reason = exchange.error or f"HTTP {exchange.status}"
        raise LostAnswersError(ATTEMPTS, exchange.request.url, reason)

    def _is_of_the_platform(self, exchange: Exchange) -> bool:
        """Whether the platform never answers a request, as opposed to the network losing one."""
        if exchange.request_cut:
            return False
        return not any(self._is_answered(exchange.request) for _ in range(RESENT))

    def _is_answered(self, request: calls.Request) -> bool:
        """Whether the head of an answer arrives when a request is sent again."""
        options = transport.options(self._target, PATIENCE_S)
        with transport.client(**options) as client:
            try:
                with client.stream(**transport.arguments(request)) as answer:
                    seen = Exchange(request, answer.status_code, dict(answer.headers))
                    return not is_lost(seen)
            # the request arrived, and its answer waits for something else
            except httpx.ReadTimeout:
                return True
            except (httpx.HTTPError, DoubleCheckError):
                return False

    def _shift(self, number: int) -> None:
        """Send a varying number of requests, so that a regular loss hits another one."""
        for _ in range(number * number + 1):
            self._is_answered(calls.request(self._target, "GET", "/ping"))
