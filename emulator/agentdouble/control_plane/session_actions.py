"""CreateSession, GetSession, ListSessions, SetSessionTtl, Pause-, Resume-, DeleteSession, logs."""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from agentdouble import faults
from agentdouble.control_plane import addresses, listing, session_metadata, wire
from agentdouble.control_plane.action_methods import ActionMethods, action
from agentdouble.control_plane.listing import Filter, Listed, Made
from agentdouble.core import ledger
from agentdouble.errors import InstanceEndedError, NotBuiltError
from agentdouble.journal.entries import note_unread
from agentdouble.sandbox.ended_sessions import EndedSession
from agentdouble.sandbox.readiness import Stage
from agentdouble.sandbox.session import SandboxSession
from agentdouble.sandbox.session_log import LINES, SessionLog
from agentdouble.sandbox.session_snapshots import SessionSnapshots
from agentdouble.sandbox.sessions import SandboxSessions
from agentdouble.sandbox.tools import Tools

LINGERS = dt.timedelta(minutes=5)

LivingStatus = Literal[Stage, "Paused"]
Status = Literal[LivingStatus, "Terminated", "Expired"]

_FIELDS = ("SessionId", "UserSessionId", "Status", "ToolType")
_FILTERS = {"Id": "SessionId", **dict(zip(_FIELDS, _FIELDS, strict=True))}


class Lasting(wire.Wire):
    """A body with a lifetime."""

    Ttl: wire.Validity | None = None
    TtlUnit: wire.Unit | None = None

    @property
    def lifetime(self) -> dt.timedelta | None:
        """The lifetime, if there is one; raises ActionError if it is out of limits."""
        if self.Ttl is None:
            return None
        return dt.timedelta(seconds=wire.ttl_in_seconds(self.Ttl, self.TtlUnit))


class CreateSession(Lasting):
    """The body of CreateSession."""

    ToolId: str
    UserSessionId: str | None = None
    ImageInfo: Any = None
    Envs: wire.EnvList | None = None
    Metadata: session_metadata.Entries | None = None
    TosMountPoints: list[Any] | None = None


class OneSession(wire.Wire):
    """The body of GetSession and PauseSession."""

    ToolId: str
    SessionId: str


class DeleteSession(wire.Wire):
    """The body of DeleteSession."""

    ToolId: str | None = None
    SessionId: str


class ResumeSession(OneSession, Lasting):
    """The body of ResumeSession."""


class SetSessionTtl(ResumeSession):
    """The body of SetSessionTtl."""

    Ttl: wire.Validity


class GetSessionLogs(OneSession):
    """The body of GetSessionLogs; ``Limit`` is a number of lines."""

    Limit: int = Field(100, ge=1, le=LINES)


class ListSessions(Made):
    """The body of ListSessions; sessions without all of the Metadata are left out."""

    ToolId: str
    Metadata: session_metadata.Entries | None = None
    ExpireTimeAfter: wire.Moment | None = None
    ExpireTimeBefore: wire.Moment | None = None
    Filters: list[Filter] | None = None


class CreateSessionSnapshot(OneSession):
    """The body of CreateSessionSnapshot."""

    RetentionCount: int | None = Field(None, ge=1)


class OneSnapshot(wire.Wire):
    """The body of GetSessionSnapshot and DeleteSessionSnapshot."""

    ToolId: str
    SnapshotId: str


class ResumeSessionFromSnapshot(OneSnapshot):
    """The body of ResumeSessionFromSnapshot; ``Ttl`` is in seconds."""

    CreateNewInstance: bool | None = None
    Ttl: wire.Seconds | None = None


class ListSessionSnapshots(Made):
    """The body of ListSessionSnapshots."""

    ToolId: str
    SessionId: str | None = None
    UserSessionId: str | None = None
    SnapshotType: str | None = None


class ShownSession(TypedDict):
    """A session of a tool."""

    SessionId: str
    UserSessionId: str
    ToolType: str
    Status: Status
    CreatedAt: str
    ExpireAt: str
    Endpoint: str
    InternalEndpoint: str
    Metadata: list[session_metadata.ShownEntry]


class SessionActions(ActionMethods):
    """The actions on sessions of the sandbox."""

    def __init__(
        self, sessions: SandboxSessions, snapshots: SessionSnapshots, tools: Tools
    ) -> None:
        self._sessions = sessions
        self._snapshots = snapshots
        self._tools = tools

    @action(
        "CreateSession",
        CreateSession,
        SessionId=str,
        UserSessionId=str,
        Endpoint=str,
        InternalEndpoint=str,
    )
    async def create(self, request: CreateSession) -> dict[str, Any]:
        """Create a session, or return the living one with the same UserSessionId."""
        if request.ImageInfo is not None:
            raise NotBuiltError("A session's own image (ImageInfo)")
        if request.TosMountPoints:
            raise NotBuiltError("Object storage in a sandbox (TosMountPoints)")
        name = request.UserSessionId
        if name is None:
            name = f"u-{secrets.token_hex(10)}"
        wire.check_user_session_id(name)
        lifetime = request.lifetime
        ttl_s = None if lifetime is None else int(lifetime.total_seconds())
        self._tools.get(request.ToolId)
        given = [field for field in ("Envs", "Metadata") if getattr(request, field)]
        if given and await self._sessions.find(request.ToolId, name) is not None:
            note_unread(given)  # its environment and metadata already exist
        session = await self._sessions.get_or_create(
            request.ToolId,
            name,
            ttl_s,
            wire.variables(request.Envs),
            session_metadata.by_key(request.Metadata),
        )
        fault = faults.injected_fault()
        has_begun = session.readiness.begin(fails=fault is not None)
        if has_begun and fault is not None:
            fault.happened()
        return {
            "SessionId": session.id,
            "UserSessionId": name,
            "Endpoint": _endpoint(session),
            "InternalEndpoint": "",
        }

    @action("GetSession", OneSession, ShownSession)
    async def get(self, request: OneSession) -> dict[str, Any]:
        """Return a session; one that starts is a stage further at the next call."""
        self._tools.get(request.ToolId)
        try:
            session = await self._look_up(request)
        except InstanceEndedError:
            ended = self._sessions.look_up_ended(request.SessionId, request.ToolId)
            if not self._is_shown(ended, ledger.choose("U-TOOL-SESSION-ENDED")):
                raise
            return dict(self._details(ended))
        details = dict(self._details(session))
        session.readiness.advance()
        return details

    @action("ListSessions", ListSessions, SessionInfos=list[ShownSession], NextToken=str)
    async def list(self, request: ListSessions) -> dict[str, Any]:
        """Return the sessions of a tool that pass every filter, the oldest first.

        As in GetSession, one that starts is a stage further at the next call.
        """
        matches = listing.matching(request.Filters, _FILTERS)
        self._tools.get(request.ToolId)
        self._sessions.destroy_due()
        listed = [
            row
            for row in self._listed(request.ToolId, session_metadata.by_key(request.Metadata))
            if matches(row.item)
            and request.has(row.item)
            and listing.within(
                row.item["ExpireAt"], request.ExpireTimeAfter, request.ExpireTimeBefore
            )
        ]
        items, token = listing.page(request, listed)
        for item in items:
            if (session := self._sessions.by_id(item["SessionId"])) is not None:
                session.readiness.advance()
        return {"SessionInfos": items, "NextToken": token}

    @action("SetSessionTtl", SetSessionTtl, ToolId=str, SessionId=str, ExpireAt=str)
    async def set_ttl(self, request: SetSessionTtl) -> dict[str, Any]:
        """Set the lifetime of a session to Ttl from now on."""
        lifetime = request.lifetime
        session = await self._look_up(request)
        if lifetime is not None:
            self._sessions.set_ttl(session, lifetime)
        return {
            "ToolId": request.ToolId,
            "SessionId": session.id,
            "ExpireAt": wire.stamp(session.lifetime.deadline),
        }

    @action("PauseSession", OneSession, SessionId=str, Status=str)
    async def pause(self, request: OneSession) -> dict[str, Any]:
        """Pause a session, so that it runs nothing until it is resumed."""
        session = await self._look_up(request)
        self._sessions.pause(session)
        return {"SessionId": session.id, "Status": _living_status(session)}

    @action("ResumeSession", ResumeSession, SessionId=str, Status=str, ExpireAt=str)
    async def resume(self, request: ResumeSession) -> dict[str, Any]:
        """Resume a paused session; with Ttl, also set its lifetime from now on."""
        lifetime = request.lifetime
        session = await self._look_up(request)
        self._sessions.resume(session)
        if lifetime is not None:
            self._sessions.set_ttl(session, lifetime)
        return {
            "SessionId": session.id,
            "Status": _living_status(session),
            "ExpireAt": wire.stamp(session.lifetime.deadline),
        }

    @action("DeleteSession", DeleteSession, SessionId=str)
    async def delete(self, request: DeleteSession) -> dict[str, Any]:
        """End a session; return when its processes have ended."""
        session = await self._sessions.look_up(request.SessionId, request.ToolId)
        await self._sessions.destroy(session, "deleted by caller")
        await self._snapshots.note_deletion(session.id)
        return {"SessionId": session.id}

    @action("GetSessionLogs", GetSessionLogs, Logs=str)
    async def logs(self, request: GetSessionLogs) -> dict[str, Any]:
        """Return the log of a session, the last Limit lines."""
        try:
            log: SessionLog | None = (await self._look_up(request)).log
        except InstanceEndedError:  # its log is kept for a while
            log = self._sessions.look_up_ended(request.SessionId, request.ToolId).log
            if log is None:
                raise
        return {"Logs": log.text(request.Limit) if log else ""}

    async def _look_up(self, request: OneSession) -> SandboxSession:
        return await self._sessions.look_up(request.SessionId, request.ToolId)

    def _listed(self, tool_id: str, wanted: Mapping[str, str]) -> Iterator[Listed]:
        sessions: list[SandboxSession | EndedSession] = [*self._sessions.of_tool(tool_id)]
        choice = ledger.choose("U-TOOL-SESSION-ENDED")
        if choice != "not-found":
            sessions += (
                ended
                for ended in self._sessions.ended()
                if ended.key.tool_id == tool_id and self._is_shown(ended, choice)
            )
        for session in sessions:
            if wanted.items() <= session.metadata.items():
                yield Listed(session.id, session.created_at, dict(self._details(session)))

    def _is_shown(self, ended: EndedSession, choice: str) -> bool:
        """Return whether GetSession and ListSessions show a session that has ended."""
        return choice == "terminated" or (
            choice == "lingers" and self._sessions.since(ended) < LINGERS
        )

    def _details(self, session: SandboxSession | EndedSession) -> ShownSession:
        return {
            "SessionId": session.id,
            "UserSessionId": session.key.user_session_id,
            "ToolType": self._tools.get(session.key.tool_id).type,
            "Status": _status(session),
            "CreatedAt": wire.stamp(session.created_at),
            "ExpireAt": wire.stamp(
                session.lifetime.deadline if isinstance(session, SandboxSession) else session.at
            ),
            "Endpoint": _endpoint(session) if isinstance(session, SandboxSession) else "",
            "InternalEndpoint": "",
            "Metadata": session_metadata.shown(session.metadata),
        }


def _endpoint(session: SandboxSession) -> str:
    return addresses.endpoint(session) if session.readiness.stage == "Ready" else ""


def _status(session: SandboxSession | EndedSession) -> Status:
    if isinstance(session, SandboxSession):
        return _living_status(session)
    lingers = ledger.choose("U-TOOL-SESSION-ENDED") == "lingers"
    return "Expired" if lingers and session.has_expired else "Terminated"


def _living_status(session: SandboxSession) -> LivingStatus:
    paused = (
        session.lifetime.state == "paused" and ledger.choose("U-TOOL-SESSION-PAUSED") == "paused"
    )
    return "Paused" if paused else session.readiness.stage
