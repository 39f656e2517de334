"""Mutations of the double under which the checks of hosted runtimes fail."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from starlette.datastructures import Headers

from agentdouble.runtimes import gateway
from doublecheck.contracts import hosting
from tests.doublecheck.contracts.mutations import Mutation


def give_each_session_a_process_of_its_own(patch: pytest.MonkeyPatch) -> None:
    original = gateway.Gateway.__call__

    async def call(self: Any, scope: Any, receive: Any, send: Any) -> None:
        name, path = _asked(scope)
        own = f"{name}-{Headers(scope=scope).get('session_id')}"
        if self._runtimes.find(own) is None:
            found = self._runtimes.find(name).definition
            await self._runtimes.create(dataclasses.replace(found, name=own))
        await original(self, _asking(scope, own, path), receive, send)

    patch.setattr(gateway.Gateway, "__call__", call)


def host_simple_applications_alone(patch: pytest.MonkeyPatch) -> None:
    original = gateway.Gateway.__call__

    async def call(self: Any, scope: Any, receive: Any, send: Any) -> None:
        _, path = _asked(scope)
        await original(self, _asking(scope, hosting.SIMPLE, path), receive, send)

    patch.setattr(gateway.Gateway, "__call__", call)


def _asked(scope: Any) -> tuple[str, str]:
    name, _, path = scope["path"].removeprefix(gateway.PREFIX).partition("/")
    return name, path


def _asking(scope: Any, name: str, path: str) -> Any:
    asked = f"{gateway.PREFIX}{name}/{path}"
    return {**scope, "path": asked, "raw_path": asked.encode()}


MUTATIONS = (
    Mutation("HST-01", give_each_session_a_process_of_its_own),
    Mutation("HST-05", host_simple_applications_alone),
)
