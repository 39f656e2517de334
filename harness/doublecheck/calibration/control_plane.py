"""Probes of the control plane: signatures, tools, and the fields of sessions."""

from __future__ import annotations

import datetime as dt
import json

from agentdouble.core import invoke_tool
from doublecheck.calibration.probe import probe
from doublecheck.calibration.probing import (
    TTL_S,
    ActionAnswer,
    NotSettledError,
    Probing,
    one_of,
    unlike,
)
from doublecheck.calibration.sessions import moment
from doublecheck.wire.calls import Request

_SHORT_S = 30
_LINGERS_S = 310


@probe("U-SIGNING", "control_plane")
def signing(at: Probing) -> str:
    """Request a tool, signed and unsigned."""
    body = {"ToolId": at.tool_id}
    at.act("GetTool", **body).ok()
    url = f"{at.platform.target.control_plane}/?Action=GetTool&Version={invoke_tool.VERSION}"
    headers = {"Content-Type": "application/json"}
    answer = at.platform.send(Request("POST", url, headers, json.dumps(body).encode()))
    if answer.is_success:
        raise unlike("the unsigned request was not refused", answer.text)
    return "hmac-sha256"


@probe("U-USER-SESSION-CHARS", "control_plane", writes=True)
def characters(at: Probing) -> str:
    """Create a session whose name contains a space and a dot."""
    _create(at, f"{at.token}-plain").ok()
    return "published" if _create(at, f"{at.token} .").error else "printable"


@probe("U-TOOL-NAMES", "control_plane", writes=True)
def tool_names(at: Probing) -> str:
    """Create two tools with the same name."""
    answers = []
    for _ in range(2):
        answer = at.act("CreateTool", Name=f"dc-{at.token[:12]}", ToolType="CodeEnv")
        answers.append(answer)
        _delete(at, answer)
    answers[0].ok()
    return "unique" if answers[1].error else "any"


@probe("U-TOOL-TTL-UNIT", "control_plane", writes=True)
def ttl_unit(at: Probing) -> str:
    """Read the lifetime of a session that was created with a Ttl but no unit."""
    session = _create(at, at.token, Ttl=TTL_S).ok()["SessionId"]
    details = at.act("GetSession", ToolId=at.tool_id, SessionId=session).ok()
    lives = moment(details, "ExpireAt") - moment(details, "CreatedAt")
    for unit, name in ((1, "second"), (60, "minute")):
        if abs(lives - dt.timedelta(seconds=unit * TTL_S)) <= dt.timedelta(seconds=5):
            return name
    raise unlike(f"with the Ttl {TTL_S} its lifetime is", lives)


@probe("U-TOOL-TTL-LIMITS", "control_plane", writes=True)
def ttl_limits(at: Probing) -> str:
    """Create a session with a Ttl of two minutes, and one with a Ttl of half a minute."""
    _create(at, f"{at.token}-long").ok()
    short = _create(at, f"{at.token}-short", Ttl=_SHORT_S, TtlUnit="second")
    return "from-60" if short.error else "from-1"


@probe("U-TOOL-SESSION-READY", "control_plane", writes=True)
def session_ready(at: Probing) -> str:
    """Look at a session that has just been created."""
    created = _create(at, at.token).ok()
    session = {"ToolId": at.tool_id, "SessionId": created["SessionId"]}
    status = at.act("GetSession", **session).ok().get("Status")
    at_once = "ready" if created.get("Endpoint") else "creating"
    answers = {"Ready": at_once, "Creating": "creating", "Starting": "creating"}
    return one_of(answers, status, "its Status is")


@probe("U-TOOL-SESSION-PAUSED", "control_plane", writes=True)
def session_paused(at: Probing) -> str:
    """Look at a paused session."""
    session = {"ToolId": at.tool_id, "SessionId": _create(at, at.token).ok()["SessionId"]}
    at.act("PauseSession", **session).ok()
    status = at.act("GetSession", **session).ok().get("Status")
    return one_of({"Paused": "paused", "Ready": "ready"}, status, "its Status is")


@probe("U-TOOL-SESSION-ENDED", "control_plane", writes=True, slow_s=_LINGERS_S)
def session_ended(at: Probing) -> str:
    """Look at a session that has been deleted, and again some minutes later."""
    session = {"ToolId": at.tool_id, "SessionId": _create(at, at.token).ok()["SessionId"]}
    at.act("DeleteSession", **session).ok()
    answer = at.act("GetSession", **session)
    if answer.error:
        return "not-found"
    if answer.result.get("Status") != "Terminated":
        raise unlike("its Status is", answer.result.get("Status"))
    at.patience.wait(_LINGERS_S)
    return "lingers" if at.act("GetSession", **session).error else "terminated"


def _create(at: Probing, name: str, **fields: object) -> ActionAnswer:
    """Create a session that is deleted at the end."""
    lifetime = fields or {"Ttl": TTL_S, "TtlUnit": "second"}
    answer = at.act("CreateSession", ToolId=at.tool_id, UserSessionId=name, **lifetime)
    session = answer.result.get("SessionId")
    if session:
        at.finally_(lambda: at.act("DeleteSession", ToolId=at.tool_id, SessionId=session))
    return answer


def _delete(at: Probing, answer: ActionAnswer) -> None:
    tool = answer.result.get("ToolId")
    if tool:
        at.finally_(lambda: at.act("DeleteTool", ToolId=tool).ok())
    elif not answer.error:
        raise NotSettledError("CreateTool returned no ToolId")
