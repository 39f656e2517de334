"""The sandbox instances of sessions, through the control plane: finding one, ending it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentdouble import invoke_tool
from agentdouble.code_tool import DEFAULT_AGENT, Invocation
from agentdouble.errors import EnvelopeError, PlatformError
from doublecheck.errors import AnswerError, RefusedError
from doublecheck.target.target import Target
from doublecheck.wire.calls import Call, Request

if TYPE_CHECKING:
    import httpx

_LIVING = ("creating", "starting", "ready", "paused")


def find(target: Target, user_id: str, session_id: str, when: dt.datetime) -> Call[str | None]:
    """Return the call that finds the living instance of a user's session, by its SessionId.

    Raises CredentialsMissingError.
    """
    name = Invocation(user_id, session_id, DEFAULT_AGENT).user_session_id
    body = {"Filters": [{"Name": "UserSessionId", "Values": [name]}]}
    return Call(_signed(target, "ListSessions", body, when), _read_found)


def destroy(target: Target, session_id: str, when: dt.datetime) -> Call[None]:
    """Return the call that ends an instance; ``session_id`` is its SessionId (``s-...``)."""
    return Call(_signed(target, "DeleteSession", {"SessionId": session_id}, when), _read_ended)


def _signed(target: Target, action: str, body: Mapping[str, Any], when: dt.datetime) -> Request:
    body = {"ToolId": target.sandbox_tool(), **body}
    signed = invoke_tool.build(body, target.address(), when, action=action)
    return Request(signed.method, signed.url, signed.headers, signed.body)


def _read_found(response: httpx.Response) -> str | None:
    listed = _read(response).get("SessionInfos") or ()
    living = (one for one in listed if str(one.get("Status", "")).lower() in _LIVING)
    return next((str(one["SessionId"]) for one in living), None)


def _read_ended(response: httpx.Response) -> None:
    _read(response)


def _read(response: httpx.Response) -> Mapping[str, Any]:
    try:
        return invoke_tool.read_result(response.status_code, response.content)[1]
    except PlatformError as error:
        raise RefusedError(
            str(error), status=error.status, body=response.text, code=error.code
        ) from None
    except EnvelopeError as error:
        raise AnswerError(str(error), status=error.status, body=response.text) from None
