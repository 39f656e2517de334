"""The requests of the actions on sessions and their snapshots, with the field types of the platform's client."""

from __future__ import annotations

from pydantic import Field

from agentdouble.control_plane.listing import Filter, Paging
from agentdouble.control_plane.tool_requests import TosMountPoint
from agentdouble.control_plane.wire import EnvList, Moment, Seconds, Unit, Validity, Wire
from agentdouble.sandbox.session import LINES


class Image(Wire):
    """A separate image for the session; refused."""

    Command: str
    Image: str
    Port: int


class CreateSession(Wire):
    """The body of CreateSession."""

    ToolId: str
    UserSessionId: str | None = None
    Ttl: Validity | None = None
    TtlUnit: Unit | None = None
    ImageInfo: Image | None = None
    Envs: EnvList | None = None
    TosMountPoints: list[TosMountPoint] | None = None


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
