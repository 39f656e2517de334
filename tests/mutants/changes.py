"""Changes that the tables share: of texts, of JSON values, and by earlier values."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.mutants.wire import Answer, Ask, Change, Matches, Request, routed

OfValue = Callable[[Any], Any]


# ---- texts


def texts(change: Callable[[str], Any]) -> OfValue:
    """Change every text in a JSON value."""
    return leaves(lambda value: change(value) if isinstance(value, str) else value)


def cut(length: int) -> Callable[[str], str]:
    """Keep this many characters."""
    return lambda text: text[:length]


def misread(text: str) -> str:
    """Read UTF-8 as Latin-1."""
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


# ---- JSON


def leaves(change: OfValue) -> OfValue:
    """Change every value in JSON that is neither a list nor an object."""

    def deep(value: Any) -> Any:
        if isinstance(value, list):
            return [deep(item) for item in value]
        if isinstance(value, dict):
            return {name: deep(item) for name, item in value.items()}
        return change(value)

    return deep


def at(path: str, change: OfValue) -> OfValue:
    """Change the value at a path (``a.*.b``; ``()`` parses JSON in a string), if there is one."""

    def deep(value: Any, names: list[str]) -> Any:
        if not names:
            return change(value)
        name, *rest = names
        if name == "()":
            return json.dumps(deep(json.loads(value), rest))
        if name == "*" and isinstance(value, list):
            return [deep(item, rest) for item in value]
        if isinstance(value, dict) and name in value:
            return {**value, name: deep(value[name], rest)}
        return value

    return lambda value: deep(value, path.split("."))


def put(**fields: Any) -> OfValue:
    """Set fields of an object."""
    return lambda value: {**value, **fields}


def drop(*names: str) -> OfValue:
    """Remove fields of an object."""
    return lambda value: {name: item for name, item in value.items() if name not in names}


def drop_if(loses: OfValue) -> OfValue:
    """Remove the fields or items whose values match."""

    def change(value: Any) -> Any:
        if isinstance(value, list):
            return [item for item in value if not loses(item)]
        return {name: item for name, item in value.items() if not loses(item)}

    return change


def always(value: Any) -> OfValue:
    """Replace any value with this one."""
    return lambda _value: value


def where(select: Callable[[Any], Any], change: OfValue) -> OfValue:
    """Change only the selected values."""
    return lambda value: change(value) if select(value) else value


# ---- by what came before


def nothing(_value: Any) -> str:
    """Return the same key for all values."""
    return ""


def first(key: Callable[[Any], Any] = nothing) -> OfValue:
    """Replace a value with the first one that has the same key."""
    replaced: dict[Any, Any] = {}
    return lambda value: replaced.setdefault(key(value), value)


def previous() -> OfValue:
    """Replace a value with the previous one."""
    values: list[Any] = []

    def change(value: Any) -> Any:
        values.append(value)
        return values[-2:][0]

    return change


def every(number: int, change: OfValue) -> OfValue:
    """Change every third value, for example."""
    count = 0

    def changed(value: Any) -> Any:
        nonlocal count
        count += 1
        return value if count % number else change(value)

    return changed


def answers_after_the_first(change: Callable[[Answer], None]) -> Callable[[Answer, Request], None]:
    """Change answers in place, except the first."""
    names: list[str] = []

    def changed(answer: Answer, request: Request) -> None:
        names.append(request.path)
        if len(names) > 1:
            change(answer)

    return changed


# ---- callers


def admitted(
    route: str,
    when: Callable[[Request, str], Any],
    key: Callable[[Request], Any] = lambda request: request.path.partition("/mcp")[0],
) -> Change:
    """Answer refused requests as if they had the key of a caller who was let in before.

    ``when`` takes the request and the known header Authorization, ``key`` tells whose key to use.
    Requests of callers who were let in are not changed, so that their streams are not held back.
    """
    texts: dict[Any, str] = {}
    known: set[Any] = set()
    of_route = routed(route)

    def caller(request: Request) -> Any:
        text = request.headers.get("authorization")
        return (request.path if text is None else key(request)), text

    async def ask_again(request: Request, ask: Ask) -> Answer:
        answer = await ask(request)
        own = key(request)
        if answer.status < 400:
            known.add(caller(request))
        if answer.status < 400 and "authorization" in request.headers:
            texts.setdefault(own, request.headers["authorization"])
        elif answer.status in (401, 403, 404) and own in texts and when(request, texts[own]):
            answer = await ask(with_header(request, "authorization", texts[own]))
        return answer

    def matches(request: Request) -> bool:
        return of_route(request) and caller(request) not in known

    return Change(matches, around=ask_again)


def signed_anyway(when: Matches, statuses: tuple[int, ...] = (401, 403)) -> Callable[..., Any]:
    """Answer refused requests to the control plane as if their signatures were valid."""

    async def ask_again(request: Request, ask: Ask) -> Answer:
        answer = await ask(request)
        if answer.status in statuses and when(request):
            request.sign()
            answer = await ask(request)
        return answer

    return ask_again


def with_header(request: Request, name: str, value: str) -> Request:
    """Return a copy of the request with another header."""
    headers = {**request.headers, name: value}
    return Request(request.method, request.path, request.query, headers, request.body)
