"""Plan: the description of a target, with the source of each of its facts.

The command line comes before the ``DOUBLECHECK_`` variables, then the target's table in
``[tool.doublecheck]``, and last the variables that do not belong to the harness alone, such as
``PLATFORM_TOOL_ID``. If the command line names a target, its table comes before the variables.

Each fact is decided separately, with one exception: the environment's addresses of surfaces apply
only to the environment's URL. With another URL they would name a second platform, so they are not
used, and ``Plan.unused`` names them. This module sends no request and starts nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agentdouble.core.environment import TOKEN
from agentdouble.core.suggestions import did_you_mean
from doublecheck.errors import ConfigurationError, TargetError
from doublecheck.target import config_files
from doublecheck.target.config_files import KEYED, RESERVED, File, Table, Value, read_value, shown
from doublecheck.target.facts import BY_KEY, BY_NAME, FACTS, Surface, variable
from doublecheck.target.target import Kind

BY_CALLER = "the caller"
_OF_SURFACES = frozenset(fact.key for fact in FACTS if fact.type == "address") - {"url"}
_OF_THE_CHECKS = frozenset({"allow_writes", "examples", "level", "seed"})

_SECRETS = tuple(fact for fact in FACTS if fact.secret)


@dataclass(frozen=True)
class SourcedValue:
    """The value of a fact, and its source."""

    value: Value
    source: str


@dataclass(frozen=True)
class Plan:
    """The plan of a target: its name, its kind, and its facts by key.

    ``variables`` are the variables with its secrets, and ``options`` what the command line says, by
    the name of the fact. ``unused`` are the variables with addresses that belong to another URL
    than the target's.
    """

    name: str
    kind: Kind
    facts: Mapping[str, SourcedValue] = field(default_factory=dict)
    chosen_by: str = ""
    unused: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def in_process(self) -> bool:
        """Whether the target is a double that the harness starts in its own process."""
        return self.kind == "double" and "url" not in self.facts

    def value(self, key: str) -> Any:
        """Return the value of a key, or None."""
        fact = self.facts.get(key)
        return None if fact is None else fact.value

    def with_variables(self, variables: Mapping[str, str]) -> Plan:
        """Return the plan with further variables. They replace those of the same name."""
        facts = dict(self.facts)
        for fact in FACTS:
            known = facts.get(fact.key)
            is_own = known is None or known.source == fact.variable
            if fact.help and fact.variable in variables and is_own:
                value = read_value(fact, variables[fact.variable])
                facts[fact.key] = SourcedValue(value, fact.variable)
        return replace(self, facts=facts, variables={**self.variables, **variables})


@dataclass(frozen=True)
class Sources:
    """The sources of facts: options by key, the environment, and the project's pyproject.toml.

    ``spelled`` returns the form of an option: ``--platform-url`` for ``url``.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    project: Path | None = None
    spelled: Callable[[str], str] = "--platform-{}".format

    @classmethod
    def of(
        cls, options: Mapping[str, Any], spelled: Callable[[str], str] = "--{}".format
    ) -> Sources:
        """Return the sources for options, without those that are None, and the nearest project."""
        given_options = {name: value for name, value in options.items() if value is not None}
        return cls(given_options, project=config_files.nearest_project(), spelled=spelled)

    def option(self, key: str) -> str:
        """Return the spelling of a key's option."""
        return self.spelled(key.replace("_", "-"))


def plan(sources: Sources, name: str | None = None, chosen_by: str = BY_CALLER) -> Plan:
    """Return the plan of a target: the one with this name, or the selected one.

    Raises ConfigurationError for a wrong value, and TargetError for an impossible choice.
    """
    file = config_files.read_project(sources.project) if sources.project else None
    name, chosen_by = _selected(sources, file) if name is None else (name, chosen_by)
    table = _table(sources.project, file, name)
    of_table = {
        key: SourcedValue(value, f"{table.where} {key}") for key, value in table.values.items()
    }
    own, others = _environment(sources)
    named = name not in RESERVED and chosen_by in (BY_CALLER, sources.option("target"))
    nearer, farther = (of_table, own) if named else (own, of_table)
    options = _read(sources.options, {fact.key: sources.option(fact.key) for fact in FACTS})
    facts = {**others, **farther, **nearer, **options}
    unused: list[str] = []
    if "url" in facts and facts["url"] is not own.get("url"):
        strange = [key for key in _OF_SURFACES if key in facts and facts[key] is own.get(key)]
        unused = sorted(facts.pop(key).source for key in strange)
    kind: Kind = "double" if (table.values.get("kind") or name) == "double" else "live"
    variables = _variables_with_secrets(facts, sources.environ)
    planned = Plan(name, kind, facts, chosen_by, unused, variables, sources.options)
    _require(sources, planned)
    return planned


def _selected(sources: Sources, file: File | None) -> tuple[str, str]:
    """Return the name of the target, and what selects it."""
    if sources.options.get("target"):
        return sources.options["target"], sources.option("target")
    if sources.environ.get(variable("target")):
        return sources.environ[variable("target")], variable("target")
    if file is not None and file.selected:
        return file.selected, f"{file.where} target"
    return "double", ""


def _table(project: Path | None, file: File | None, name: str) -> Table:
    """Return the table of a target. Raise TargetError if the project's file has none."""
    if name in RESERVED:
        return Table("")
    targets = {} if file is None else file.targets
    if name in targets:
        return targets[name]
    names = [*RESERVED, *targets]
    where = "a pyproject.toml, of which there is none here" if project is None else str(project)
    raise TargetError(
        f"Unknown target {shown(name)}; choose from {', '.join(names)}.{did_you_mean(name, names)} "
        f"To define a target, add a table to {where}: [tool.doublecheck.targets.NAME]."
    )


def _environment(sources: Sources) -> tuple[dict[str, SourcedValue], dict[str, SourcedValue]]:
    """Return the facts in the harness's own variables, and those in others."""
    variables = {fact.key: fact.variable for fact in FACTS if fact.help}
    values = {key: sources.environ.get(name) or None for key, name in variables.items()}
    own = {key: name for key, name in variables.items() if name.startswith("DOUBLECHECK_")}
    others = {key: name for key, name in variables.items() if key not in own}
    return _read(values, own), _read(values, others)


def _variables_with_secrets(
    facts: Mapping[str, SourcedValue], environ: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables that hold a target's secrets, including those that a file names."""
    names = {TOKEN, *(fact.variable for fact in _SECRETS), *map(variable_of, KEYED)}
    for value in (facts[fact.key].value for fact in _SECRETS if fact.key in facts):
        names |= {*value.values()} if isinstance(value, Mapping) else {str(value)}
    return {name: environ[name] for name in sorted(names) if name in environ}


def variable_of(surface: Surface) -> str:
    """Return the variable with the API key of one surface."""
    return f"DOUBLECHECK_{surface.upper()}_API_KEY"


def _read(facts: Mapping[str, Any], sources: Mapping[str, str]) -> dict[str, SourcedValue]:
    """Read the given values by key, each with its source. Raise ConfigurationError."""
    values = {}
    for key, source in sources.items():
        if facts.get(key) is None:
            continue
        try:
            values[key] = SourcedValue(read_value(BY_KEY[key], facts[key]), source)
        except ValueError as error:
            message = f"{source} must be {error}, not {shown(facts[key])}."
            raise ConfigurationError(message, source=source, key=key) from None
    return values


def _require(sources: Sources, planned: Plan) -> None:
    """Raise TargetError for facts that do not fit the target."""
    target, url = sources.option("target"), sources.option("url")
    if planned.in_process:
        for key, fact in planned.facts.items():
            if key not in _OF_THE_CHECKS and fact.source == sources.option(key):
                raise TargetError(
                    f"{fact.source} needs a running platform: give its address with {url}."
                )
    if planned.kind == "double":
        return
    # a pyproject.toml is shared, so the user must confirm that a live platform is meant
    if planned.chosen_by not in (BY_CALLER, target, variable("target")):
        raise TargetError(
            f"{planned.chosen_by} selects a live platform, which a file alone must not do. To use "
            f"it, confirm with {target} {planned.name}."
        )
    if "url" not in planned.facts:
        raise TargetError(
            f"{target} {planned.name} needs a running platform: give its address with {url}, or "
            "in a file."
        )


def pair_variables(plan: Plan) -> tuple[str, str]:
    """Return the variables for the key pair of a target."""
    access, secret = (
        plan.value(BY_NAME[name].key) or variable(name) for name in ("access_key", "secret_key")
    )
    return access, secret


def described(plan: Plan) -> list[str]:
    """Return a plan in words: one line for the target, and one for each of its facts."""
    name = plan.kind if plan.name == plan.kind else f"{plan.name}, {plan.kind},"
    if plan.in_process:
        return [f"platform: {name} in this process"]
    url = plan.facts["url"]
    facts = [
        f"  {key.replace('_', ' ')}: {_value(fact.value)} ({fact.source})"
        for key, fact in plan.facts.items()
        if key not in ("kind", "url")
    ]
    usual = (*(fact.variable for fact in _SECRETS), *map(variable_of, KEYED))
    variables = [name for name in usual if plan.variables.get(name)]
    unused = "not used for this platform; set DOUBLECHECK_URL to use them"
    return [
        f"platform: {name} at {url.value} ({url.source})",
        *facts,
        *([f"  secrets: {', '.join(variables)}"] if variables else []),
        *([f"  not used: {', '.join(plan.unused)} ({unused})"] if plan.unused else []),
    ]


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {variable}" for key, variable in value.items())
    if isinstance(value, frozenset):
        return ", ".join(sorted(value))
    return str(value).lower() if isinstance(value, bool) else str(value)
