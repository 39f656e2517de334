"""Open the target of a plan: start what is to be started, and see that it answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from doublecheck.client import doubles, emulator_command, preflight
from doublecheck.errors import TargetError
from doublecheck.target import from_plan
from doublecheck.target.plan import Plan, Said, SourcedValue, plan
from doublecheck.target.target import Target


@contextmanager
def opened(said: Said, planned: Plan) -> Iterator[Target]:
    """Yield the target of a plan that says where the platform is.

    A double that a command starts ends with the context. The target has the problems of surfaces
    that do not answer. Raises TargetError for a target that is unusable, or is no double and
    should be; and if none of its surfaces answers, why not.
    """
    with ExitStack() as stack:
        if "emulator_command" in planned.facts:
            planned = stack.enter_context(_started(said, planned))
        yield _checked(said, _located(said, planned))


@contextmanager
def _started(said: Said, planned: Plan) -> Iterator[Plan]:
    """Yield the plan with the address of the double that its command starts."""
    command = planned.facts["emulator_command"]

    def at(url: str) -> Plan:
        return replace(planned, facts={**planned.facts, "url": SourcedValue(url, command.source)})

    def answers(url: str) -> bool:
        return doubles.is_double(_located(said, at(url)))

    with emulator_command.started(planned.value("emulator_command"), answers) as url:
        yield at(url)


def _checked(said: Said, target: Target) -> Target:
    """Return a target that answers; raise TargetError if it should be a double and is none."""
    target = require_answer(target)
    if target.kind == "double" and not doubles.is_double(target):
        raise TargetError(
            f"{target.url} answers, but not as a double. A live platform is opted into twice: by "
            f"its URL and by {said.option('target')}=live."
        )
    return target


def require_answer(target: Target) -> Target:
    """Return a target with the problems of surfaces that do not answer; raise one if none does."""
    problems = preflight.problems(target)
    if preflight.none_left(target, problems):
        raise next(iter(problems.values()))
    return replace(target, problems=problems)


def _located(said: Said, planned: Plan) -> Target:
    """Return the target, with the keys of this user's double if it is one."""
    if planned.kind == "live":
        return from_plan.target(planned, said.environ)
    environ = doubles.environment_of(planned.value("url"), said.environ)
    known = plan(replace(said, environ=environ), planned.name)
    facts = {**known.facts, "url": planned.facts["url"]}
    return from_plan.target(replace(known, facts=facts), environ)
