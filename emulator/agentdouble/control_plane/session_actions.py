"""CreateSession, GetSession, ListSessions, SetSessionTtl, Pause-, Resume-, DeleteSession, logs."""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from agentdouble import journal, ledger
from agentdouble.control_plane import listing
from agentdouble.control_plane.described import action, fields
from agentdouble.control_plane.endpoints import endpoint
from agentdouble.control_plane.listing import Filter, Listed, Paging
from agentdouble.control_plane.routes import Action
from agentdouble.control_plane.wire import (
    EnvList,
    Moment,
    Seconds,
    Unit,
    Validity,
    Wire,
    check_user_session_id,
    read,
    stamp,
    ttl_in_seconds,
    variables,
)
from agentdouble.errors import InstanceEndedError, NotBuiltError
from agentdouble.sandbox.ended_instances import EndedInstance
from agentdouble.sandbox.instance import Instance
from agentdouble.sandbox.instances import Instances
from agentdouble.sandbox.session import LINES, SessionLog
from agentdouble.sandbox.tools import Tools


class CreateSession(Wire):
    """The body of CreateSession."""

    ToolId: str
    UserSessionId: str | None = None
    Ttl: Validity | None = None
    TtlUnit: Unit | None = None
    ImageInfo: Any = None
    Envs: EnvList | None = None
    TosMountPoints: list[Any] | None = None


class OneSession(Wire):
    """The body of GetSession and PauseSession."""

    ToolId: str
    SessionId: str


class DeleteSession(Wire):
    """The body of DeleteSession."""

    ToolId: str | None = None
    SessionId: str


class SetSessionTtl(OneSession):
    """The body of SetSessionTtl."""

    Ttl: Validity
    TtlUnit: Unit | None = None


class ResumeSession(OneSession):
    """The body of ResumeSession."""

    Ttl: Validity | None = None
    TtlUnit: Unit | None = None


class GetSessionLogs(OneSession):
    """The body of GetSessionLogs; ``Limit`` is a number of lines."""

    Limit: int = Field(100, ge=1, le=LINES)


class ListSessions(Paging):
    """The body of ListSessions."""

    ToolId: str
    CreateTimeAfter: Moment | None = None
    CreateTimeBefore: Moment | None = None
    ExpireTimeAfter: Moment | None = None
    ExpireTimeBefore: Moment | None = None
    Filters: list[Filter] | None = None


class CreateSessionSnapshot(OneSession):
    """The body of CreateSessionSnapshot."""

    RetentionCount: int | None = Field(None, ge=1)


class OneSnapshot(Wire):
    """The body of GetSessionSnapshot and DeleteSessionSnapshot."""

    ToolId: str
    SnapshotId: str


class ResumeSessionFromSnapshot(OneSnapshot):
    """The body of ResumeSessionFromSnapshot; ``Ttl`` is in seconds."""

    CreateNewInstance: bool | None = None
    Ttl: Seconds | None = None


class ListSessionSnapshots(Paging):
    """The body of ListSessionSnapshots."""

    ToolId: str
    SessionId: str | None = None
    UserSessionId: str | None = None
    SnapshotType: str | None = None
    CreateTimeAfter: Moment | None = None
    CreateTimeBefore: Moment | None = None


_FILTERS = {
    "Id": "SessionId",
    "SessionId": "SessionId",
    "UserSessionId": "UserSessionId",
    "Status": "Status",
    "ToolType": "ToolType",
}


class ShownSession(TypedDict):
    """A session of a tool."""

    SessionId: str
    UserSessionId: str
    ToolType: str
    Status: Literal["Ready", "Paused", "Terminated"]
    CreatedAt: str
    ExpireAt: str
    Endpoint: str
    InternalEndpoint: str


_Created = fields(
    "CreateSessionResult", SessionId=str, UserSessionId=str, Endpoint=str, InternalEndpoint=str
)
_Listed = fields("ListSessionsResult", SessionInfos=list[ShownSession], NextToken=str)
_Set = fields("SetSessionTtlResult", ToolId=str, SessionId=str, ExpireAt=str)
_Paused = fields("PauseSessionResult", SessionId=str, Status=str)
_Resumed = fields("ResumeSessionResult", SessionId=str, Status=str, ExpireAt=str)
_Deleted = fields("DeleteSessionResult", SessionId=str)
_Logs = fields("GetSessionLogsResult", Logs=str)


class SessionActions:
    """The actions on sessions; a session is an instance of a tool's sandbox."""

    def __init__(self, instances: Instances, tools: Tools) -> None:
        self._instances = instances
        self._tools = tools

    def by_name(self) -> Mapping[str, Action]:
        """Return the actions by their names on the platform."""
        return {
            "CreateSession": self.create,
            "GetSession": self.get,
            "ListSessions": self.list,
            "SetSessionTtl": self.set_ttl,
            "PauseSession": self.pause,
            "ResumeSession": self.resume,
            "DeleteSession": self.delete,
            "GetSessionLogs": self.logs,
        }

    @action(CreateSession, _Created)
    async def create(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create a session, or return the living one with the same UserSessionId."""
        request = read(CreateSession, body)
        _refuse_what_would_mislead(request)
        name = request.UserSessionId
        if name is None:
            name = f"u-{secrets.token_hex(10)}"
        check_user_session_id(name)
        ttl_s = None if request.Ttl is None else ttl_in_seconds(request.Ttl, request.TtlUnit)
        self._tools.get(request.ToolId)
        if request.Envs and await self._instances.find(request.ToolId, name) is not None:
            journal.note_unread(["Envs"])  # its environment already exists
        envs = variables(request.Envs)
        instance = await self._instances.get_or_create(request.ToolId, name, ttl_s, envs)
        return {
            "SessionId": instance.id,
            "UserSessionId": name,
            "Endpoint": endpoint(instance),
            "InternalEndpoint": "",
        }

    @action(OneSession, ShownSession)
    async def get(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return a session."""
        request = read(OneSession, body)
        self._tools.get(request.ToolId)
        try:
            return dict(self._shown(await self._look_up(request)))
        except InstanceEndedError:
            if not _ended_are_shown():
                raise
        ended = self._instances.look_up_ended(request.SessionId, request.ToolId)
        return dict(self._shown(ended))

    @action(ListSessions, _Listed)
    async def list(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the sessions of a tool that pass every filter, the oldest first."""
        request = read(ListSessions, body)
        matches = listing.matching(request.Filters, _FILTERS)
        self._tools.get(request.ToolId)
        self._instances.destroy_due()
        listed = [
            one
            for one in self._listed(request.ToolId)
            if matches(one.item)
            and listing.within(
                one.item["CreatedAt"], request.CreateTimeAfter, request.CreateTimeBefore
            )
            and listing.within(
                one.item["ExpireAt"], request.ExpireTimeAfter, request.ExpireTimeBefore
            )
        ]
        items, token = listing.page(request, listed)
        return {"SessionInfos": items, "NextToken": token}

    @action(SetSessionTtl, _Set)
    async def set_ttl(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Set the lifetime of a session to Ttl from now on."""
        request = read(SetSessionTtl, body)
        ttl = _ttl(request.Ttl, request.TtlUnit)
        instance = await self._look_up(request)
        self._instances.set_ttl(instance, ttl)
        return {
            "ToolId": request.ToolId,
            "SessionId": instance.id,
            "ExpireAt": stamp(instance.deadline),
        }

    @action(OneSession, _Paused)
    async def pause(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Pause a session, so that it runs nothing until it is resumed."""
        request = read(OneSession, body)
        instance = await self._look_up(request)
        self._instances.pause(instance)
        return {"SessionId": instance.id, "Status": _status(instance)}

    @action(ResumeSession, _Resumed)
    async def resume(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Resume a paused session; with Ttl, also set its lifetime from now on."""
        request = read(ResumeSession, body)
        ttl = None if request.Ttl is None else _ttl(request.Ttl, request.TtlUnit)
        instance = await self._look_up(request)
        self._instances.resume(instance)
        if ttl is not None:
            self._instances.set_ttl(instance, ttl)
        return {
            "SessionId": instance.id,
            "Status": _status(instance),
            "ExpireAt": stamp(instance.deadline),
        }

    @action(DeleteSession, _Deleted)
    async def delete(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """End a session; return when its processes have ended."""
        request = read(DeleteSession, body)
        instance = await self._instances.look_up(request.SessionId, request.ToolId)
        await self._instances.destroy(instance, "deleted by caller")
        return {"SessionId": instance.id}

    @action(GetSessionLogs, _Logs)
    async def logs(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the log of a session, the last Limit lines."""
        request = read(GetSessionLogs, body)
        log = await self._log(request)
        return {"Logs": log.text(request.Limit)}

    async def _log(self, request: OneSession) -> SessionLog:
        """Return the log of a session, which is kept for a while after its end."""
        try:
            return (await self._look_up(request)).log
        except InstanceEndedError:
            log = self._instances.look_up_ended(request.SessionId, request.ToolId).log
            if log is None:
                raise
            return log

    async def _look_up(self, request: OneSession) -> Instance:
        return await self._instances.look_up(request.SessionId, request.ToolId)

    def _listed(self, tool_id: str) -> Iterator[Listed]:
        sessions: list[Instance | EndedInstance] = [*self._instances.of_tool(tool_id)]
        if _ended_are_shown():
            sessions += (one for one in self._instances.ended() if one.key.tool_id == tool_id)
        for one in sessions:
            yield Listed(one.id, one.created_at, dict(self._shown(one)))

    def _shown(self, one: Instance | EndedInstance) -> ShownSession:
        return {
            "SessionId": one.id,
            "UserSessionId": one.key.user_session_id,
            "ToolType": self._tools.get(one.key.tool_id).type,
            "Status": _status(one) if isinstance(one, Instance) else "Terminated",
            "CreatedAt": stamp(one.created_at),
            "ExpireAt": stamp(one.deadline if isinstance(one, Instance) else one.at),
            "Endpoint": endpoint(one) if isinstance(one, Instance) else "",
            "InternalEndpoint": "",
        }


def _refuse_what_would_mislead(request: CreateSession) -> None:
    if request.ImageInfo is not None:
        raise NotBuiltError("A session's own image (ImageInfo)")
    if request.TosMountPoints:
        raise NotBuiltError("Object storage in a sandbox (TosMountPoints)")


def _ttl(ttl: int, unit: Unit | None) -> dt.timedelta:
    return dt.timedelta(seconds=ttl_in_seconds(ttl, unit))


def _status(instance: Instance) -> Literal["Ready", "Paused"]:
    paused = instance.state == "paused" and ledger.choose("U-TOOL-SESSION-PAUSED") == "paused"
    return "Paused" if paused else "Ready"


def _ended_are_shown() -> bool:
    return ledger.choose("U-TOOL-SESSION-ENDED") == "terminated"
