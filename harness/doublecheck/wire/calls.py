"""A call: a request as a value, and the function that reads its answer."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from types import UnionType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar
from urllib.parse import urlsplit

from doublecheck.core.notebook_repr import without_token
from doublecheck.errors import AnswerError, ArgumentError, DoubleCheckError, RefusedError
from doublecheck.target.facts import Surface, surface_of, variable
from doublecheck.target.target import Target

if TYPE_CHECKING:
    import httpx

    from doublecheck.wire.exchanges import Exchange

T = TypeVar("T")

_QUOTED_CHARS = 500  # a framework's error may begin with a paragraph of advice
_UNREADABLE = (LookupError, TypeError, ValueError, AttributeError)
# gateways answer with a page; its title gives the reason
_TITLE = re.compile(r"^\s*<(?:!doctype|html)\b.*?<title>([^<]+)</title>", re.I | re.S)
_TITLED_CHARS = 5000
_NO_API_KEY = "/_emulator/"  # takes the double's token, as its message says
_SENDS_KEY = f"set {variable('api_key')}, or pass api_key to connect()"
_CURES: Mapping[type, str] = {
    bytes: ": decode it first",
    set: ": make a list of it",
    dt.date: ": send its isoformat()",
    PurePath: ": send its str()",
}


def media_type(answer: httpx.Response | Exchange) -> str:
    """Return the media type of an answer in lower case, without parameters."""
    content_type: str = answer.headers.get("content-type", "")
    return content_type.partition(";")[0].strip().lower()


def is_json(response: httpx.Response) -> bool:
    """Whether an answer is JSON, by its Content-Type."""
    kind = media_type(response)
    return kind == "application/json" or kind.endswith("+json")


@dataclass(frozen=True, repr=False)
class Request:
    """One HTTP request. A ``timeout_s`` of None means the platform's own.

    Raises ArgumentError for an argument of another type.
    """

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    content: bytes = field(default=b"", repr=False)
    timeout_s: float | None = None

    def __post_init__(self) -> None:
        _require(self.method, str, "method", "text")
        for name, value in self.headers.items():
            _require(name, str, "The name of a header", "text")
            _require(value, str, f"The value of the header {name}", "text")
            if not name.isascii():
                raise ArgumentError(f"The name of a header must be ASCII, not {name!r:.80}.")
        _require(self.content, bytes, "content", "bytes")
        if self.timeout_s is not None:
            _require(self.timeout_s, int | float, "timeout_s", "a number of seconds")

    def __repr__(self) -> str:
        return f"<Request {self.method} {without_token(self.url)}>"


def _require(value: object, kind: type | UnionType, name: str, taken: str) -> None:
    if not isinstance(value, kind):
        raise ArgumentError(f"{name} must be {taken}, not {value!r:.80}.")


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request, and the function that reads its answer."""

    request: Request
    reader: Callable[[httpx.Response], T]

    def read(self, response: httpx.Response) -> T:
        """Return the value of an answer. Raise AnswerError for an answer in another format."""
        try:
            return self.reader(response)
        except DoubleCheckError:
            raise
        except _UNREADABLE as error:
            raise wrong_answer(
                response,
                f"{route(response)} returned an unexpected format ({error!r:.100}): "
                f"{_quoted(response.text)}",
            ) from error


def request(
    target: Target,
    method: str,
    path: str,
    *,
    surface: Surface | None = None,
    headers: Mapping[str, str] | None = None,
    content: bytes = b"",
    timeout_s: float | None = None,
) -> Request:
    """Return a request to a surface, by default the path's, with its API key."""
    _require(path, str, "path", "text")
    if path[:1] not in ("/", "?", ""):
        raise ArgumentError(f"A path must begin with a slash: {path!r}.")
    addressed = surface or surface_of(path)
    token = target.token if path.startswith("/_emulator/") else None
    key = token or target.key_of(addressed)
    authorization = {} if key is None else {"Authorization": f"Bearer {key.reveal()}"}
    all_headers = {**authorization, **mapping_of_headers(headers)}
    return Request(method, target.at(addressed) + path, all_headers, content, timeout_s)


def mapping_of_headers(headers: Mapping[str, str] | None) -> Mapping[str, str]:
    """Return headers that a caller gave, or none. Raise ArgumentError unless they are a mapping."""
    _require(headers or {}, Mapping, "headers", "a mapping of names to values")
    return headers or {}


def json_request(target: Target, method: str, path: str, document: Any) -> Request:
    """Return a request to a path's surface that carries JSON."""
    headers = {"Content-Type": "application/json"}
    return request(target, method, path, headers=headers, content=json_content(document))


def json_content(document: Any) -> bytes:
    """Return a document as the JSON that a request carries. Raise ArgumentError."""
    try:
        return json.dumps(document, default=_refuse).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(f"The value cannot be sent as JSON: {error}.") from None


def _refuse(value: object) -> NoReturn:
    cure = next((cure for kind, cure in _CURES.items() if isinstance(value, kind)), "")
    raise TypeError(f"{value!r:.60} is of type {type(value).__name__}{cure}")


def json_or_none(text: str | bytes) -> Any:
    """Return the JSON of a text, or None if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def read_json(response: httpx.Response) -> Any:
    """Return the JSON of an answer. Raise RefusedError for an HTTP error, else AnswerError."""
    refuse(response)
    try:
        return response.json()
    except ValueError:
        raise wrong_answer(
            response, f"{route(response)} did not return JSON: {_quoted(response.text)}"
        ) from None


def wrong_answer(response: httpx.Response, message: str) -> AnswerError:
    """Return the error for an answer in the wrong format."""
    return AnswerError(message, status=response.status_code, body=_text(response))


def refused_by_json_rpc(response: httpx.Response, error: Mapping[str, Any]) -> RefusedError:
    """Return the RefusedError for a JSON-RPC error."""
    message, code = str(error.get("message")).rstrip("."), str(error.get("code"))
    status = "" if response.is_success else f"HTTP {response.status_code} and "
    return RefusedError(
        f"{route(response)} returned {status}error {code}: {_quoted(message)}",
        status=response.status_code,
        body=_text(response),
        code=code,
    )


def refuse_by_json_rpc(response: httpx.Response) -> None:
    """Raise RefusedError for a JSON-RPC error that is sent with a status of the client's errors."""
    document: Any = json_or_none(response.content) if response.is_client_error else None
    error = document.get("error") if isinstance(document, dict) else None
    if isinstance(error, dict) and "jsonrpc" in document:
        raise refused_by_json_rpc(response, error)


def _text(response: httpx.Response) -> str:
    try:
        return response.text
    except RuntimeError:  # httpx.ResponseNotRead: a stream, whose event is in the message
        return ""


def refuse(response: httpx.Response) -> None:
    """Raise RefusedError if an answer's status is an error or a redirect."""
    if response.is_success:
        return
    raise RefusedError(
        f"{route(response)} returned HTTP {response.status_code}: {_reason(response)}",
        status=response.status_code,
        body=response.text,
    )


def _reason(response: httpx.Response) -> str:
    """Return the reason that an answer gives, and a remedy if one is known."""
    if response.is_redirect:
        return f"a redirect to {without_token(response.headers['Location'])}, which is not followed"
    message = _message(response)
    if message:
        return _quoted(message.rstrip(".")) + _remedy(response)
    if title := _TITLE.search(response.text[:_TITLED_CHARS]):
        return _quoted(f"a page, {' '.join(title[1].split())!r}")
    return _quoted(response.text) or "an empty body"


def _remedy(response: httpx.Response) -> str:
    """Return how to send the API key that an answer demands, or nothing."""
    path = urlsplit(str(response.request.url)).path
    if response.status_code != 401 or path.startswith(_NO_API_KEY):
        return ""
    return "" if "authorization" in response.request.headers else f" ({_SENDS_KEY})"


def _message(response: httpx.Response) -> str | None:
    """Return the message in an error's JSON, FastAPI's or JSON-RPC's."""
    document = json_or_none(response.content)
    error = document.get("error") if isinstance(document, dict) else None
    message = error.get("message") if isinstance(error, dict) else None
    detail = document.get("detail") if isinstance(document, dict) else None
    return next((text for text in (detail, message) if isinstance(text, str)), None)


def route(response: httpx.Response) -> str:
    """Return the method and the URL of the request, without tokens."""
    return f"{response.request.method} {without_token(str(response.request.url))}"


def _quoted(text: str) -> str:
    return text if len(text) <= _QUOTED_CHARS else text[:_QUOTED_CHARS] + "..."
