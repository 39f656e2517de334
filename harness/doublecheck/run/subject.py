"""The platform that is checked, as options and environment of the process that checks it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agentdouble.core.signing import Credentials
from doublecheck.client import open_target
from doublecheck.errors import ArgumentError, TargetError
from doublecheck.run import command
from doublecheck.target.facts import variable
from doublecheck.target.plan import FIELDS, variable_of
from doublecheck.target.target import Kind, Target

_OURS = ("DOUBLECHECK_", "PLATFORM_")
_PYTESTS = ("PYTEST_", "JPY_")  # from a pytest run or a kernel in this process


@dataclass(frozen=True)
class Subject:
    """A platform, as the pytest options and the environment that describe it.

    ``url`` is None for a double that the run itself starts.
    """

    name: str
    kind: Kind
    url: str | None
    arguments: Sequence[str]
    environ: Mapping[str, str] = field(repr=False)


def from_configuration(target: str | None, **of_the_run: Any) -> Subject:
    """Return the subject that the configuration names, by default a double.

    ``of_the_run`` are options of ``doublecheck run`` by name; None leaves one unchanged. Raises an
    error if the platform cannot be used.
    """
    options = {"target": target, **{name: value or None for name, value in of_the_run.items()}}
    run = command.RunOptions(options, spelled=str)
    command.require_target(run)
    return Subject(run.plan.name, run.plan.kind, run.plan.value("url"), run.arguments(), _environ())


def from_target(target: Target, **of_the_run: Any) -> Subject:
    """Return the subject for an open platform or a URL. Raise an error if it cannot be used.

    ``of_the_run`` are fields of the target that the run sets; None leaves one unchanged.
    """
    open_target.require_answer(target)
    if target.credentials is not None and target.credentials.session_token is not None:
        raise TargetError(
            f"The checks cannot use the session token of the key pair for {target.url}; "
            "pass a permanent key pair."
        )
    target = replace(target, **{name: value for name, value in of_the_run.items() if value})
    inherited = {name: value for name, value in _environ().items() if not name.startswith(_OURS)}
    environ = {**inherited, **dict(_keys(target))}
    return Subject(target.name, target.kind, target.url, list(_options(target)), environ)


def target_of(platform: object) -> Target:
    """Return the target of an open platform. Raise ArgumentError if it is not a platform."""
    target = getattr(platform, "target", None)
    if not isinstance(target, Target):
        raise ArgumentError(
            f"{platform!r:.80} is not a platform: pass a URL, or what connect() returned."
        )
    return target


def _options(target: Target) -> Iterator[str]:
    yield "--platform-project="
    yield f"--platform-target={target.kind}"
    for name, field_name in FIELDS.items():
        if field_name == "offered" and target.offers_assumed:
            continue
        option, value = f"--platform-{name.replace('_', '-')}", getattr(target, field_name)
        if value is True:
            yield option
        elif value:
            yield f"{option}={','.join(sorted(value)) if isinstance(value, frozenset) else value}"


def _keys(target: Target) -> Iterator[tuple[str, str]]:
    yield from _pair(target.credentials, "")
    yield from _pair(target.restricted, "restricted_")
    named = {variable("api_key"): target.api_key, variable("other_api_key"): target.other_key}
    of_surfaces = {variable_of(surface): key for surface, key in target.api_keys.items()}
    for name, key in (named | of_surfaces).items():
        if key is not None:
            yield name, key.reveal()


def _pair(credentials: Credentials | None, prefix: str) -> Iterator[tuple[str, str]]:
    if credentials is not None:
        yield variable(f"{prefix}access_key"), credentials.access_key
        yield variable(f"{prefix}secret_key"), credentials.secret_key


def _environ() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(_PYTESTS)}
