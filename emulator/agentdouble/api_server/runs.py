"""Runs of the agents in a directory, and the state of their frameworks between runs."""

from __future__ import annotations

import logging

from agentdouble.agents.agent import Agent
from agentdouble.agents.directory import AgentsDirectory
from agentdouble.agents.framework import Framework
from agentdouble.agents.loops import AgentLoops
from agentdouble.api_server.artifacts import ArtifactService
from agentdouble.api_server.framework_run import FrameworkRun
from agentdouble.api_server.function_run import FunctionRun
from agentdouble.api_server.histories import Histories
from agentdouble.api_server.models import CreateSession, RunRequest
from agentdouble.api_server.run import Run, RunServices
from agentdouble.api_server.run_host import record
from agentdouble.api_server.sessions import SessionService
from agentdouble.api_server.stores import SessionKey
from agentdouble.core import ledger
from agentdouble.core.threads import run_in_thread
from agentdouble.errors import AgentLoadError, AgentNotFoundError, ApiError, SessionNotFoundError

_log = logging.getLogger(__name__)


class Runs:
    """Runs agents of a directory in sessions; a session has at most one run at a time."""

    def __init__(
        self, directory: AgentsDirectory, sessions: SessionService, artifacts: ArtifactService
    ) -> None:
        self.directory = directory
        self.sessions = sessions
        self._services = RunServices(sessions, artifacts, Histories(sessions.store))
        self._frameworks: dict[str, tuple[Agent, Framework]] = {}

    async def prepare(self, body: RunRequest, *, streaming: bool) -> Run:
        """Return the run for a request; raise ApiError if the request cannot be run."""
        if not body.app_name:
            raise ApiError(400, "app_name is required when ADK_DEFAULT_APP_NAME is not set")
        agent = await self.agent(body.app_name)
        key = SessionKey(body.app_name, body.user_id, body.session_id.strip())
        if not await self.sessions.store.has(key):
            if ledger.choose("U-RUN-UNKNOWN-SESSION") != "create":
                raise SessionNotFoundError(f"Session not found: {key.id}")
            await self.sessions.create(key.app, key.user, CreateSession(session_id=key.id))
        framework = self._framework(body.app_name, agent)
        if framework is None:
            return FunctionRun(self._services, agent, key, body, streaming=streaming)
        return FrameworkRun(self._services, framework, key, body, streaming=streaming)

    async def add_session_to_memory(self, key: SessionKey) -> None:
        """Let an application's agents find a session when they search their memory.

        Raises ApiError for an unknown session or application, and for agents without memory.
        """
        opened = await self._services.histories.open(key)
        if opened is None:
            raise ApiError(404, "Session not found")
        framework = self._framework(key.app, await self.agent(key.app))
        if framework is None:
            raise ApiError(400, "Memory service is not configured.")
        parsed = await run_in_thread(lambda: [framework.parse(event) for event in opened.unread])
        await framework.add_session_to_memory(record(opened.session, [*opened.parsed, *parsed]))

    @property
    def loops(self) -> AgentLoops:
        """The loops on which the agents run."""
        return self._services.loops

    def reset(self) -> None:
        """Clear the agents' state outside of sessions and artifacts."""
        self._services.histories.clear()
        for _, framework in self._frameworks.values():
            framework.reset()

    async def close(self) -> None:
        """End every run, and release the agents' resources."""
        opened, self._frameworks = self._frameworks, {}
        for app, (_, framework) in opened.items():
            await self._services.loops.end(app, framework.close)
        await self._services.loops.close()

    def _framework(self, app: str, agent: Agent) -> Framework | None:
        """Return the framework's side of an application, or None if its agent has none."""
        if agent.open is None:
            return None
        previous, framework = self._frameworks.get(app, (None, None))
        if framework is None or previous is not agent:
            framework = agent.open(framework)
            self._frameworks[app] = agent, framework
        return framework

    async def agent(self, app: str) -> Agent:
        """Return an application's agent; raise ApiError if it has none."""
        if app.startswith("__"):
            raise ApiError(
                403,
                "Access to internal special agents is disabled in API server mode and on a "
                "development server not known to be bound to a loopback address.",
            )
        try:
            return await self.directory.agent(app)
        except AgentNotFoundError as error:
            ledger.choose("U-RUN-UNKNOWN-APP")
            raise ApiError(404, str(error)) from None
        except AgentLoadError as error:
            _log.error("%s", error, exc_info=error.__cause__)
            raise ApiError(500, str(error)) from None
