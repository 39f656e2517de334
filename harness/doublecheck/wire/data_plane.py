"""The format of a session's data plane: its Endpoint, and the answers there (section 1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx

from doublecheck.core.notebook_repr import Secret
from doublecheck.errors import AnswerError, RefusedError
from doublecheck.values.executions import BashResult, BrowserInfo
from doublecheck.wire import calls, control_plane

STARTING = ("creating", "starting")  # the Status of a session without an Endpoint, in lower case


@dataclass(frozen=True)
class Endpoint:
    """The address of a session's data plane. Its query, which contains the token, is hidden."""

    url: str
    query: Secret

    def at(self, path: str) -> str:
        """Return the URL of a path of the data plane, with the query."""
        return f"{self.url.rstrip('/')}{path}?{self.query.reveal()}"


def read_command(response: httpx.Response) -> BashResult:
    """Return the result of a command. Raise RefusedError, or AnswerError if it is not one."""
    envelope, inner = control_plane.read_envelope(response)
    data = data_of(response, inner)
    return BashResult(
        status=field_of(response, data, "status"),
        exit_code=data.get("exit_code"),
        stdout=data.get("stdout") or "",
        stderr=data.get("stderr") or "",
        session_id=envelope.session_id,
        command=str(data.get("command", "")),
    )


@dataclass(frozen=True)
class Start:
    """A session that starts: it has no Endpoint yet."""

    session_id: str


def read_endpoint(response: httpx.Response) -> Endpoint | Start:
    """Return the Endpoint in an answer about a session. Raise AnswerError if it will have none."""
    if response.is_client_error:
        control_plane.read_action(response)  # raises RefusedError with the code
    document = calls.read_json(response)
    result = document.get("Result") if isinstance(document, dict) else None
    fields = result if isinstance(result, dict) else {}
    address, status = fields.get("Endpoint"), str(fields.get("Status", STARTING[0]))
    parts = urlsplit(address) if isinstance(address, str) else urlsplit("")
    if parts.hostname and parts.query:
        return Endpoint(f"{parts.scheme}://{parts.netloc}{parts.path}", Secret(parts.query))
    if fields.get("SessionId") and status.lower() in STARTING:
        return Start(str(fields["SessionId"]))
    message = "The session's answer has no Endpoint"
    message += f"; its Status is {status}." if "Status" in fields else "."
    raise AnswerError(message, status=response.status_code)


def read_upload(response: httpx.Response) -> str:
    document = calls.read_json(response)
    return str(field_of(response, data_of(response, document), "file_path"))


def read_download(response: httpx.Response) -> bytes:
    calls.refuse(response)
    return response.content


def data_of(response: httpx.Response, document: Any) -> Mapping[str, Any]:
    """Return the data of the public sandbox's envelope. Raise RefusedError for a failure."""
    if isinstance(document, dict) and document.get("success") is False:
        message = str(document.get("message", ""))
        raise RefusedError(message, status=response.status_code, body=response.text)
    data = document.get("data") if isinstance(document, dict) else None
    if not isinstance(data, dict):
        raise calls.wrong_answer(response, "The answer of the operation has no data.")
    return data


def field_of(response: httpx.Response, data: Mapping[str, Any], name: str) -> Any:
    """Return a field of the data. Raise AnswerError if it is missing."""
    if name in data:
        return data[name]
    raise calls.wrong_answer(response, f"The answer's data has no {name}.")


def read_info(response: httpx.Response) -> BrowserInfo:
    data = data_of(response, calls.read_json(response))
    size = field_of(response, data, "viewport")
    return BrowserInfo(
        user_agent=field_of(response, data, "user_agent"),
        cdp_url=Secret(field_of(response, data, "cdp_url")),
        width=field_of(response, size, "width"),
        height=field_of(response, size, "height"),
    )


def read_screenshot(response: httpx.Response) -> bytes:
    calls.refuse(response)
    if response.headers.get("content-type", "").startswith("image/"):
        return response.content
    data_of(response, calls.read_json(response))  # the JSON has the reason
    message = "The answer is not an image."
    raise calls.wrong_answer(response, message)
