"""The kernels of sandbox sessions, as a Jupyter server has them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterator
from typing import Any

from agentdouble.core.clock import Clock
from agentdouble.errors import AgentDoubleError, SandboxError
from agentdouble.jupyter.kernelspecs import (
    LANGUAGES,
    SESSION,
    display_name,
    ended_error,
    language_spec,
    session_spec,
    spec_name,
    unknown_error,
)
from agentdouble.jupyter.session_kernel import SessionKernel, kernel_id
from agentdouble.sandbox import languages
from agentdouble.sandbox.instance_key import InstanceKey
from agentdouble.sandbox.kernel import Kernel
from agentdouble.sandbox.session import SandboxSession
from agentdouble.sandbox.sessions import SandboxSessions

_ALL = [it.name for it in (languages.PYTHON, languages.JAVASCRIPT, languages.TYPESCRIPT)]


class SessionKernels:
    """The kernels of all sessions; ``tool_id`` is the tool of sessions that are made here.

    ``tool_name`` returns the name of a tool, ``agents`` the names of agents that the double hosts.
    """

    def __init__(
        self,
        sessions: SandboxSessions,
        tool_id: str,
        clock: Clock,
        tool_name: Callable[[str], str],
        agents: Callable[[], Collection[str]],
    ) -> None:
        self._sessions = sessions
        self._tool_name = tool_name
        self._agents = agents
        self._tool_id = tool_id
        self._clock = clock
        self._kernels: dict[str, SessionKernel] = {}
        self._own: set[InstanceKey] = set()  # of sessions that were made here

    def all(self) -> list[SessionKernel]:
        """Return the living kernels, and those of Jupyter that have ended but can be restarted."""
        self._sessions.destroy_due()
        living = {kernel.id: kernel for kernel in self._living()}
        watched = {
            id_: kernel
            for id_, kernel in self._kernels.items()
            if any(client.connected for client in kernel.clients)
        }
        self._kernels = {**watched, **living}  # clients of one that sleeps go on when it wakes
        return [it for it in self._kernels.values() if it.key in self._own or it.kernel is not None]

    def _living(self) -> Iterator[SessionKernel]:
        for session in self._sessions.living():
            for language, kernel in session.processes.kernels.items():
                yield self._followed(session, language, kernel)

    def _id(self, session: SandboxSession, language: str) -> str:
        """Return the id of a session's kernel: the oldest session has that of the user session."""
        oldest = self._sessions.oldest(session.key)
        return kernel_id(session.key, language, "" if session is oldest else session.id)

    def _followed(self, session: SandboxSession, language: str, kernel: Kernel) -> SessionKernel:
        id_, is_own = self._id(session, language), self._own.__contains__
        followed = self._kernels.get(id_)
        if followed is None:
            followed = SessionKernel(id_, session, language, self._clock, self._sessions, is_own)
            self._kernels[id_] = followed
        followed.follow(session, kernel)
        return followed

    def find(self, id_: str) -> SessionKernel:
        """Return a kernel by its id; raise SandboxError."""
        for kernel in self.all():
            if kernel.id == id_:
                return kernel
        why = "its session may have expired or been deleted."
        if id_ in self._kernels:
            why = self._kernels[id_].ended()
        raise SandboxError(
            f"There is no kernel {id_[:80]!r}: {why} "
            "GET /jupyter/api/kernels lists those that live.",
            "InvalidResource.NotFound",
            404,
        )

    def _offered(self) -> Iterator[tuple[SandboxSession, str]]:
        """Yield the living sessions whose kernels can be opened, each with its languages.

        Those of Jupyter's own are open already, and those on nodes cannot be opened.
        """
        self._sessions.destroy_due()
        for session in self._sessions.living():
            if session.key not in self._own and session.processes.node is None:
                for language in session.processes.kernels or (languages.PYTHON.name,):
                    yield session, language

    def specs(self) -> dict[str, dict[str, Any]]:
        """Return the kernelspecs by name: languages of new sessions, then living sessions."""
        specs = {name: language_spec(name) for name in LANGUAGES}
        shown: set[str] = set()
        agents = self._agents()
        for session, language in self._offered():
            key = session.key
            name = spec_name(key, self._id(session, language))
            title = display_name(key, self._tool_title(key.tool_id), language, agents)
            if title in shown:
                title = f"{title} {session.id}"
            shown.add(title)
            specs[name] = session_spec(name, title, language, session)
        return specs

    def _tool_title(self, tool_id: str) -> str | None:
        """Return the name of a tool, or None for the one that the double always has."""
        return None if tool_id == self._tool_id else self._tool_name(tool_id)

    async def start(self, name: str) -> SessionKernel:
        """Return the kernel of a kernelspec: a session's, or that of a new session.

        Raises SandboxError, which says so if the session has ended, and the errors of a start.
        """
        if name in LANGUAGES:
            return await self._create(LANGUAGES[name])
        for session, language in self._offered():
            if name == spec_name(session.key, self._id(session, language)):
                kernel = session.processes.kernels.get(language) or await session.kernel(language)
                return self._followed(session, language, kernel)
        if name.startswith(SESSION):
            raise self._ended(name) or unknown_error(name)
        return await self._create(name)

    def _ended(self, name: str) -> SandboxError | None:
        """Return the error for the kernelspec of a session that has ended and is remembered."""
        readable = name.rpartition("-")[0]
        for ended in reversed(self._sessions.ended()):
            if readable != spec_name(ended.key, ""):
                continue
            ids = (kernel_id(ended.key, it, id_) for it in _ALL for id_ in ("", ended.id))
            if name in {spec_name(ended.key, id_) for id_ in ids}:
                return ended_error(ended, self._sessions.asleep(ended.id))
        return None

    async def _create(self, language: str) -> SessionKernel:
        """Make a session with a kernel; raise SandboxError and the errors of its start."""
        name = languages.find(language).name
        key = InstanceKey(self._tool_id, f"jupyter-{uuid.uuid4().hex[:12]}")
        session = await self._sessions.get_or_create(key.tool_id, key.user_session_id)
        try:
            kernel = await session.kernel(name)
        except AgentDoubleError as error:
            await self._sessions.destroy(session, f"its kernel did not start: {error}")
            raise
        self._own.add(key)
        return self._followed(session, name, kernel)

    async def restart(self, kernel: SessionKernel) -> None:
        """Restart a kernel, in a new session if its own has ended."""
        key, session = kernel.key, self._sessions.by_id(kernel.session_id)
        if session is None:
            session = await self._sessions.get_or_create(key.tool_id, key.user_session_id)
        kernel.use(session)
        await kernel.restart(session)

    async def delete(self, kernel: SessionKernel) -> None:
        """End the session of a kernel that was made here; only leave that of an agent.

        JupyterLab does the same for "Shut Down Kernel" and for all kernels when it quits.
        """
        session = self._sessions.by_id(kernel.session_id)
        if kernel.key not in self._own:
            if session is not None:
                session.log.note("a Jupyter server has left its kernel; the session goes on")
            return
        if session is not None:
            await self._sessions.destroy(session, "its kernel was shut down by Jupyter")
        for client in kernel.clients:
            client.close()
        self._kernels.pop(kernel.id, None)
        self._own.discard(kernel.key)

    def close(self) -> None:
        """End all clients, because the double stops."""
        for kernel in self._kernels.values():
            for client in kernel.clients:
                client.close()
