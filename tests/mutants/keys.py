"""Mutants that accept a key or a signature that is none."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agentdouble.core import invoke_tool
from agentdouble.core.signing import DATE_FORMAT
from doublecheck.client._sync.platform import Platform
from doublecheck.contracts.hosting import AGENTS
from doublecheck.contracts.wire import signed
from doublecheck.wire import mcp
from doublecheck.wire.calls import Request as Sent
from doublecheck.wire.mcp import McpServer
from tests.mutants import Witnessed, agents, protocols, sandbox, wire, witnesses
from tests.mutants.changes import admitted, signed_anyway
from tests.mutants.wire import Change, Request

LAST_MONTH = dt.timedelta(days=30)

# ---- changes


def is_bare(request: Request) -> bool:
    """Return whether nothing is behind the scheme."""
    return request.header("authorization").strip() in ("Bearer", "bearer")


def has_more(request: Request, sent: str) -> bool:
    """Return whether words follow the right key."""
    return request.header("authorization").startswith(f"{sent} ")


def is_repeated(request: Request, sent: str) -> bool:
    """Return whether the key is the right one in a list of keys."""
    some = request.header("authorization").split(", ")
    return len(some) > 1 and sent.removeprefix("Bearer ") in some


def signed_within(age: dt.timedelta) -> Callable[[Request], bool]:
    """Return whether a request is not older than this."""

    def when(request: Request) -> bool:
        try:
            date = dt.datetime.strptime(request.header("x-date"), DATE_FORMAT)
        except ValueError:
            return False
        now = dt.datetime.now(dt.timezone.utc).replace(tzinfo=None)
        return dt.timedelta(hours=1) < now - date < age

    return when


def of_other_services() -> list[Change]:
    """Accept the keys of other services."""
    paths: dict[str, str] = {}

    def note(request: Request) -> None:
        paths.setdefault(request.header("authorization"), request.path)

    def when(request: Request, _sent: str) -> bool:
        return paths[request.header("authorization")] != request.path

    route = protocols.SERVICE
    return [
        wire.requested(route, note),
        admitted(route, when, key=lambda request: request.path),
    ]


# ---- witnesses


def at_a_service(change: Callable[[str], str]) -> Callable[[Platform], None]:
    """Ask a service with another value of the header Authorization."""

    def witness(platform: Platform) -> None:
        with witnesses.service(platform) as client:
            client.tools()
            right = client._server
            value = change(right.headers["Authorization"])
            wrong = McpServer(right.url, {"Authorization": value})
            answer = platform.send(mcp.initialize(wrong).request)
            assert 400 <= answer.status_code < 500, answer.text

    return witness


def at_a_runtime(change: Callable[[str], str]) -> Callable[[Platform], None]:
    """Ask a runtime with another value of the header Authorization."""

    def witness(platform: Platform) -> None:
        with witnesses.hosted(platform, AGENTS) as runtime:
            runtime.agents.list_apps()
            key = runtime.target.api_key
            assert key is not None
            value = change(f"Bearer {key.reveal()}")
            headers = {"Authorization": value}
            answer = runtime.request("GET", "/list-apps", headers=headers)
            assert 400 <= answer.status_code < 500, answer.text

    return witness


def of_another_service(platform: Platform) -> None:
    """Ask a service with the key of another one, which both have been used."""
    with witnesses.service(platform) as first, witnesses.service(platform) as second:
        for client in (first, second):
            client.tools()
        wrong = McpServer(first.url, second._server.headers)
        answer = platform.send(mcp.initialize(wrong).request)
        assert 400 <= answer.status_code < 500, answer.text


def forged(change: Callable[[Sent], Sent], age: dt.timedelta) -> Callable[[Platform], None]:
    """Send a request to the control plane with another signature, or an old one."""

    def witness(platform: Platform) -> None:
        name = f"agent_witness_{witnesses.new_id()}"
        tool = platform.target.sandbox_tool()
        body = invoke_tool.RunCode(tool, name, "1", "python3").body()
        now = dt.datetime.now(dt.timezone.utc)
        answer = platform.send(change(signed(platform, body, when=now - age)))
        assert 400 <= answer.status_code < 500, answer.text

    return witness


def with_authorization(change: Callable[[str], str]) -> Callable[[Sent], Sent]:
    """Change the header Authorization."""

    def changed(request: Sent) -> Sent:
        value = change(request.headers["Authorization"])
        return replace(request, headers={**request.headers, "Authorization": value})

    return changed


NOW = dt.timedelta(0)
TABLE: dict[str, dict[str, Any]] = {
    "AUT-02": {
        "accept_a_scheme_without_a_key": Witnessed(
            agents.admits(lambda request, _sent: is_bare(request)), at_a_runtime(lambda _: "Bearer")
        ),
        "accept_a_key_with_words_behind": Witnessed(
            agents.admits(has_more), at_a_runtime(lambda right: f"{right} more")
        ),
    },
    "MCP-02": {
        "accept_a_scheme_without_a_key": Witnessed(
            protocols.unguarded(is_bare), at_a_service(lambda _: "Bearer")
        ),
        "accept_a_key_with_words_behind": Witnessed(
            admitted(protocols.ENDPOINT, has_more),
            at_a_service(lambda right: f"{right} more"),
        ),
        "accept_a_key_in_a_list": Witnessed(
            admitted(protocols.ENDPOINT, is_repeated),
            at_a_service(lambda right: f"Bearer nobodys, {right.removeprefix('Bearer ')}"),
        ),
        "accept_the_key_of_another_service": Witnessed(of_other_services(), of_another_service),
    },
    "CTL-03": {
        "accept_an_empty_signature": Witnessed(
            sandbox.let_in(
                lambda request: request.header("authorization").strip().endswith("Signature=")
            ),
            forged(
                with_authorization(lambda text: re.sub("Signature=.*", "Signature=", text)), NOW
            ),
        ),
        "accept_a_scheme_without_a_key": Witnessed(
            sandbox.let_in(is_bare), forged(with_authorization(lambda _: "Bearer"), NOW)
        ),
        "accept_what_was_signed_last_month": Witnessed(
            Change(
                wire.action(*sandbox.ACTIONS),
                around=signed_anyway(signed_within(2 * LAST_MONTH), (400, 401, 403)),
            ),
            forged(lambda request: request, LAST_MONTH),
        ),
    },
}
