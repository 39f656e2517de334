"""The browser of a session: its information and screenshots (section 1, SBX-11)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

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
