"""What is to be checked: a platform in hand, or what a configuration says, told to a process.

Keys go by the environment, which other users of this machine cannot read as they can arguments.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agentdouble import environment
from agentdouble.signing import Credentials
from doublecheck.client import open_target as opening
from doublecheck.errors import ArgumentError, TargetError
from doublecheck.runner import run_command as checking
from doublecheck.target.from_plan import variable_of
from doublecheck.target.target import (
    API_KEY,
    OTHER_KEY,
    RESTRICTED_ACCESS_KEY,
    RESTRICTED_SECRET_KEY,
    Kind,
    Target,
)

_OURS = ("DOUBLECHECK_", "PLATFORM_")
_PYTESTS = ("PYTEST_", "JPY_")  # of a run or a kernel that this process may be
_ADDRESSES = ("url", "api_server", "control_plane", "mcp", "a2a")


@dataclass(frozen=True)
class Subject:
    """A platform as the options of pytest and the environment that say where it is.

    ``url`` is None for a double that the run itself starts.
    """

    name: str
    kind: Kind
    url: str | None
    arguments: Sequence[str]
    environ: Mapping[str, str] = field(repr=False)


def configured(target: str | None, *, allow_writes: bool) -> Subject:
    """Return what options would say: a target of the configuration, or by default a double.

    Raises what stands in the way of asking it.
    """
    options = {"target": target, "allow_writes": allow_writes or None}
    order = checking.Order(options, spelled=str)
    checking.require_target(order)
    return Subject(order.plan.name, order.kind, order.url, order.arguments(), _environ())


def in_hand(target: Target, *, allow_writes: bool) -> Subject:
    """Return a platform that somebody has already; raise what stands in the way of asking it."""
    opening.answering(target)
    if target.credentials is not None and target.credentials.session_token is not None:
        raise TargetError(
            f"The checks cannot be told the session token of the key pair for {target.url}; "
            "give them a key pair that lasts."
        )
    target = replace(target, allow_writes=target.allow_writes or allow_writes)
    kept = {name: one for name, one in _environ().items() if not name.startswith(_OURS)}
    environ = {**kept, **dict(_keys(target))}
    return Subject(target.name, target.kind, target.url, list(_options(target)), environ)


def target_of(platform: object) -> Target:
    """Return where a platform is that somebody has; raise ArgumentError for what is none."""
    target = getattr(platform, "target", None)
    if not isinstance(target, Target):
        raise ArgumentError(
            f"{platform!r:.80} is no platform: pass what connect() returned, or a URL."
        )
    return target


def _options(target: Target) -> Iterator[str]:
    yield "--platform-project="
    yield f"--platform-target={target.kind}"
    for name in _ADDRESSES:
        yield f"--platform-{name.replace('_', '-')}={getattr(target, name)}"
    yield f"--platform-offers={','.join(sorted(target.offered))}"
    yield f"--platform-region={target.region}"
    if target.tool_id is not None:
        yield f"--platform-tool-id={target.tool_id}"
    if target.ca_file is not None:
        yield f"--platform-ca-file={target.ca_file}"
    if target.reference_app:
        yield "--platform-reference-app"
    if target.allow_writes:
        yield "--platform-allow-writes"


def _keys(target: Target) -> Iterator[tuple[str, str]]:
    yield from _pair(target.credentials, environment.ACCESS_KEY, environment.SECRET_KEY)
    yield from _pair(target.restricted, RESTRICTED_ACCESS_KEY, RESTRICTED_SECRET_KEY)
    named = {API_KEY: target.api_key, OTHER_KEY: target.other_key}
    of_surfaces = {variable_of(surface): key for surface, key in target.api_keys.items()}
    for variable, key in (named | of_surfaces).items():
        if key is not None:
            yield variable, key.reveal()


def _pair(credentials: Credentials | None, access: str, secret: str) -> Iterator[tuple[str, str]]:
    if credentials is not None:
        yield access, credentials.access_key
        yield secret, credentials.secret_key


def _environ() -> dict[str, str]:
    return {name: one for name, one in os.environ.items() if not name.startswith(_PYTESTS)}
