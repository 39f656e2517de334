"""The ids and times of two answers, matched with each other."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

from agentdouble.core.diff.json_texts import parsed

Side = Literal["first", "second"]

TIME = "time"
CALL = "JSON-RPC id"  # the noun for the number of a request

_SHORTEST_IN_TEXT = 6  # a shorter id would also match parts of unrelated words
_ADDRESS = r"\b0x[0-9a-fA-F]{6,16}\b"
_PATTERNS = (
    # a time in ISO 8601 or in an HTTP header, or a memory address: none of these values is kept
    (
        r"(?P<time>\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
        rf"|\b[A-Z][a-z]{{2}}, \d\d [A-Z][a-z]{{2}} \d{{4}} \d\d:\d\d:\d\d GMT\b|{_ADDRESS})"
    ),
    r"\b(?:[a-z]{1,4}-)?[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b",
    # s-..., t-...: a short prefix, then a string that is not a word
    r"\b[a-z]{1,4}-(?=[a-zA-Z]*\d)[0-9a-zA-Z]{6,}\b",
    # long words of letters and digits, including hexadecimal and base64
    r"\b(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[0-9A-Za-z]{16,}\b|\b\d{15,}\b",
    r"\b(?=[\w-]*\d)(?=[\w-]*[a-z])(?=[\w-]*[A-Z])[\w-]{20,}",
)
_VOLATILE = re.compile("|".join(_PATTERNS), re.ASCII)
_MEMORY = re.compile(f"(?P<time>{_ADDRESS})")
_SECONDS = (1_000_000_000, 4_100_000_000)  # from 2001 to 2099
_NAME = re.compile(r"\S{1,200}")


class ComparedRequest(Protocol):
    """One of the two requests whose answers are compared."""

    @property
    def method(self) -> str: ...
    @property
    def url(self) -> str: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def content(self) -> bytes: ...


@dataclass(frozen=True)
class Piece:
    """A piece of a text. ``noun`` is ``id``, ``time``, or None for ordinary text."""

    text: str
    noun: str | None


def is_time(value: Any) -> bool:
    """Whether a value has the form of a time."""
    if isinstance(value, str):
        match = _VOLATILE.fullmatch(value)
        return match is not None and match.lastgroup == TIME
    low, high = _SECONDS
    return isinstance(value, (int, float)) and (
        low <= value <= high or low * 1000 <= value <= high * 1000
    )


def pieces(text: str, *, prose: bool) -> Iterator[Piece]:
    """Split prose at the ids and times in it, and any other text at memory addresses."""
    end = 0
    for match in (_VOLATILE if prose else _MEMORY).finditer(text):
        yield Piece(text[end : match.start()], None)
        yield Piece(match[0], match.lastgroup or "id")
        end = match.end()
    yield Piece(text[end:], None)


class Pairs:
    """The ids of two sides, matched with each other."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._second_of: dict[str, str] = {}
        self._first_of: dict[str, str] = {}
        self._names: dict[Side, dict[str, str]] = {"first": {}, "second": {}}
        self._same: set[str] = set()
        self._call = ("", "")  # the numbers of the two requests under comparison

    def seed(self, name: str, first: str, second: str) -> None:
        """Declare, before the comparison, that two values mean the same, ``<name>``."""
        matched = first in self._second_of or second in self._first_of
        if first and second and first != second and not matched:
            self._match(first, second, f"<{name}>")

    def link(self, first: str, second: str, noun: str) -> bool:
        """Return whether two ids match. Two new ids are matched from now on."""
        if noun == CALL:
            return (first, second) == self._call
        if first in self._same or second in self._same:
            return first == second
        if first in self._second_of or second in self._first_of:
            return self._second_of.get(first) == second
        if first == second:
            self._same.add(first)
            return True
        self._counts[noun] += 1
        self._match(first, second, f"<{noun} {self._counts[noun]}>")
        return True

    def learn(self, first: ComparedRequest, second: ComparedRequest) -> None:
        """Match the names and ids at the same places of two requests, before the answers arrive.

        A platform that then answers for another name than the requested one contradicts itself.
        """
        first_parts, second_parts = _parts(first), _parts(second)
        self._call = (_number(first_parts[0]), _number(second_parts[0]))
        self._learn(first_parts, second_parts, "")

    def with_names(self, document: Any, side: Side) -> Any:
        """Return a document of one side, in which names replace the ids that have one."""
        if isinstance(document, str):
            return self._names[side].get(document) or self.replaced(document, side)
        if isinstance(document, Mapping):
            return {name: self.with_names(value, side) for name, value in document.items()}
        if isinstance(document, (list, tuple)):
            return [self.with_names(value, side) for value in document]
        return document

    def replaced(self, text: str, side: Side) -> str:
        """Return a text of one side with its ids replaced by their names."""
        names = self._names[side]
        for value in sorted(names, key=len, reverse=True):
            if len(value) >= _SHORTEST_IN_TEXT and value in text:
                text = text.replace(value, names[value])
        return text

    def _match(self, first: str, second: str, name: str) -> None:
        self._second_of[first], self._first_of[second] = second, first
        self._names["first"][first] = self._names["second"][second] = name

    def _learn(self, first: Any, second: Any, key: str) -> None:
        if isinstance(first, dict) and isinstance(second, dict):
            for name in first.keys() & second.keys():
                self._learn(first[name], second[name], name)
        elif isinstance(first, list) and isinstance(second, list):
            for item, second_item in zip(first, second):  # noqa: B905 (the rest has no counterpart)
                self._learn(item, second_item, key)
        elif _is_name(first) and _is_name(second):
            self.link(first, second, key.removesuffix("Id") or "id")


def _parts(request: ComparedRequest) -> list[Any]:
    """Return the body, the path, the query and the headers that name a user or a session."""
    url = urlsplit(request.url)
    headers = {name.lower(): value for name, value in request.headers.items()}
    return [
        parsed(request.content.decode("utf-8", "replace")),
        [unquote(segment) for segment in url.path.split("/")],
        dict(parse_qsl(url.query)),
        {name: headers[name] for name in ("user_id", "session_id") if name in headers},
    ]


def _number(document: Any) -> str:
    return str(document.get("id", "")) if isinstance(document, dict) else ""


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None
