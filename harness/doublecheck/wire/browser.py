"""The browser of a session: its information, screenshots and actions (section 1, SBX-11)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from doublecheck.errors import AnswerError
from doublecheck.secret import Secret
from doublecheck.values.sandbox import BrowserInfo
from doublecheck.wire import calls
from doublecheck.wire.calls import Call, Request
from doublecheck.wire.data_plane import Endpoint, data_of, field_of

if TYPE_CHECKING:
    import httpx

Format = Literal["jpeg", "png"]


def info(endpoint: Endpoint) -> Call[BrowserInfo]:
    """Return the call that describes the browser, which is started if it does not run."""
    return Call(Request("GET", endpoint.at("/v1/browser/info")), _read_info)


def screenshot(endpoint: Endpoint, kind: Format | None) -> Call[bytes]:
    """Return the call that takes a picture of the active page."""
    chosen = "" if kind is None else f"&format={kind}"
    return Call(Request("GET", endpoint.at("/v1/browser/screenshot") + chosen), _read_picture)


def act(endpoint: Endpoint, action_type: str, fields: Mapping[str, Any]) -> Call[None]:
    """Return the call that performs one action of the mouse or the keyboard."""
    content = calls.json_content({"action_type": action_type, **fields})
    headers = {"Content-Type": "application/json"}
    return Call(Request("POST", endpoint.at("/v1/browser/actions"), headers, content), _read_done)


def _read_info(response: httpx.Response) -> BrowserInfo:
    data = data_of(response, calls.read_json(response))
    size = field_of(response, data, "viewport")
    return BrowserInfo(
        user_agent=field_of(response, data, "user_agent"),
        cdp_url=Secret(field_of(response, data, "cdp_url")),
        width=field_of(response, size, "width"),
        height=field_of(response, size, "height"),
    )


def _read_picture(response: httpx.Response) -> bytes:
    calls.refuse(response)
    if response.headers.get("content-type", "").startswith("image/"):
        return response.content
    data_of(response, calls.read_json(response))  # the JSON says why
    message = "The answer is not an image."
    raise AnswerError(message, status=response.status_code, body=response.text)


def _read_done(response: httpx.Response) -> None:
    """Read an action's answer, in the public sandbox's envelope or in its older, bare form."""
    document = calls.read_json(response)
    if isinstance(document, dict) and document.get("status") == "success":
        return
    data_of(response, document)
