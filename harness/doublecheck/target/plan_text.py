"""A plan in words: the target, its address, its surfaces and the sources; never a secret."""

from __future__ import annotations

from collections.abc import Mapping

from doublecheck.target.config_values import KEYED
from doublecheck.target.facts import FACTS
from doublecheck.target.from_plan import variable_of
from doublecheck.target.plan import Plan
from doublecheck.target.surfaces import SURFACES
from doublecheck.target.target import DEFAULT_OFFERS

_NOT_SHOWN = ("kind", "url", "emulator_command", "offers", "ca_file")


def lines(plan: Plan, environ: Mapping[str, str]) -> list[str]:
    """Return a plan in words: a line for the target, and one for each fact of it."""
    if plan.in_process:
        return [f"platform: {_named(plan)} in this process"]
    facts = [
        f"  {key.replace('_', ' ')}: {_value(fact.value)} ({fact.source})"
        for key, fact in plan.facts.items()
        if key not in _NOT_SHOWN
    ]
    return [
        f"platform: {_named(plan)} {_where(plan)}",
        _offers(plan),
        *facts,
        *_secrets(plan, environ),
        *_unused(plan),
    ]


def _named(plan: Plan) -> str:
    return plan.kind if plan.name == plan.kind else f"{plan.name}, {plan.kind},"


def _where(plan: Plan) -> str:
    fact = plan.facts.get("url") or plan.facts["emulator_command"]
    if "url" in plan.facts:
        return f"at {fact.value} ({fact.source})"
    return f"that a command starts ({fact.source})"


def _offers(plan: Plan) -> str:
    fact = plan.facts.get("offers")
    offered = DEFAULT_OFFERS[plan.kind] if fact is None else fact.value
    assert isinstance(offered, frozenset)
    absent = sorted(SURFACES - offered)
    told = (
        f"all but {', '.join(absent)}" if len(absent) < len(offered) else ", ".join(sorted(offered))
    )
    return f"  offers: {told} ({'by default' if fact is None else fact.source})"


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {one}" for key, one in value.items())
    return str(value).lower() if isinstance(value, bool) else str(value)


def _secrets(plan: Plan, environ: Mapping[str, str]) -> list[str]:
    """Return the names of the variables that contain secrets."""
    usual = (fact.variable or "" for fact in FACTS if fact.secret)
    held = [name for name in (*usual, *map(variable_of, KEYED)) if environ.get(name)]
    return [f"  secrets: {', '.join(held)}"] if held else []


def _unused(plan: Plan) -> list[str]:
    """Return the names of the variables with addresses of another platform."""
    told = "not of this platform, as DOUBLECHECK_URL would say"
    return [f"  not used: {', '.join(plan.unused)} ({told})"] if plan.unused else []
