"""What the double's own routes have in common that do what actions of the control plane do.

They call the objects behind the actions, without a signature. A refusal has the platform's code.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

from agentdouble import strict_json
from agentdouble.control_plane import endpoints
from agentdouble.control_plane.action_errors import REFUSED
from agentdouble.control_plane.routes import Action
from agentdouble.environment import TOOL_HOST, TOOL_SCHEME
from agentdouble.surfaces.admin import RefusedError
from agentdouble.threads import import_in_thread

Actions: TypeAlias = Callable[[], Mapping[str, Action]]


async def late_actions(actions: Actions) -> Mapping[str, Action]:
    """Return actions by name, whose modules are imported when the first one is called."""
    await import_in_thread("agentdouble.control_plane.actions")
    return actions()


@contextmanager
def as_refusals() -> Iterator[None]:
    """Raise RefusedError, with the platform's code and status, for what an action refuses."""
    try:
        yield
    except REFUSED as error:
        raise RefusedError(error.status, error.code, str(error)) from error


@contextmanager
def acting(environment: Mapping[str, str]) -> Iterator[None]:
    """Raise RefusedError as ``as_refusals`` does, and show addresses below the double's own."""
    with as_refusals(), endpoints.seen_at(own_url(environment)):
        yield


def own_url(environment: Mapping[str, str]) -> str:
    """Return the double's URL, from the variables that point a client at it."""
    return f"{environment[TOOL_SCHEME]}://{environment[TOOL_HOST]}"


async def json_object(body: bytes, known: Iterable[str]) -> dict[str, Any]:
    """Return the JSON object that a body is; raise RefusedError, also for a field not ``known``."""
    try:
        document = await strict_json.read(body)
    except (ValueError, RecursionError) as error:
        message = f"The body is no JSON: {error}."
        raise RefusedError(400, "BadRequest", message) from None
    if not isinstance(document, dict):
        raise RefusedError(400, "BadRequest", "The body is no JSON object.")
    fields = [*known]
    for name in document:
        if name not in fields:
            near = difflib.get_close_matches(name[:100], fields, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            message = f"There is no field {name[:100]!r}.{hint} There are {', '.join(fields)}."
            raise RefusedError(400, "BadRequest", message)
    return document
