"""The users and sessions that a request names, on each interface that an application may have.

A request with two possible meanings is refused: an application may read ``User-Id`` as
``user_id``, take the first of two equal JSON keys, or resolve ``..``, and the gateway cannot know.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote

from starlette.types import Scope

from agentdouble import strict_json
from agentdouble.runtimes.authentication.identity import folded

_LONGEST = 1024  # characters of a name
Surface = Literal["simple", "api", "mcp"]

_RUNS = ("run", "run_sse", "run_live")


class AmbiguousError(ValueError):
    """The application might read this in another way than the gateway."""


class Fields(list[tuple[str, Any]]):
    """A JSON object as it was written, as a list of pairs."""

    def all(self, *names: str) -> list[Any]:
        """Return the values of fields with these names, in any spelling, without null."""
        return [value for name, value in self if plain(name) in names and value is not None]


def read(body: bytes) -> Any:
    """Return parsed JSON, with its objects as Fields; raise AmbiguousError."""
    try:
        return strict_json.loads(body, object_pairs_hook=Fields)
    except (ValueError, RecursionError) as error:
        raise AmbiguousError(f"its body is no JSON: {error}") from None


def plain(name: str) -> str:
    """Return a name in lower case and without separators."""
    return re.sub(r"[^a-z]", "", name.casefold())


def checked(names: Iterable[Any]) -> Iterator[str]:
    """Yield the names that are not empty; raise AmbiguousError for an invalid name."""
    for name in names:
        if not isinstance(name, str):
            raise AmbiguousError("it has a name that is no text")
        if len(name) > _LONGEST:
            raise AmbiguousError(f"it names what has more than {_LONGEST} characters")
        if name:
            yield name


@dataclass(frozen=True)
class Named:
    """The names in a request: ``users`` of the API server, ``callers`` from the user header."""

    users: frozenset[str] = frozenset()
    callers: frozenset[str] = frozenset()
    sessions: frozenset[str] = frozenset()
    mcp: frozenset[str] = frozenset()


def surface_of(path: str) -> Surface:
    """Return the interface that a path belongs to, which decides the format of a refusal."""
    first = next(iter(segments_of(path)), "")
    if first == "mcp":
        return "mcp"
    return "api" if first in ("apps", *_RUNS) else "simple"


def in_head(path: str, scope: Scope) -> Named:
    """Return the names in path, query and headers; raise AmbiguousError."""
    headers: list[tuple[bytes, bytes]] = scope["headers"]
    return Named(
        frozenset(checked((*_in_path(path), *_in_query(path, scope)))),
        frozenset(checked(_header(headers, b"user-id"))),
        frozenset(checked(_header(headers, b"session-id"))),
        frozenset(checked(_header(headers, b"mcp-session-id"))),
    )


def is_run(path: str, method: str) -> bool:
    """Return whether a request runs an agent, for the user that its body names."""
    return method == "POST" and segments_of(path) in (["run"], ["run_sse"])


def in_run(body: bytes) -> Named:
    """Return the names in the body of a run; raise AmbiguousError."""
    found = read(body)
    users = found.all("userid") if isinstance(found, Fields) else []
    return Named(frozenset(checked(users)))


def _in_path(path: str) -> Iterator[str]:
    """Yield the user of ``/apps/<app>/users/<user>/...``."""
    if {".", ".."} & set(re.split(r"[/\\]", unquote(path))):
        raise AmbiguousError("its path has dots for segments")
    raw = [one for one in path.split("/") if one]
    match segments_of(path):
        case ["apps", _, "users", _, *_]:
            if any(re.search(r"[/\\]", unquote(one)) for one in raw[:6]):
                raise AmbiguousError("its path has an encoded slash")
            yield unquote(raw[3])


def _in_query(path: str, scope: Scope) -> Iterator[str]:
    """Yield the user of ``/run_live?user_id=...``."""
    if segments_of(path) == ["run_live"]:
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        yield from (value for name, value in query if plain(name) == "userid")


def _header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> Iterator[str]:
    values = {value.decode("latin-1").strip() for key, value in headers if folded(key) == name}
    if len(values) > 1:
        raise AmbiguousError(f"it has several headers {name.decode()}")
    yield from values


def segments_of(path: str) -> list[str]:
    """Return a path's segments as the most lenient application sees them."""
    return [one.casefold() for one in unquote(path).split("/") if one]
