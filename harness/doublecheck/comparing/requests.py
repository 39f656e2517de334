"""What both sides were asked: the names that a caller gives mean the same on both platforms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from doublecheck.comparing.references import Pairs, parsed

_WORD = re.compile(r"\S{1,200}")


@dataclass(frozen=True)
class Request:
    """A request as far as it names things: its URL or path, its headers and its body."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes = b""


def learn(double: Request, live: Request, pairs: Pairs) -> None:
    """Match the names and ids at the same places of two requests, before the answers come.

    A platform that then answers for another name than the one asked for contradicts itself.
    """
    ours, theirs = _parts(double), _parts(live)
    pairs.call = (_number(ours), _number(theirs))
    _match(ours, theirs, "", pairs)


def _parts(request: Request) -> list[Any]:
    url = urlsplit(request.url)
    path = [unquote(one) for one in url.path.split("/")]
    document = parsed(request.content.decode("utf-8", "replace"))
    headers = {name.lower(): value for name, value in request.headers.items()}
    named = {name: headers[name] for name in ("user_id", "session_id") if name in headers}
    return [document, path, dict(parse_qsl(url.query)), named]


def _number(parts: list[Any]) -> str:
    document = parts[0]
    return str(document.get("id", "")) if isinstance(document, dict) else ""


def _match(double: Any, live: Any, key: str, pairs: Pairs) -> None:
    if isinstance(double, dict) and isinstance(live, dict):
        for name in double.keys() & live.keys():
            _match(double[name], live[name], name, pairs)
    elif isinstance(double, list) and isinstance(live, list):
        for one, other in zip(double, live):  # noqa: B905 (what is over has no counterpart)
            _match(one, other, key, pairs)
    elif _is_name(double) and _is_name(live):
        pairs.link(double, live, key.removesuffix("Id") or "id")


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and _WORD.fullmatch(value) is not None
