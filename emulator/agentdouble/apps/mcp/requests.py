"""Requests that functions of the application answer: their context, and who has asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mcp.types import InputResponseRequestParams

from agentdouble.apps.mcp.context import Asked, Request, ask
from agentdouble.apps.mcp.hosting import Runner, current_runner
from agentdouble.apps.mcp.invocations import invoked
from agentdouble.apps.mcp.offers import Offers


class Requests:
    """Makes the contexts of requests to one application.

    ``alone`` runs the functions where no place hosts the application: in process.
    """

    def __init__(self, name: str, offers: Offers, alone: Runner) -> None:
        self._name = name
        self._offers = offers
        self._alone = alone

    @property
    def runner(self) -> Runner:
        """What runs the functions where the current request has arrived."""
        return current_runner(self._alone)

    @contextmanager
    def asked(
        self, request: Request, params: InputResponseRequestParams | None = None
    ) -> Iterator[Asked]:
        """Answer a request inside."""
        runner = self.runner
        made = ask(request, params, self._offers.sdk, runner.changes, runner.run)
        with invoked(self._name, request), made.current():
            yield made
