"""Agents and apps of Google's ADK, run by ADK's own runner if google-adk is installed.

An ``AdkApplication`` has the one runner of an application, whose ``services`` read and write the
server's sessions and artifacts. In A2A applications, without a server of sessions, ``converse`` of
``runners`` lets the same agents answer. ``runners`` and ``services`` import google-adk, so only a
run imports them.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import partial
from importlib.metadata import version
from typing import Any

from agentdouble.agents.agent import Agent, Message, Session, WireEvent
from agentdouble.agents.framework import (
    Framework,
    FrameworkHost,
    RunEvent,
    RunInput,
    SessionRecord,
    is_instance_of,
)
from agentdouble.core.threads import import_in_thread
from agentdouble.errors import AgentLoadError

__all__ = ["adk_agent", "is_app"]

_RUNNERS = "agentdouble.agents.adk.runners"

# By name, because only agents that use google-adk import it.
_APP = ("google.adk.apps.app", "App")
_ROOTS = (
    ("google.adk.agents.base_agent", "BaseAgent"),
    ("google.adk.workflow._base_node", "BaseNode"),  # workflows and other nodes, from 2.0 on
)


def is_app(value: object) -> bool:
    """Return whether a value is an App of ADK."""
    return is_instance_of(value, *_APP)


def adk_agent(root: object, app: str) -> Agent | None:
    """Return an agent, a node or an App of ADK as an Agent, or None for other objects."""
    if not is_app(root) and not any(is_instance_of(root, *names) for names in _ROOTS):
        return None
    native: Any = root
    agent = native.root_agent if is_app(root) else native

    async def run(message: Message, session: Session) -> AsyncIterator[WireEvent]:
        runners = await _import_runners(app)
        async for event in runners.converse(native, app, message, session):
            yield event

    opened = partial(AdkApplication, native, app)
    return Agent(agent.name, run, agent.description or "", native, opened)


async def _import_runners(app: str) -> Any:
    """Return the module ``runners``, which imports ADK and takes seconds at first.

    Raises AgentLoadError if the installed version is too old.
    """
    try:
        await import_in_thread(_RUNNERS)
    except ImportError as error:
        raise AgentLoadError(
            f"The agent of {app!r} needs google-adk 2.2 or newer, and {version('google-adk')} is "
            f"installed ({error}). Install a newer one, or make the agent a runtime with an "
            "interpreter of its own.",
            app=app,
        ) from error
    return sys.modules[_RUNNERS]


class AdkApplication:
    """The Framework of an agent, a node or an App; ``before`` is the one before a reload."""

    def __init__(self, native: Any, app: str, before: Framework | None) -> None:
        self._native = native
        self._app = app
        self._runner: Any = None
        self._listens = False  # for an abort_signal, as the runner of 2.13 does
        self._memory: Any = None
        self._credentials: Any = None
        self._before = before if isinstance(before, AdkApplication) else None
        if self._before is not None:
            self._memory = self._before._memory
            self._credentials = self._before._credentials

    async def run(self, request: RunInput, host: FrameworkHost) -> AsyncIterator[RunEvent]:
        """Run the agent, and yield the JSON of each event that the runner yields."""
        runners = await _import_runners(self._app)
        run = runners.enter(host)
        runner = await self._opened(runners)
        events = runner.run_async(
            user_id=request.user,
            session_id=request.session,
            new_message=runners.content(request.message),
            invocation_id=request.invocation_id,
            state_delta=request.state_delta,
            run_config=runners.run_config(request),
            **({"abort_signal": host.aborted} if self._listens else {}),
        )
        async with aclosing(events):
            async for event in events:
                yield run.to_send(event)

    def parse(self, event: bytes) -> Any:
        """Return ADK's event."""
        from google.adk.events import Event  # optional: google-adk, which the agent imports

        return Event.model_validate_json(event)

    async def add_session_to_memory(self, session: SessionRecord) -> None:
        """Let the agents find the session's events when they search their memory."""
        runners = await _import_runners(self._app)
        await self._remembering(runners).add_session_to_memory(runners.to_adk(session))

    def reset(self) -> None:
        """Empty the memory and forget the credentials: the next run has new ones."""
        self._memory = self._credentials = None

    async def close(self) -> None:
        """Close the runner, with the toolsets of its agents and its plugins."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.close()

    async def _opened(self, runners: Any) -> Any:
        before, self._before = self._before, None
        if before is not None:
            await before.close()
        runner = self._runner
        if runner is None:
            runner = self._runner = runners.server_runner(self._native, self._app)
            self._listens = "abort_signal" in inspect.signature(runner.run_async).parameters
        if self._credentials is None:
            with warnings.catch_warnings():  # they are experimental, which is nothing to act upon
                warnings.simplefilter("ignore", UserWarning)
                self._credentials = runners.InMemoryCredentialService()
        runner.memory_service = self._remembering(runners)
        runner.credential_service = self._credentials
        return runner

    def _remembering(self, runners: Any) -> Any:
        if self._memory is None:
            self._memory = runners.InMemoryMemoryService()
        return self._memory
