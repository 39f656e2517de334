"""Doubles on this machine: find a running one with its keys, or start one in this process."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import agentdouble
from agentdouble.core import environment, running_doubles
from agentdouble.errors import MissingExtraError as DoublesMissingExtraError
from doublecheck.client import transport
from doublecheck.errors import MissingExtraError, TargetError
from doublecheck.target.target import Target, is_loopback
from doublecheck.wire import admin

if TYPE_CHECKING:
    from agentdouble import A2AApp, Emulator, MCPApp, SimpleApp


ANSWER_WITHIN_S = 60.0


def running_double(url: str) -> Target:
    """Return the double at ``url``, with the keys of ``agentdouble env`` or the environment.

    Raises TargetError for an unusable address or a server that is not a double, and
    UnreachableError if nothing answers.
    """
    target = Target.find(url, "double", environ=environment_of(url))
    require_double(target, "--platform-target=live (doublecheck run: --target live)")
    return target


def environment_of(url: str, environ: Mapping[str, str] = os.environ) -> Mapping[str, str]:
    """Return the environment, with the double's keys if ``url`` is a double of this user."""
    try:
        doubles = running_doubles.at(urlsplit(url).port) if is_loopback(url) else []
    except ValueError:  # the port is not valid, so the address will be refused
        doubles = []
    return {**environ, **environment.variables(doubles[0])} if doubles else environ


def answers_as_double(url: str) -> bool:
    """Whether the server at ``url`` is a double.

    Raises UnreachableError if nothing answers, and TargetError for an unusable address.
    """
    return is_double(Target.find(url, "double", environ=environment_of(url)))


def is_double(target: Target) -> bool:
    """Whether the server at a target's address is a double. Raise UnreachableError."""
    return _other_answer(target) is None


def require_double(target: Target, option: str) -> None:
    """Raise TargetError if a server is not a double, with its answer and the option for others."""
    other = _other_answer(target)
    if other is not None:
        raise TargetError(
            f"{target.url} answers, but not as a double: {other}. To use a live platform, give its "
            f"URL and {option}."
        )


def _other_answer(target: Target) -> str | None:
    """Return what a server answers that is not a double, or None. Raise UnreachableError."""
    call = admin.health(target)
    options = transport.options(target, ANSWER_WITHIN_S, ANSWER_WITHIN_S)
    with transport.translated(target.url), transport.client(**options) as client:
        return call.read(client.request(**transport.arguments(call.request)))


def start_double(*apps: SimpleApp | MCPApp | A2AApp | str, **settings: Any) -> Emulator:
    """Start a double in this process. An application may be given as ``module:app``.

    Raises MissingExtraError if the double is not installed.
    """
    try:
        double = agentdouble.Emulator
    except DoublesMissingExtraError as error:
        raise MissingExtraError("The double", install=f"agentdouble[{error.extra}]") from error
    from agentdouble.apps.loading import load  # optional: agentdouble[emulator]

    served = (load(app) if isinstance(app, str) else app for app in apps)
    return double(*served, **settings).start()


@contextmanager
def serving_double(
    *apps: SimpleApp | MCPApp | A2AApp | str, reference_app: bool = False, **settings: Any
) -> Iterator[Target]:
    """Start a double, yield it as a target, and stop it at the end of the context."""
    double = start_double(*apps, **settings)
    try:
        yield Target.of(double, reference_app=reference_app)
    finally:
        double.stop()
