"""Recordings: requests passed on to a real endpoint, and its answers replayed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from agentdouble.core.redaction import REDACTED, without_secrets
from agentdouble.errors import ModelError
from agentdouble.journal.what_if_differences import leaves

TIMEOUT_S = 600.0
_SHOWN = 5  # differences
_ABSENT = "nothing"


@dataclass(frozen=True)
class Upstream:
    """A real endpoint: its base URL, and the header with its key."""

    url: str
    header: str
    key: str = field(repr=False)


@dataclass(frozen=True)
class Reply:
    """An answer of a recording; a stream has several pieces."""

    status: int
    content_type: str
    pieces: AsyncIterator[bytes]


class Recording:
    """Requests and answers, without secrets.

    With ``upstreams``, which has an endpoint for ``openai`` or ``gemini`` or both, requests are
    passed on and recorded. Otherwise each is answered with the recorded answer to the same request.
    """

    def __init__(
        self, exchanges: list[dict[str, Any]], upstreams: Mapping[str, Upstream] | None = None
    ) -> None:
        self.exchanges = exchanges
        self._upstreams = upstreams
        self._used: set[int] = set()

    async def reply(self, provider: str, target: str, body: bytes) -> Reply:
        """Return the answer to a request; ``target`` is the path and query after the base URL.

        Raises ModelError for a request that the recording lacks, or if the endpoint is unreachable.
        """
        request = {"path": target, "body": json.loads(self._hidden(body.decode()))}
        if self._upstreams is None:
            return self._replay(request)
        upstream = self._upstreams.get(provider)
        if upstream is None:
            raise ModelError(
                f"A request in the form of {provider} cannot be recorded: the environment has no "
                f"key for it. Recorded are {', '.join(self._upstreams) or 'none'}.",
                status=502,
            )
        return await self._pass_on(upstream, request, target, body)

    async def _pass_on(
        self, upstream: Upstream, request: dict[str, Any], target: str, body: bytes
    ) -> Reply:
        http = httpx.AsyncClient(timeout=TIMEOUT_S)
        headers = {upstream.header: upstream.key, "Content-Type": "application/json"}
        sent = http.build_request("POST", upstream.url + target, headers=headers, content=body)
        try:
            response = await http.send(sent, stream=True)
        except httpx.TransportError as error:
            await http.aclose()
            raise ModelError(
                f"{upstream.url} does not answer ({error!r:.100}). Is the base URL right?",
                status=502,
            ) from None

        async def pieces() -> AsyncIterator[bytes]:
            parts = []
            try:
                async for piece in response.aiter_bytes():
                    parts.append(piece)
                    yield piece
            finally:
                await response.aclose()
                await http.aclose()
            # only a complete answer is worth replaying
            answer = _recorded(response, self._hidden(b"".join(parts).decode()))
            self.exchanges.append({"request": request, "response": answer})

        return Reply(response.status_code, response.headers.get("content-type", ""), pieces())

    def _replay(self, request: dict[str, Any]) -> Reply:
        same = [i for i, other in enumerate(self.exchanges) if other["request"] == request]
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

    def _missed(self, request: dict[str, Any], same: int) -> str:
        advice = "Record it again with --model-record."
        if same:
            return f"The recording has this request {same} times, and all are used. {advice}"
        if not self.exchanges:
            return f"The recording is empty. {advice}"
        differing = [_differences(other["request"], request) for other in self.exchanges]
        nearest = min(differing, key=len)
        listed = "; ".join(nearest[:_SHOWN])
        more = f"; and {len(nearest) - _SHOWN} more" if len(nearest) > _SHOWN else ""
        number = differing.index(nearest) + 1
        return (
            f"The recording has no such request. It differs from the nearest one, number {number}: "
            f"{listed}{more}. {advice}"
        )

    def _hidden(self, text: str) -> str:
        for upstream in (self._upstreams or {}).values():
            text = text.replace(upstream.key.removeprefix("Bearer "), REDACTED)
        return without_secrets(text)


def _recorded(response: httpx.Response, text: str) -> dict[str, Any]:
    """Return an answer as it is kept: JSON, or the events of a stream."""
    kind = response.headers.get("content-type", "")
    head = {"status": response.status_code, "content_type": kind}
    if "event-stream" in kind:
        blocks = text.replace("\r\n", "\n").split("\n\n")
        return {**head, "events": [block for block in blocks if block]}
    try:
        return {**head, "body": json.loads(text)}
    except ValueError:
        return {**head, "events": [text]}


def _differences(recorded: dict[str, Any], sent: dict[str, Any]) -> list[str]:
    old, new = leaves(recorded), leaves(sent)
    return [
        f"{path} was {_short(old.get(path, _ABSENT))}, is {_short(new.get(path, _ABSENT))}"
        for path in {**old, **new}
        if old.get(path, _ABSENT) != new.get(path, _ABSENT)
    ]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else f"{text[:97]}..."
