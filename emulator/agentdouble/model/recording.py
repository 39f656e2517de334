"""Recordings: requests passed on to a real endpoint, and its answers replayed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias, TypeVar
from urllib.parse import parse_qsl, urlencode

import httpx
from pydantic import Field, StringConstraints, TypeAdapter, ValidationError
from typing_extensions import NotRequired, TypedDict

from agentdouble.core import strict_json
from agentdouble.core.redaction import (
    REDACTED,
    hide_in_query,
    without_secrets,
    without_secrets_inside,
)
from agentdouble.errors import ModelError
from agentdouble.journal.json_leaves import leaves

TIMEOUT_S = 600.0
LARGEST = 16 * 1024 * 1024  # bytes of an answer that is recorded
_SMALL = 64 * 1024  # characters in which secrets are found at once; in more, in a thread
_SHOWN = 5  # differences
_ABSENT = "nothing"

T = TypeVar("T")


_HeaderText: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[\x20-\x7e]*$")]


class Upstream(TypedDict):
    """A real endpoint: its base URL, and the header with its key."""

    url: Annotated[str, StringConstraints(pattern=r"^https?://[^\s/]+")]
    header: Annotated[str, StringConstraints(pattern=r"^[\w-]+$")]
    key: _HeaderText


class _RecordedRequest(TypedDict):
    path: str
    body: Any


class _RecordedResponse(TypedDict):
    status: Annotated[int, Field(ge=200, le=599)]
    content_type: _HeaderText
    body: NotRequired[Any]
    events: NotRequired[list[str]]


class RecordedExchange(TypedDict):
    """A request and its answer, which has either a body of JSON or the events of a stream."""

    request: _RecordedRequest
    response: _RecordedResponse


class _Document(TypedDict):
    exchanges: NotRequired[list[RecordedExchange]]
    upstreams: NotRequired[dict[Literal["openai", "gemini"], Upstream] | None]


_DOCUMENT = TypeAdapter(_Document)


@dataclass(frozen=True)
class Reply:
    """An answer of a recording; a stream has several pieces."""

    status: int
    content_type: str
    pieces: AsyncIterator[bytes]


class ModelRecording:
    """Requests and answers, without secrets.

    With ``upstreams``, which has an endpoint for ``openai`` or ``gemini`` or both, requests are
    passed on and recorded. Otherwise each is answered with the recorded answer to the same request.
    """

    def __init__(
        self, exchanges: list[RecordedExchange], upstreams: Mapping[Any, Upstream] | None = None
    ) -> None:
        self.exchanges = exchanges
        self._upstreams = upstreams
        self._keys = [up["key"].removeprefix("Bearer ") for up in (upstreams or {}).values()]
        self._requests = [_same(exchange["request"]) for exchange in exchanges]
        self._used: set[int] = set()
        self._too_large: list[str] = []

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> ModelRecording:
        """Return the recording of a document with ``exchanges`` or ``upstreams``.

        Raises ModelError with the place of what is malformed.
        """
        try:
            read = _DOCUMENT.validate_python(document)
            exchanges = read.get("exchanges", [])
            for index, exchange in enumerate(exchanges):
                if not exchange["response"].keys() & {"body", "events"}:
                    raise ModelError(f"exchanges.{index}.response has neither body nor events.")
            return cls(exchanges, read.get("upstreams"))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"]))
            raise ModelError(f"The recording is malformed at {place}: {first['msg']}.") from None
        except RecursionError:
            raise ModelError("The recording is nested too deeply.") from None

    def complete(self) -> list[RecordedExchange]:
        """Return the exchanges; raise ModelError if an answer was too large to be recorded."""
        if self._too_large:
            raise ModelError(
                f"An answer to {self._too_large[0]} has more than {LARGEST:,} bytes, and was passed "
                "on without being recorded. Ask for less."
            )
        return self.exchanges

    async def reply(self, provider: str, target: str, body: Any, raw: bytes) -> Reply:
        """Return the answer to a request; ``target`` is the path and query after the base URL.

        Raises ModelError for a request that the recording lacks, or if the endpoint is unreachable.
        """
        request: _RecordedRequest = {
            "path": _path(target),
            "body": await self._hidden(body, len(raw)),
        }
        if self._upstreams is None:
            return self._replay(request)
        upstream = self._upstreams.get(provider)
        if upstream is None:
            raise ModelError(
                f"A request in the form of {provider} cannot be recorded: the environment has no "
                f"key for it. Recorded are {', '.join(self._upstreams) or 'none'}.",
                status=502,
            )
        return await self._pass_on(upstream, request, target, raw)

    async def _pass_on(
        self, upstream: Upstream, request: _RecordedRequest, target: str, body: bytes
    ) -> Reply:
        http = httpx.AsyncClient(timeout=TIMEOUT_S)
        headers = {upstream["header"]: upstream["key"], "Content-Type": "application/json"}
        try:
            url = upstream["url"] + _without_key(target)
            sent = http.build_request("POST", url, headers=headers, content=body)
            response = await http.send(sent, stream=True)
        except (httpx.TransportError, httpx.InvalidURL) as error:
            await http.aclose()
            raise ModelError(
                f"{upstream['url']} does not answer ({error!r:.100}). Is the base URL right?",
                status=502,
            ) from None

        async def pieces() -> AsyncIterator[bytes]:
            parts, size = [], 0
            try:
                async for piece in response.aiter_bytes():
                    size += len(piece)
                    if size <= LARGEST:
                        parts.append(piece)
                    yield piece
            finally:
                await response.aclose()
                await http.aclose()
            # only a complete answer is worth replaying
            if size > LARGEST:
                self._too_large.append(request["path"])
                return
            answer = await self._recorded(response, b"".join(parts))
            self.exchanges.append({"request": request, "response": answer})

        return Reply(response.status_code, response.headers.get("content-type", ""), pieces())

    def _replay(self, request: _RecordedRequest) -> Reply:
        same = [i for i, other in enumerate(self._requests) if other == request]
        unused = [index for index in same if index not in self._used]
        if not unused:
            raise ModelError(self._missed(request, len(same)), code="not_recorded")
        self._used.add(unused[0])
        answer = self.exchanges[unused[0]]["response"]

        async def pieces() -> AsyncIterator[bytes]:
            if "events" in answer:
                for event in answer["events"]:
                    yield f"{event}\n\n".encode()
            else:
                yield json.dumps(answer["body"], ensure_ascii=False).encode()

        return Reply(answer["status"], answer["content_type"], pieces())

    def _missed(self, request: _RecordedRequest, same: int) -> str:
        advice = "Record it again with --model-record."
        if same:
            return f"The recording has this request {same} times, and all are used. {advice}"
        if not self.exchanges:
            return f"The recording is empty. {advice}"
        differing = [_differences(other, request) for other in self._requests]
        nearest = min(differing, key=len)
        listed = "; ".join(nearest[:_SHOWN])
        more = f"; and {len(nearest) - _SHOWN} more" if len(nearest) > _SHOWN else ""
        number = differing.index(nearest) + 1
        return (
            f"The recording has no such request. It differs from the nearest one, number {number}: "
            f"{listed}{more}. {advice}"
        )

    async def _recorded(self, response: httpx.Response, content: bytes) -> _RecordedResponse:
        """Return an answer as it is kept: JSON, or the events of a stream."""
        kind = response.headers.get("content-type", "")
        head: _RecordedResponse = {"status": response.status_code, "content_type": kind}
        if "event-stream" not in kind:
            try:
                body = await strict_json.read(content, surrogates=True)
                return {**head, "body": await self._hidden(body, len(content))}
            except (ValueError, RecursionError):
                pass
        text = content.decode("utf-8", "replace").replace("\r\n", "\n")
        blocks = text.split("\n\n") if "event-stream" in kind else [text]
        hide = partial(self._hide_blocks, filter(None, blocks))
        return {**head, "events": await _at_once_or_in_thread(hide, len(text))}

    async def _hidden(self, value: Any, size: int) -> Any:
        try:
            return await _at_once_or_in_thread(partial(self._hide, value), size)
        except RecursionError:
            raise ModelError("The body is nested too deeply to be recorded.") from None

    def _hide(self, value: Any) -> Any:
        return without_secrets_inside(_each_text(value, self._without_keys))

    def _hide_blocks(self, blocks: Iterable[str]) -> list[str]:
        return ["\n".join(map(self._hidden_line, block.split("\n"))) for block in blocks]

    def _hidden_line(self, line: str) -> str:
        if line.startswith("data:"):
            with suppress(ValueError, RecursionError):
                data = json.loads(line.removeprefix("data:"))
                hidden = self._hide(data)
                return line if hidden == data else f"data: {json.dumps(hidden, ensure_ascii=False)}"
        return without_secrets(self._without_keys(line))

    def _without_keys(self, text: str) -> str:
        for key in self._keys:
            for form in {key, json.dumps(key)[1:-1]} - {""}:
                text = text.replace(form, REDACTED)
        return text


async def _at_once_or_in_thread(work: Callable[[], T], size: int) -> T:
    return work() if size < _SMALL else await asyncio.to_thread(work)


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_each_text(item, change) for item in value]
    if isinstance(value, dict):
        return {change(name): _each_text(item, change) for name, item in value.items()}
    return value


def _same(request: _RecordedRequest) -> _RecordedRequest:
    """Return a recorded request in the form that is compared: other versions hid fewer secrets."""
    return {"path": _path(request["path"]), "body": without_secrets_inside(request["body"])}


def _path(target: str) -> str:
    path, mark, query = target.partition("?")
    return path + mark + hide_in_query(query)


def _without_key(target: str) -> str:
    """Return a path and query without the client's key, which is the double's."""
    path, _, query = target.partition("?")
    pairs = [(name, value) for name, value in parse_qsl(query, True) if name != "key"]
    return f"{path}?{urlencode(pairs)}" if pairs else path


def _differences(recorded: _RecordedRequest, sent: _RecordedRequest) -> list[str]:
    old, new = leaves(recorded), leaves(sent)
    return [
        f"{path} was {_short(old.get(path, _ABSENT))}, is {_short(new.get(path, _ABSENT))}"
        for path in {**old, **new}
        if old.get(path, _ABSENT) != new.get(path, _ABSENT)
    ]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else f"{text[:97]}..."
