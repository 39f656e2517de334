"""From a plan to a target that answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from doublecheck import connecting, preflight
from doublecheck.configuration import targets
from doublecheck.configuration.plan import Plan, Said, plan
from doublecheck.errors import TargetError
from doublecheck.target import Target


@contextmanager
def opened(said: Said, planned: Plan) -> Iterator[Target]:
    """Yield the target of a plan that says where the platform is.

    It has the problems of surfaces that do not answer. Raises TargetError for a target that is
    unusable, or is no double and should be; and if none of its surfaces answers, why not.
    """
    target = _answering(_located(said, planned))
    if target.kind == "double" and not connecting.is_double(target):
        raise TargetError(
            f"{target.url} answers, but not as a double. A live platform is opted into twice: by "
            f"its URL and by {said.option('target')}=live."
        )
    yield target


def _answering(target: Target) -> Target:
    """Return a target with what stands in the way of some of its surfaces; raise it, if of all."""
    problems = preflight.problems(target)
    if preflight.none_left(target, problems):
        raise next(iter(problems.values()))
    return replace(target, problems=problems)


def _located(said: Said, planned: Plan) -> Target:
    """Return the target, with the keys of this user's double if it is one."""
    if planned.kind == "live":
        return targets.target(planned, said.environ)
    environ = connecting.environment_of(planned.value("url"), said.environ)
    known = plan(replace(said, environ=environ), planned.name)
    facts = {**known.facts, "url": planned.facts["url"]}
    return targets.target(replace(known, facts=facts), environ)
