"""Open the target of a plan or of the arguments of ``connect()``, and check that it answers."""

from __future__ import annotations

import os
import reprlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from doublecheck.client import log_filter, preflight
from doublecheck.client.doubles import (
    answers_as_double,
    environment_of,
    require_double,
    start_double,
)
from doublecheck.errors import ArgumentError, TargetError
from doublecheck.target.conversions import target_of_plan
from doublecheck.target.facts import FACTS, variable
from doublecheck.target.plan import Plan, Sources, plan
from doublecheck.target.target import Target, is_loopback, named_url

if TYPE_CHECKING:
    from agentdouble import A2AApp, Emulator, MCPApp, SimpleApp

Stop: TypeAlias = Callable[[], None]

_ARGUMENTS = tuple(fact for fact in FACTS if fact.argument)

_OF_SURFACES = tuple(fact.name for fact in FACTS if fact.type == "address" and fact.name != "url")


def opened(plan: Plan, target_option: str = "target") -> Target:
    """Return the target of a plan that has an address, with the problems of its surfaces.

    For a double of this user, its own keys are used. Raises TargetError for a target that is
    unusable or should be a double but is not; the message names the ``target_option``. If no
    surface answers, raises the error of one.
    """
    if plan.kind == "double":
        plan = plan.with_variables(environment_of(plan.value("url"), {}))
    target = require_answer(target_of_plan(plan))
    if target.kind == "double":
        require_double(target, f"{target_option}=live")
    return target


def target_of(platform: object) -> Target:
    """Return the target of an open platform. Raise ArgumentError if it is not a platform."""
    target = getattr(platform, "target", None)
    if not isinstance(target, Target):
        raise ArgumentError(
            f"{platform!r:.80} is not a platform: pass a URL, or what connect() returned."
        )
    return target


def require_answer(target: Target) -> Target:
    """Return a target with the problems of its surfaces. Raise one if no surface answers."""
    problems = preflight.problems(target)
    if preflight.none_left(target, problems):
        raise next(iter(problems.values()))
    return replace(target, problems=problems)


@dataclass(frozen=True)
class ConnectArguments:
    """The arguments of ``connect()``."""

    url: str | Emulator | None
    target: str | None = None
    control_plane: str | None = None
    tool_id: str | None = None
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    api_key: str | None = field(default=None, repr=False)
    region: str | None = None
    apps: Sequence[SimpleApp | MCPApp | A2AApp | str] = ()

    def open(self) -> tuple[Target, Stop | None]:
        """Return the target, and the function that stops the double that was started for it."""
        log_filter.keep_noise_out()
        if self.apps != ():
            return self._double_of_apps()
        if self.target is not None:
            return self._configured(self.target)
        url = self.url or named_url()
        if url is None:
            return _own_double()
        return (self._at(url) if isinstance(url, str) else _target_of(url)), None

    def _double_of_apps(self) -> tuple[Target, Stop]:
        if isinstance(self.apps, str) or not isinstance(self.apps, Sequence):
            raise TargetError("apps must be a list: connect(apps=[app]).")
        if self.url is not None or self.target is not None:
            raise TargetError(
                "apps are served by a double that connect() starts, so they cannot be combined "
                "with a running platform: remove url and target, or apps."
            )
        return _own_double(*self.apps)

    def _at(self, url: str) -> Target:
        is_double = is_loopback(url) and answers_as_double(url)
        target = Target.find(
            url,
            "double" if is_double else "live",
            environ=environment_of(url) if is_double else os.environ,
            **{fact.name: getattr(self, fact.name) for fact in _ARGUMENTS if fact.name != "url"},
        )
        return replace(target, **({} if self.url else self._named_addresses()))

    def _named_addresses(self) -> dict[str, Any]:
        """Return the addresses of surfaces in the environment, which belong to the URL there."""
        if not os.environ.get(variable("url")):
            return {}
        named = {name: os.environ.get(variable(name)) for name in _OF_SURFACES}
        named_here = {name for name in _OF_SURFACES if getattr(self, name, None) is not None}
        return {name: url for name, url in named.items() if url and name not in named_here}

    def _configured(self, name: str) -> tuple[Target, Stop | None]:
        """Return the platform with this name in the configuration."""
        if any(fact.secret and getattr(self, fact.name) for fact in _ARGUMENTS):
            raise TargetError(f"The keys of target {name!r} must come from the environment.")
        options = {fact.key: getattr(self, fact.name) for fact in _ARGUMENTS if not fact.secret}
        planned = plan(Sources.of(options, spelled=str), name)
        if planned.in_process:
            return _own_double()
        return opened(planned), None


def _target_of(double: Emulator) -> Target:
    """Return the target of a double in this process. Raise ArgumentError for anything else."""
    kind = sys.modules.get("agentdouble.emulator")
    if kind is None or not isinstance(double, kind.Emulator):
        raise ArgumentError(
            "connect() takes url as a str, an Emulator or None, but got "
            f"{type(double).__name__}: {reprlib.repr(double)}."
        )
    return Target.of(double)


def _own_double(*apps: SimpleApp | MCPApp | A2AApp | str) -> tuple[Target, Stop]:
    double = start_double(*apps)
    return Target.of(double), double.stop
