"""One application of ADK on one server: its runner, its memory, its credentials.

The runner is made once, and its services ask the host of the run that asks them. Memory and
credentials are ADK's own in-memory services, as in `adk api_server`: they end with the process and
are emptied by a reset.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from agentdouble.agents.adk.current import enter
from agentdouble.agents.adk.native_runner import import_sdk, runner_of
from agentdouble.agents.framework import Framework, Host, RunEvent, RunInput, SessionRecord

_SDK = (
    "google.adk.agents.run_config",
    "google.adk.apps",
    "google.adk.auth.credential_service.in_memory_credential_service",
    "google.adk.memory",
    "google.adk.runners",
    "agentdouble.agents.adk.artifacts",
    "agentdouble.agents.adk.sessions",
)


class AdkApplication:
    """The Framework of an agent, a node or an App; ``before`` is that of its earlier code."""

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

    async def run(self, asked: RunInput, host: Host) -> AsyncIterator[RunEvent]:
        """Run the agent, and yield the JSON of each event that the runner yields."""
        await import_sdk(self._app, *_SDK)
        from google.genai import types

        run = enter(host)
        message = asked.message
        runner = await self._opened()
        events = runner.run_async(
            user_id=asked.user,
            session_id=asked.session,
            new_message=None if message is None else types.Content.model_validate(message),
            invocation_id=asked.invocation_id,
            state_delta=asked.state_delta,
            run_config=_config(asked),
            **({"abort_signal": host.aborted} if self._listens else {}),
        )
        async with aclosing(events):
            async for event in events:
                yield run.to_send(event)

    def parse(self, event: bytes) -> Any:
        """Return ADK's event."""
        from google.adk.events import Event

        return Event.model_validate_json(event)

    async def add_session_to_memory(self, session: SessionRecord) -> None:
        """Let the agents find the session's events when they search their memory."""
        await import_sdk(self._app, *_SDK)
        from agentdouble.agents.adk.sessions import to_adk

        await self._remembering().add_session_to_memory(to_adk(session))

    def reset(self) -> None:
        """Empty the memory and forget the credentials: the next run has new ones."""
        self._memory = self._credentials = None

    async def close(self) -> None:
        """Close the runner, with the toolsets of its agents and its plugins."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.close()

    async def _opened(self) -> Any:
        before, self._before = self._before, None
        if before is not None:
            await before.close()
        runner = self._runner
        if runner is None:
            from agentdouble.agents.adk.artifacts import Artifacts
            from agentdouble.agents.adk.sessions import Sessions

            runner = self._runner = runner_of(
                self._native, self._app, session_service=Sessions(), artifact_service=Artifacts()
            )
            self._listens = "abort_signal" in inspect.signature(runner.run_async).parameters
        runner.memory_service = self._remembering()
        runner.credential_service = self._holding_credentials()
        return runner

    def _remembering(self) -> Any:
        from google.adk.memory import InMemoryMemoryService

        if self._memory is None:
            self._memory = InMemoryMemoryService()
        return self._memory

    def _holding_credentials(self) -> Any:
        from google.adk.auth.credential_service import in_memory_credential_service as in_memory

        if self._credentials is None:
            self._credentials = in_memory.InMemoryCredentialService()
        return self._credentials


def _config(asked: RunInput) -> Any:
    from google.adk.agents.run_config import RunConfig, StreamingMode

    known = {"custom_metadata": asked.custom_metadata, "service_tier": asked.service_tier}
    return RunConfig(
        streaming_mode=StreamingMode.SSE if asked.streaming else StreamingMode.NONE,
        # An older version refuses the names of fields that it does not have.
        **{name: value for name, value in known.items() if name in RunConfig.model_fields},
    )
