"""A request to a model and its answer, without the wire form."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from agentdouble.errors import ModelError
from agentdouble.model.demands import Demands

Body = Mapping[str, Any]
_KINDS: Mapping[type[Any], str] = {str: "a string", dict: "an object", list: "a list"}
_WORD = re.compile(r"\s*\S+\s*")


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool. Arguments that are text are sent as they are, valid or not.

    Those of a custom tool are always text.
    """

    name: str
    arguments: Mapping[str, Any] | str
    id: str = ""
    is_custom: bool = False

    def text(self) -> str:
        """Return the arguments as JSON text."""
        if isinstance(self.arguments, str):
            return self.arguments
        return json.dumps(self.arguments, ensure_ascii=False)


@dataclass(frozen=True)
class ModelTurn:
    """A message of a conversation; ``role`` is system, user, assistant or tool.

    A tool's turn has its result as ``text``, and the ``name`` and ``call_id`` of its call.
    """

    role: str
    text: str
    calls: tuple[ToolCall, ...] = ()
    name: str = ""
    call_id: str = ""


@dataclass(frozen=True)
class ConversationRequest:
    """A request to a model; ``form`` is its wire form, ``tools`` are the names that it offers.

    Those of ``custom_tools`` take text instead of arguments.
    """

    form: str
    model: str
    turns: tuple[ModelTurn, ...]
    tools: tuple[str, ...]
    stream: bool
    body: Body
    demands: Demands
    custom_tools: tuple[str, ...] = ()

    @property
    def prompt(self) -> str:
        """The text of the last turn of the user."""
        return next((turn.text for turn in reversed(self.turns) if turn.role == "user"), "")

    @property
    def result(self) -> ModelTurn | None:
        """The result of a tool that the request ends with, or None."""
        last = self.turns[-1] if self.turns else None
        return last if last is not None and last.role == "tool" else None

    @property
    def callable_tools(self) -> tuple[str, ...]:
        """The names of the tools that the request offers and lets the model call."""
        allowed = self.demands.allowed
        return tuple(name for name in self.tools if allowed is None or name in allowed)

    def to_dict(self) -> dict[str, Any]:
        """Return the request as JSON-ready data."""
        return {
            "form": self.form,
            "model": self.model,
            "turns": [asdict(turn) for turn in self.turns],
            "tools": self.tools,
            "stream": self.stream,
            "body": self.body,
            "prompt": self.prompt,
        }


@dataclass(frozen=True)
class ModelAnswer:
    """What a model says: text, calls of tools, or both. ``number`` makes its ids.

    ``is_cut`` if the request's limit of tokens, which are words here, ended it.
    """

    text: str
    calls: tuple[ToolCall, ...]
    number: int
    is_cut: bool = False

    def pieces(self) -> list[str]:
        """Return the text in pieces of one word, as a stream has it."""
        return words(self.text)

    def tokens(self) -> int:
        """Return a size for the usage: the number of words."""
        return len(self.pieces()) + sum(len(words(call.text())) for call in self.calls)


def words(text: str) -> list[str]:
    """Return the words of a text, each with the spaces around it."""
    return _WORD.findall(text) or ([text] if text else [])


def request_size(request: ConversationRequest) -> int:
    """Return the number of words in a request, for the usage."""
    return sum(len(turn.text.split()) for turn in request.turns)


def texts(content: Any, where: str, kinds: Collection[str] = ()) -> str:
    """Return the text of a content: a string, or a list of parts of which some have text.

    Raises ModelError for a part whose type is not among the ``kinds``, if there are any.
    """
    if content is None or isinstance(content, str):
        return content or ""
    parts = objects(content, where)
    for index, part in enumerate(parts):
        if kinds and part.get("type") not in kinds:
            place = f"{where}[{index}].type"
            raise ModelError(
                f"{place} must be one of {', '.join(kinds)}, not {part.get('type')!r:.60}.",
                param=place,
            )
    return "".join(part["text"] for part in parts if isinstance(part.get("text"), str))


def objects(value: Any, where: str) -> list[dict[str, Any]]:
    """Return a list of objects, empty if it is null. Raise ModelError, which names its place."""
    items = [] if value is None else value
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ModelError(f"{where} must be a list of objects, not {value!r:.80}.")
    return items


def field(document: Body, name: str, kind: type[Any], where: str) -> Any:
    """Return a required field, which must be of a type. Raise ModelError, which names its place."""
    value = document.get(name)
    if not isinstance(value, kind):
        expected = _KINDS[kind]
        place = f"{where}.{name}" if where else name
        raise ModelError(f"{place} must be {expected}, not {value!r:.80}.")
    return value


def integer(body: Body, name: str, low: int, high: int | None = None, path: str = "") -> int | None:
    """Return a field that is an integer in a range, or None. Raise ModelError for another value."""
    value, place = body.get(name), path or name
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise ModelError(f"{place} must be an integer, not {value!r:.80}.", param=place)
    if value < low or (high is not None and value > high):
        most = "" if high is None else f" and at most {high}"
        raise ModelError(f"{place} must be at least {low}{most}, not {value}.", param=place)
    return value


def flag(body: Body, name: str, default: bool = False, path: str = "") -> bool:
    """Return a field that is a boolean. Raise ModelError for another value."""
    value = body.get(name)
    if value is not None and not isinstance(value, bool):
        place = path or name
        raise ModelError(f"{place} must be true or false, not {value!r:.80}.", param=place)
    return default if value is None else value


def strings(value: Any, most: int | None, place: str) -> tuple[str, ...]:
    """Return a string or a list of strings as a tuple. Raise ModelError for another value."""
    items = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(item, str) and item for item in items):
        raise ModelError(f"{place} must be a list of strings, not {value!r:.80}.", param=place)
    if most is not None and len(items) > most:
        raise ModelError(f"{place} may have {most} strings, not {len(items)}.", param=place)
    return tuple(items)


def named_results(turns: Iterator[ModelTurn]) -> Iterator[ModelTurn]:
    """Yield turns, with the names of the calls in their results.

    Raises ModelError for a result without a call, which real endpoints refuse as well.
    """
    names: dict[str, str] = {}
    for turn in turns:
        names |= {call.id: call.name for call in turn.calls}
        if turn.role == "tool" and not turn.name:
            if turn.call_id not in names:
                raise ModelError(
                    f"The result of the tool call {turn.call_id!r:.80} follows no such call; "
                    f"the conversation has {', '.join(map(repr, names)) or 'none'}."
                )
            turn = ModelTurn("tool", turn.text, name=names[turn.call_id], call_id=turn.call_id)
        yield turn


def event(document: Body, name: str = "") -> bytes:
    """Return a server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(document, ensure_ascii=False)}\n\n".encode()
