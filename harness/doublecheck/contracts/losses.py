"""Answers that are lost on the way: connections that break, and errors of gateways.

A lost answer says nothing about the platform. A GET is sent again at once, unless the platform loses
many of them. For another request, what was being checked is checked again, in full. The loss counts
against the platform only if it never answers the lost request, even when that is sent again alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
FEW = 2  # answers that every attempt may lose
ONE_OF = 10  # and how many of all its answers
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

    ``place`` is the number and the route of the first of them. ``repeated`` counts the lost answers
    to requests that were sent again at once, which are not among them.
    """

    count: int = 0
    repeated: int = 0
    lost: list[Exchange] = field(default_factory=list)
    place: tuple[int, str] | None = None

    def saw(self, exchange: Exchange) -> None:
        """Count an exchange that has ended."""
        self.count += 1
        self.repeated += exchange.repeated
        if is_lost(exchange) and not exchange.repeated:
            self.lost.append(exchange)
            if self.place is None:
                self.place = self.count, route(exchange.request.method, exchange.request.url)


class Patience:
    """Repeat what fails because answers are lost on the way.

    ``total`` counts the lost answers of what was repeated.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._watches: list[LossWatch] = []
        self.total = 0

    def again(self, exchange: Exchange, number: int) -> bool:
        """Whether a request that was sent this often is sent again, as its answer was lost.

        Only a GET is, because it changes nothing, and only while few answers are lost: a platform
        that breaks off many of them would pass otherwise.
        """
        if exchange.request.method != "GET" or number > RESENT or not is_lost(exchange):
            return False
        for watch in self._watches[-1:]:
            if watch.repeated < FEW + watch.count // ONE_OF:
                self.total += 1
                return True
        return False

    def repeat(self, attempt: Callable[[int], T], failures: tuple[type[BaseException], ...]) -> T:
        """Call a function until no answer that it needs is lost, and return its result.

        It takes the number of the attempt. Raises its error if no answer was lost, or if the
        platform does not answer at all; LostAnswersError if each attempt has lost one.
        """
        places = set()
        for number in range(ATTEMPTS):
            watch = LossWatch()
            with request_log.listening(watch.saw), self._watching(watch):
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

    @contextmanager
    def _watching(self, watch: LossWatch) -> Iterator[None]:
        self._watches.append(watch)
        try:
            yield
        finally:
            self._watches.pop()

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
