"""Mutations of the double under which the checks of services fail."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from starlette.responses import PlainTextResponse

from agentdouble.mcp_hosting import host
from agentdouble.mcp_services import openapi, passthrough
from tests.mutants.inside import inside


def answer_services_with_a_page(patch: pytest.MonkeyPatch) -> None:
    async def answer(_self: Any, scope: Any, receive: Any, send: Any) -> None:
        await PlainTextResponse("Welcome to the service")(scope, receive, send)

    patch.setattr(passthrough.PassThrough, "__call__", answer)


def ask_services_for_no_key(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(host, "find", lambda _presented, keys: keys[0])


def pass_calls_on_without_arguments(patch: pytest.MonkeyPatch) -> None:
    original = passthrough.PassThrough._exchange

    async def exchange(self: Any, request: Any, body: bytes, send: Any) -> None:
        await original(self, request, body.replace(b'"a"', b'"c"'), send)

    patch.setattr(passthrough.PassThrough, "_exchange", exchange)


def leave_out_an_operation(patch: pytest.MonkeyPatch) -> None:
    original = openapi.server

    def server(definition: Any, **options: Any) -> Any:
        fewer = dataclasses.replace(definition, operations=definition.operations[:1])
        return original(fewer, **options)

    patch.setattr(openapi, "server", server)


MUTANTS = (
    inside("MCP-01", answer_services_with_a_page),
    inside("MCP-02", ask_services_for_no_key),
    inside("SVC-01", pass_calls_on_without_arguments),
    inside("SVC-02", leave_out_an_operation),
)
