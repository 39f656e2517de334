"""Open the target of a plan: start its double if necessary, and check that it answers."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from agentdouble.environment import TOKEN
from doublecheck.client import doubles, emulator_command, preflight
from doublecheck.errors import TargetError
from doublecheck.target import from_plan
from doublecheck.target.plan import Plan, SourcedValue, Sources, plan
from doublecheck.target.target import Target


@contextmanager
def opened(sources: Sources, planned: Plan) -> Iterator[Target]:
    """Yield the target of a plan that has an address or a command.

    A double that a command starts ends with the context. The target contains the problems of
    surfaces that do not answer. Raises TargetError for a target that is unusable or should be a
    double but is not. If no surface answers, raises the error of one.
    """
    with ExitStack() as stack:
        if "emulator_command" in planned.facts:
            token = sources.environ.get(TOKEN) or secrets.token_urlsafe(32)
            sources = replace(sources, environ={**sources.environ, TOKEN: token})
            planned = stack.enter_context(_started(sources, planned))
        yield _checked(sources, _located(sources, planned))


@contextmanager
def _started(sources: Sources, planned: Plan) -> Iterator[Plan]:
    """Yield the plan with the address of the double that its command starts."""
    command = planned.facts["emulator_command"]

    def at(url: str) -> Plan:
        return replace(planned, facts={**planned.facts, "url": SourcedValue(url, command.source)})

    def answers(url: str) -> bool:
        return doubles.is_double(_located(sources, at(url)))

    with emulator_command.started(
        planned.value("emulator_command"), answers, token=sources.environ[TOKEN]
    ) as url:
        yield at(url)


def _checked(sources: Sources, target: Target) -> Target:
    """Return a target that answers; raise TargetError if it should be a double but is not."""
    target = require_answer(target)
    if target.kind == "double" and not doubles.is_double(target):
        raise TargetError(
            f"{target.url} answers, but not as a double. A live platform is opted into twice: by "
            f"its URL and by {sources.option('target')}=live."
        )
    return target


def require_answer(target: Target) -> Target:
    """Return a target with the problems of its surfaces; raise one if no surface answers."""
    problems = preflight.problems(target)
    if preflight.none_left(target, problems):
        raise next(iter(problems.values()))
    return replace(target, problems=problems)


def _located(sources: Sources, planned: Plan) -> Target:
    """Return the target; add the keys if it is a double of this user."""
    if planned.kind == "live":
        return from_plan.target(planned, sources.environ)
    environ = doubles.environment_of(planned.value("url"), sources.environ)
    known = plan(replace(sources, environ=environ), planned.name, planned.chosen_by)
    facts = {**known.facts, "url": planned.facts["url"]}
    return from_plan.target(replace(known, facts=facts), environ)
