"""Plan: the description of a target, with the source of each fact.

The command line comes before the ``DOUBLECHECK_`` variables, then ``[tool.doublecheck]``, then the
TOML file of ``--platform-config``, and last the variables that are not about the harness alone,
such as ``PLATFORM_TOOL_ID``. The table of a target that the command line names comes before the
variables. A table of a file is only used for its kind of target.

Each fact is decided separately, with one exception: the addresses of surfaces in the environment go
with the URL there. Beside another URL they would name a second platform, so they are not used, and
``Plan.unused`` names them. This module sends no request and starts nothing.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from doublecheck.errors import ConfigurationError, TargetError
from doublecheck.target import config_files
from doublecheck.target.config_files import File, Table, Value, read_value, shown
from doublecheck.target.facts import BY_KEY, FACTS, Fact, variable
from doublecheck.target.target import Kind

BY_CALLER = "the caller"
_WAYS = frozenset({"url", "emulator_command"})
_OURS = "DOUBLECHECK_"
_OF_SURFACES = frozenset(fact.key for fact in FACTS if fact.type == "address") - {"url"}
_OF_THE_CHECKS = frozenset(
    {"allow_writes", "examples", "level", "seed"}
)  # whatever they are run against
_LOCATING = frozenset(fact.key for fact in FACTS if fact.type in ("address", "command"))


@dataclass(frozen=True)
class SourcedValue:
    """The value of a fact, and its source."""

    value: Value
    source: str


@dataclass(frozen=True)
class Plan:
    """The plan of a target: its name, its kind, and its facts by key.

    ``unused`` are the variables with addresses that belong to another URL than the target's.
    """

    name: str
    kind: Kind
    facts: Mapping[str, SourcedValue] = field(default_factory=dict)
    chosen_by: str = ""
    unused: Sequence[str] = ()

    @property
    def in_process(self) -> bool:
        """Whether the target is a double that the harness starts in its own process."""
        return self.kind == "double" and not _WAYS & self.facts.keys()

    def value(self, key: str) -> Any:
        """Return the value of a key, or None."""
        found = self.facts.get(key)
        return None if found is None else found.value


@dataclass(frozen=True)
class Sources:
    """The sources of facts: options by key, environment, pytest's ini, pyproject.toml.

    The option ``config`` names a further file. ``spelled`` returns the form of an option:
    ``--platform-url`` for ``url``.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    project: Path | None = None
    ini: Mapping[str, str] = field(default_factory=dict)
    spelled: Callable[[str], str] = "--platform-{}".format

    def option(self, key: str) -> str:
        """Return the spelling of a key's option."""
        return self.spelled(key.replace("_", "-"))


def plan(sources: Sources, name: str | None = None, chosen_by: str = BY_CALLER) -> Plan:
    """Return the plan of a target: the one with this name, or the selected one.

    Raises ConfigurationError for a wrong value, and TargetError for an impossible choice.
    """
    read = _files(sources)
    name, chosen_by = _chosen(sources, read) if name is None else (name, chosen_by)
    kind, tables = _described(sources, read, name)
    ours, others = _environment(sources)
    named = name not in ("double", "live") and chosen_by in (BY_CALLER, sources.option("target"))
    nearer, farther = (tables, [ours]) if named else ([ours], tables)
    facts = _merged([_options(sources), *nearer, _ini(sources), *farther, others])
    facts, unused = _of_one_platform(facts, ours)
    made = Plan(name, kind, facts, chosen_by, unused)
    _require(sources, made)
    return made


def _of_one_platform(
    facts: Mapping[str, SourcedValue], environ: Mapping[str, SourcedValue]
) -> tuple[Mapping[str, SourcedValue], Sequence[str]]:
    """Return the facts without the environment's addresses if the URL is not from there as well.

    Also returns the names of the variables that are not used.
    """
    if not _WAYS & facts.keys() or ("url" in facts and facts["url"] is environ.get("url")):
        return facts, ()
    strange = [key for key in facts if key in _OF_SURFACES and facts[key] is environ.get(key)]
    kept = {key: fact for key, fact in facts.items() if key not in strange}
    return kept, [facts[key].source for key in strange]


def _merged(layers: Sequence[Mapping[str, SourcedValue]]) -> Mapping[str, SourcedValue]:
    """Merge layers; earlier ones take precedence.

    An address and a command that starts a double replace each other.
    """
    facts: dict[str, SourcedValue] = {}
    for layer in reversed(layers):
        located = _WAYS & layer.keys()
        if len(located) == 2:
            both = " and ".join(layer[key].source for key in sorted(located))
            raise TargetError(f"{both}: say where the double is, or how it starts, not both.")
        if located:
            facts = {key: one for key, one in facts.items() if key not in located ^ _WAYS}
        facts.update(layer)
    return facts


def _files(sources: Sources) -> Sequence[File]:
    project = None if sources.project is None else config_files.read_project(sources.project)
    named = sources.options.get("config") or sources.environ.get(variable("config"))
    file = config_files.read(Path(named)) if named else None
    return [one for one in (project, file) if one is not None]


def _chosen(sources: Sources, read: Sequence[File]) -> tuple[str, str]:
    if sources.options.get("target"):
        return sources.options["target"], sources.option("target")
    if sources.environ.get(variable("target")):
        return sources.environ[variable("target")], variable("target")
    for file in read:
        if file.chosen:
            return file.chosen, f"{file.own.where} target"
    return "double", ""


def _described(
    sources: Sources, read: Sequence[File], name: str
) -> tuple[Kind, list[dict[str, SourcedValue]]]:
    """Return the kind of a target and its facts from the files."""
    if name in ("double", "live"):
        kind: Kind = "live" if name == "live" else "double"
        return kind, [_facts(file.own) for file in read if _kind_of(file.own) in (kind, None)]
    tables = [file.targets[name] for file in read if name in file.targets]
    if not tables:
        raise _no_target(name, read)
    kinds = [found for table in tables if (found := _kind_of(table)) is not None]
    return kinds[0] if kinds else "live", [_facts(table) for table in tables]


def _kind_of(table: Table) -> Kind | None:
    """Return the kind of a table's target: as stated, or inferred from its keys."""
    kind = table.values.get("kind")
    if kind is not None:
        return "live" if kind == "live" else "double"
    if "emulator_command" in table.values:
        return "double"
    return "live" if table.values.keys() & _LOCATING else None


def _no_target(name: str, read: Sequence[File]) -> TargetError:
    names = [*config_files.RESERVED, *(one for file in read for one in file.targets)]
    near = difflib.get_close_matches(name, names, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    return TargetError(
        f"There is no target {shown(name)}; there are {', '.join(dict.fromkeys(names))}.{hint} "
        "A target of your own is a table of pyproject.toml: [tool.doublecheck.targets.NAME]."
    )


def _facts(table: Table) -> dict[str, SourcedValue]:
    return {key: SourcedValue(value, f"{table.where} {key}") for key, value in table.values.items()}


def _options(sources: Sources) -> dict[str, SourcedValue]:
    return _read(sources.options, {fact.key: sources.option(fact.key) for fact in FACTS})


def _environment(sources: Sources) -> tuple[dict[str, SourcedValue], dict[str, SourcedValue]]:
    """Return the facts in the harness's own variables, and those in others."""
    variables = {fact.key: fact.variable for fact in FACTS if fact.variable and not fact.secret}
    held = {key: sources.environ.get(name) or None for key, name in variables.items()}
    ours = {key: name for key, name in variables.items() if name.startswith(_OURS)}
    others = {key: name for key, name in variables.items() if key not in ours}
    return _read(held, ours), _read(held, others)


def _ini(sources: Sources) -> dict[str, SourcedValue]:
    return _read(
        sources.ini, {key: f"platform_{key} of pytest's configuration" for key in sources.ini}
    )


def _read(given: Mapping[str, Any], sources: Mapping[str, str]) -> dict[str, SourcedValue]:
    """Read the given values by key, each with its source."""
    return {
        key: SourcedValue(_value(BY_KEY[key], given[key], source), source)
        for key, source in sources.items()
        if given.get(key) is not None
    }


def _value(fact: Fact, given: Any, source: str) -> Value:
    try:
        return read_value(fact, given)
    except ValueError as error:
        message = f"{source} must be {error}, not {shown(given)}."
        raise ConfigurationError(message, source=source, key=fact.key) from None


def _require(sources: Sources, made: Plan) -> None:
    """Raise TargetError for facts that do not fit the target."""
    if made.kind == "live":
        _require_meant(sources, made)
    if not made.in_process:
        return
    for key, fact in made.facts.items():
        if key not in _OF_THE_CHECKS and fact.source == sources.option(key):
            raise TargetError(
                f"{fact.source} needs a running platform: give its address with {sources.option('url')}."
            )


def _require_meant(sources: Sources, made: Plan) -> None:
    target, url = sources.option("target"), sources.option("url")
    twice = (
        f"A live platform is opted into twice: {url} or a file says which one, and {target} "
        "that it is meant."
    )
    # a pyproject.toml is shared, so the user must confirm that a live platform is meant
    if made.chosen_by not in (BY_CALLER, target, variable("target")):
        raise TargetError(
            f"{made.chosen_by} selects a live platform, which a file must not do. {twice}"
        )
    if "emulator_command" in made.facts:
        source = made.facts["emulator_command"].source
        raise TargetError(f"{source} starts a double, but {target} {made.name} is a live platform.")
    if "url" not in made.facts:
        raise TargetError(
            f"{target} {made.name} needs a running platform: give its address with {url}. {twice}"
        )
