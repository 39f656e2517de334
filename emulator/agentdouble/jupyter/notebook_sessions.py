"""Jupyter's own sessions: which notebook or console uses which kernel.

JupyterLab has them in its server. Clients without one, such as VS Code, begin every kernel so.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from agentdouble.errors import SandboxError
from agentdouble.jupyter.session_kernel import SessionKernel
from agentdouble.jupyter.session_kernels import SessionKernels

DEFAULT = "python3"


class Chosen(BaseModel):
    """A kernel that runs, by its id, or a new one, by the name of a kernelspec."""

    model_config = ConfigDict(strict=True)

    id: str | None = None
    name: str | None = None


class NewSession(BaseModel):
    """The body of POST /api/sessions."""

    model_config = ConfigDict(strict=True)

    path: str
    type: str
    name: str | None = None
    kernel: Chosen = Field(default_factory=Chosen)


class SessionChange(BaseModel):
    """The body of PATCH /api/sessions/ID: what changes."""

    model_config = ConfigDict(strict=True)

    path: str | None = None
    type: str | None = None
    name: str | None = None
    kernel: Chosen | None = None


@dataclass(frozen=True)
class NotebookSession:
    """A notebook or console at a path, and the kernel that it uses."""

    id: str
    path: str
    type: str
    name: str
    kernel: SessionKernel

    def to_dict(self) -> dict[str, Any]:
        """Return Jupyter's model of the session."""
        place = {"path": self.path, "name": self.name}
        own = {"id": self.id, **place, "type": self.type, "kernel": self.kernel.to_dict()}
        return {**own, "notebook": place} if self.type == "notebook" else own


class NotebookSessions:
    """The sessions whose kernels are listed; a path has one at most."""

    def __init__(self, kernels: SessionKernels) -> None:
        self._kernels = kernels
        self._sessions: dict[str, NotebookSession] = {}

    def all(self) -> list[NotebookSession]:
        """Return the sessions; those whose kernel has ended are forgotten."""
        listed = {kernel.id for kernel in self._kernels.all()}
        self._sessions = {it.id: it for it in self._sessions.values() if it.kernel.id in listed}
        return [*self._sessions.values()]

    def find(self, id_: str) -> NotebookSession:
        """Return a session by its id; raise SandboxError."""
        for session in self.all():
            if session.id == id_:
                return session
        message = f"There is no session {id_[:80]!r}: its kernel may have ended."
        raise SandboxError(message, "InvalidResource.NotFound", 404)

    async def begin(self, new: NewSession) -> NotebookSession:
        """Return the session of a path, begun if there is none.

        Raises SandboxError and the errors of a kernel's start.
        """
        for session in self.all():
            if session.path == new.path:
                return session
        kernel = await self._kernel(new.kernel)
        id_, name = str(uuid.uuid4()), new.name or ""
        self._sessions[id_] = session = NotebookSession(id_, new.path, new.type, name, kernel)
        return session

    async def _kernel(self, chosen: Chosen) -> SessionKernel:
        if chosen.id is not None:
            return self._kernels.find(chosen.id)
        return await self._kernels.start(chosen.name or DEFAULT)

    async def change(self, session: NotebookSession, change: SessionChange) -> NotebookSession:
        """Change a session; raise the errors of ``begin``. A kernel that it no longer uses ends."""
        fields = change.model_dump(exclude_none=True, exclude={"kernel"})
        kernel = session.kernel
        if change.kernel is not None and (change.kernel.id or change.kernel.name) is not None:
            kernel = await self._kernel(change.kernel)
        self._sessions[session.id] = changed = replace(session, kernel=kernel, **fields)
        if kernel.id != session.kernel.id:
            await self._kernels.delete(session.kernel)
        return changed

    async def end(self, session: NotebookSession) -> None:
        """Forget a session, and end its kernel if Jupyter made it."""
        self._sessions.pop(session.id, None)
        await self._kernels.delete(session.kernel)
