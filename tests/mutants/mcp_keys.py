"""Mutants of the keys of MCP services."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from starlette.types import Scope

from agentdouble.mcp_hosting import host, keys
from tests.mutants import Mutant, wire

HEADER = "Required header: Authorization: Bearer <API_KEY> (4.3)"
RULE = "MCP service: header Authorization with value Bearer <API_KEY> (5)"

Accepts = Callable[[str, str], bool]  # of what is presented, and of a key
When = Callable[[wire.Request], bool]


def _accepting(accepts: Accepts) -> Callable[[pytest.MonkeyPatch], None]:
    """Accept what is presented as a key if a function says so."""

    def found(shown: str | None, own: Sequence[str]) -> str | None:
        return next((key for key in own if accepts(shown or "", key)), None)

    return lambda patch: patch.setattr(host, "find", found)


def _presenting(presented: Callable[[Scope], str | None]) -> Callable[[pytest.MonkeyPatch], None]:
    """Read the key of a request in another way."""
    return lambda patch: patch.setattr(host, "presented", presented)


def _unguarded(when: When) -> Callable[[pytest.MonkeyPatch], None]:
    """Answer some requests to services as if they had the service's key."""

    def change(patch: pytest.MonkeyPatch) -> None:
        known = _noting_keys(patch)

        def let_in(request: wire.Request) -> None:
            name = request.path.removeprefix(host.PREFIX)
            if name in known and when(request):
                request.headers["authorization"] = f"Bearer {known[name]}"

        wire.install(patch, wire.requested(f"* {host.PREFIX}*", let_in))

    return change


def _noting_keys(patch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return a dict that will have the key of each service."""
    known: dict[str, str] = {}
    add = host.Host.add

    async def noted(self: host.Host, name: str, app: host.Hosted, own: Sequence[str]) -> None:
        known.update({name: own[0]} if own else {})
        await add(self, name, app, own)

    patch.setattr(host.Host, "add", noted)
    return known


def _asks(method: str) -> When:
    return lambda request: isinstance(request.json, dict) and request.json.get("method") == method


def _in_a_session(request: wire.Request) -> bool:
    return "mcp-session-id" in request.headers


def _without_a_key(when: When) -> When:
    return lambda request: "authorization" not in request.headers and when(request)


def _accept_the_key_of_another_service(patch: pytest.MonkeyPatch) -> None:
    known = _noting_keys(patch)

    def found(shown: str | None, own: Sequence[str]) -> str | None:
        return own[0] if own and shown in known.values() else None

    patch.setattr(host, "find", found)


def _trust_whoever_has_once_shown_the_key(patch: pytest.MonkeyPatch) -> None:
    trusted: set[Sequence[str]] = set()

    def found(shown: str | None, own: Sequence[str]) -> str | None:
        given = keys.find(shown, own)
        if given is not None:
            trusted.add(tuple(own))
        return own[0] if tuple(own) in trusted else None

    patch.setattr(host, "find", found)


def _refuse_the_key_the_second_time(patch: pytest.MonkeyPatch) -> None:
    used: set[str] = set()

    def forget(result: Any, request: wire.Request) -> Any:
        used.add(request.headers.get("authorization", ""))
        return result

    def refuse(request: wire.Request) -> None:
        if request.headers.get("authorization") in used:
            request.headers["authorization"] = "Bearer used"

    initialize = _asks("initialize")
    wire.install(
        patch,
        wire.calls("initialize", forget),
        wire.requested(
            f"POST {host.PREFIX}*", lambda request: refuse(request) if initialize(request) else None
        ),
    )


def _without_a_scheme(scope: Scope) -> str | None:
    value = keys.header(scope, b"authorization") or ""
    return keys.presented(scope) if " " in value else value or None


def _any_scheme(scope: Scope) -> str | None:
    value = keys.header(scope, b"authorization") or ""
    return value.partition(" ")[2].strip() or None


def _own_header(scope: Scope) -> str | None:
    return keys.presented(scope) or keys.header(scope, b"x-api-key")


def _query(scope: Scope) -> str | None:
    query = scope["query_string"].decode()
    given = next((one[8:] for one in query.split("&") if one.startswith("api_key=")), None)
    return keys.presented(scope) or given


MUTANTS = (
    Mutant(
        "accept_requests_without_a_key",
        "MCP-02",
        HEADER,
        _accepting(lambda shown, key: shown in ("", key)),
    ),
    Mutant("accept_any_key", "MCP-02", RULE, _accepting(lambda shown, _: bool(shown))),
    Mutant(
        "accept_the_begin_of_a_key",
        "MCP-02",
        RULE,
        _accepting(lambda shown, key: bool(shown) and key.startswith(shown)),
    ),
    Mutant(
        "accept_a_key_with_more_behind_it",
        "MCP-02",
        RULE,
        _accepting(lambda shown, key: shown.startswith(key)),
    ),
    Mutant(
        "accept_a_key_in_another_case",
        "MCP-02",
        RULE,
        _accepting(lambda shown, key: shown.lower() == key.lower()),
    ),
    Mutant(
        "compare_only_the_first_16_characters",
        "MCP-02",
        RULE,
        _accepting(lambda shown, key: shown[:16] == key[:16]),
    ),
    Mutant(
        "compare_only_the_length",
        "MCP-02",
        RULE,
        _accepting(lambda shown, key: len(shown) == len(key)),
    ),
    Mutant("accept_the_key_of_another_service", "MCP-02", RULE, _accept_the_key_of_another_service),
    Mutant(
        "trust_whoever_has_once_shown_the_key",
        "MCP-02",
        HEADER,
        _trust_whoever_has_once_shown_the_key,
    ),
    Mutant("accept_a_key_without_a_scheme", "MCP-02", RULE, _presenting(_without_a_scheme)),
    Mutant("accept_a_key_with_another_scheme", "MCP-02", RULE, _presenting(_any_scheme)),
    Mutant("accept_a_key_in_x_api_key", "MCP-02", HEADER, _presenting(_own_header)),
    Mutant("accept_a_key_in_the_query", "MCP-02", HEADER, _presenting(_query)),
    Mutant("guard_all_but_initialize", "MCP-02", HEADER, _unguarded(_asks("initialize"))),
    Mutant("guard_all_but_the_list_of_tools", "MCP-02", HEADER, _unguarded(_asks("tools/list"))),
    Mutant("guard_all_but_calls", "MCP-02", HEADER, _unguarded(_asks("tools/call"))),
    Mutant(
        "accept_a_session_for_a_key", "MCP-02", HEADER, _unguarded(_without_a_key(_in_a_session))
    ),
    Mutant(
        "accept_a_wrong_key_in_a_session",
        "MCP-02",
        RULE,
        _unguarded(
            lambda request: (
                "authorization" in request.headers and "mcp-session-id" in request.headers
            )
        ),
    ),
    Mutant(
        "guard_all_but_the_end_of_a_session",
        "MCP-02",
        HEADER,
        _unguarded(lambda request: request.method == "DELETE"),
    ),
    Mutant(
        "guard_all_but_listening",
        "MCP-02",
        HEADER,
        _unguarded(lambda request: request.method == "GET"),
    ),
    Mutant("refuse_the_key_the_second_time", "MCP-02", RULE, _refuse_the_key_the_second_time),
)
