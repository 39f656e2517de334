"""Mutations of the double under which the checks of hosted runtimes fail."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from starlette.datastructures import Headers

from agentdouble.runtimes import forking, gateway, logs, monitoring, scaling
from agentdouble.runtimes.authentication import isolation, keys
from doublecheck.contracts import hosting
from tests.mutants.inside import inside


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


def leave_the_idle_running(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(scaling.Scaler, "end_idle", lambda *_: None)
    patch.setattr(hosting, "SEEN_WITHIN_S", 0.1)


def confine_nobody(patch: pytest.MonkeyPatch) -> None:
    async def confinement(*_: Any) -> None:
        return None

    patch.setattr(forking.Forks, "_confinement", confinement)


def lose_what_is_printed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(logs.InstanceLog, "feed", lambda *_: None)
    patch.setattr(hosting, "SEEN_WITHIN_S", 0.1)


def take_failures_for_answers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(monitoring.Observed, "failure", "")


def host_simple_applications_alone(patch: pytest.MonkeyPatch) -> None:
    original = gateway.Gateway.__call__

    async def call(self: Any, scope: Any, receive: Any, send: Any) -> None:
        _, path = _asked(scope)
        await original(self, _asking(scope, hosting.SIMPLE, path), receive, send)

    patch.setattr(gateway.Gateway, "__call__", call)


def take_any_key(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(keys, "_find", lambda _presented, known: known[0])


def let_everybody_into_sessions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(isolation.Isolation, "_hold", lambda *_: None)


def _asked(scope: Any) -> tuple[str, str]:
    name, _, path = scope["path"].removeprefix(gateway.PREFIX).partition("/")
    return name, path


def _asking(scope: Any, name: str, path: str) -> Any:
    asked = f"{gateway.PREFIX}{name}/{path}"
    return {**scope, "path": asked, "raw_path": asked.encode()}


MUTANTS = (
    inside("HST-01", give_each_session_a_process_of_its_own),
    inside("HST-02", leave_the_idle_running),
    inside("HST-03", confine_nobody),
    inside("HST-04", lose_what_is_printed),
    inside("HST-04", take_failures_for_answers),
    inside("HST-05", host_simple_applications_alone),
    inside("AUT-02", take_any_key),
    inside("AUT-03", let_everybody_into_sessions),
)
