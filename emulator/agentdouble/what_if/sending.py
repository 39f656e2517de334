"""Requests of the journal, sent to another double, where ids and addresses are different."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

import httpx

from agentdouble import causes, resending
from agentdouble.journal import Entry
from agentdouble.resending import CannotRepeatError
from agentdouble.signing import Credentials
from agentdouble.unmocked_http import AsyncClient, AsyncTransport
from agentdouble.what_if.differences import leaves, unfolded

LARGEST = 1024 * 1024  # bytes of an answer that are read
_OF_THE_CONNECTION = frozenset(
    {b"host", b"content-length", b"connection", b"transfer-encoding", b"expect", causes.RAW_HEADER}
)
_ID = re.compile(r"[\w.:+/=-]{8,}", re.ASCII)
_PATH = "/:@!$&'()*+,;=~-._"


def _is_id(value: object) -> bool:
    return isinstance(value, str) and _ID.fullmatch(value) is not None


@dataclass(frozen=True)
class Answer:
    """An answer; ``status`` is None if the connection ended, and ``text`` says why."""

    status: int | None
    headers: Mapping[str, str]
    text: str
    is_cut: bool = False

    def document(self) -> Mapping[str, Any]:
        """Return all of it as one JSON value, with the JSON inside texts unfolded."""
        kind = self.headers.get("content-type", "")
        return {
            "status": self.status,
            "headers": dict(self.headers),
            "body": unfolded(self.text, kind),
        }


@dataclass
class Sender:
    """A client of one double; it learns which ids that double gave for those of the journal."""

    url: str
    credentials: Credentials
    _known: dict[str, str] = field(default_factory=dict)

    async def repeat(self, entry: Entry) -> Answer:
        """Send a request that was answered before, and learn from the answer."""
        answer = await self.send(entry)
        kept = entry.response_start.whole() if entry.response_start is not None else None
        kind = answer.headers.get("content-type", "")
        head = {k.decode("latin-1"): v.decode("latin-1") for k, v in entry.response_head}
        before = {"headers": head, "body": unfolded((kept or b"").decode("utf-8", "replace"), kind)}
        now = leaves(answer.document())
        for path, old in leaves(before).items():
            new = now.get(path)
            if old != new and _is_id(old) and _is_id(new):
                self._known[str(old)] = str(new)
        return answer

    async def send(self, entry: Entry) -> Answer:
        """Send a request; raise CannotRepeatError if the journal does not have it completely."""
        body = self._with_ids(resending.whole_body(entry).decode("latin-1")).encode("latin-1")
        parts = urlsplit(self._with_ids(entry.url))
        query = f"?{parts.query}" if parts.query else ""
        here = dataclasses.replace(
            entry,
            url=f"{self.url}{quote(parts.path, _PATH)}{query}",
            request_head=[
                (name, self._with_ids(value.decode("latin-1")).encode("latin-1"))
                for name, value in entry.request_head
            ],
        )
        signed = resending.headers(here, body, self.credentials)
        head = [one for one in signed if one[0] not in _OF_THE_CONNECTION]
        try:
            request = httpx.Request(here.method, here.url, headers=head, content=body)
            async with AsyncClient(transport=AsyncTransport(verify=False), timeout=None) as client:
                return await self._read(await client.send(request, stream=True))
        except httpx.InvalidURL as error:
            raise CannotRepeatError(
                f"The address of this request cannot be sent: {error}"
            ) from None
        except httpx.HTTPError as error:
            return Answer(None, {}, f"{type(error).__name__}: {error}")

    async def _read(self, response: httpx.Response) -> Answer:
        kept, size = [], 0
        try:
            async for part in response.aiter_bytes():
                kept.append(part[: LARGEST - size])
                size += len(part)
                if size > LARGEST:
                    break
        finally:
            await response.aclose()
        text = b"".join(kept).decode("utf-8", "replace")
        headers = {name: self._anywhere(value) for name, value in response.headers.items()}
        return Answer(response.status_code, headers, self._anywhere(text), size > LARGEST)

    def _anywhere(self, text: str) -> str:
        """Return text without the address of this double."""
        return text.replace(self.url, "http://double").replace(self.url[7:], "double")

    def _with_ids(self, text: str) -> str:
        for old in sorted(self._known, key=len, reverse=True):
            text = text.replace(old, self._known[old])
        return text
