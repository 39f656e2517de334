"""The fields that both of OpenAI's wire forms have: tools, tool_choice, formats, logprobs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agentdouble.errors import ModelError
from agentdouble.model import conversation, fields
from agentdouble.model.conversation import Body
from agentdouble.model.demands import Demands, OutputFormat

MOST_LIKELY = 20  # words that logprobs may name for each word


def named_tools(body: Body, kinds: Sequence[str], *, is_nested: bool) -> Mapping[str, str]:
    """Return the kind of each tool by its name.

    ``is_nested`` if name and parameters stand in an object with the name of the kind. Raises
    ModelError for a tool of another kind, for example one that the vendor runs.
    """
    named = {}
    for index, tool in enumerate(conversation.objects(body.get("tools"), "tools")):
        place, kind = f"tools[{index}]", str(tool.get("type"))
        if kind not in kinds:
            raise ModelError(
                f"{place}.type {kind!r:.60} is not supported, only {' and '.join(kinds)}: "
                f"{fields.BUILT_IN}",
                code="unsupported_value",
                param=f"{place}.type",
            )
        if is_nested:
            tool, place = conversation.field(tool, kind, dict, place), f"{place}.{kind}"
        named[conversation.field(tool, "name", str, place)] = kind
    return named


def demands(
    body: Body,
    tools: Mapping[str, str],
    *,
    is_nested: bool,
    limit: int | None,
    output: OutputFormat | None,
    stop: tuple[str, ...] = (),
    logprobs: int | None,
) -> Demands:
    """Return what a request demands; its choice of tools is read here."""
    choice = body.get("tool_choice")
    must_call, allowed = _choice(choice, tools, is_nested=is_nested)
    shown = choice if isinstance(choice, str) else json.dumps(choice, ensure_ascii=False)
    return Demands(
        choice=f"tool_choice {shown:.200}",
        allowed=allowed,
        must_call=must_call,
        single_call=not conversation.flag(body, "parallel_tool_calls", True),
        output=output,
        stop=stop,
        limit=limit,
        logprobs=logprobs,
    )


def _choice(
    choice: Any, tools: Mapping[str, str], *, is_nested: bool
) -> tuple[bool, frozenset[str] | None]:
    """Return whether a tool must be called, and which may be; None is all."""
    if choice in (None, "auto"):
        return False, None
    if choice == "none":
        return False, frozenset()
    kind = choice.get("type") if isinstance(choice, dict) else choice
    if kind == "required" and isinstance(choice, str):
        names, must_call = frozenset(tools), True
    elif kind == "allowed_tools":
        allowed = conversation.field(choice, kind, dict, "tool_choice") if is_nested else choice
        must_call = allowed.get("mode") == "required"
        listed = conversation.objects(allowed.get("tools"), "tool_choice.tools")
        names = frozenset(_name(tool, is_nested=is_nested) for tool in listed)
    elif kind in ("function", "custom"):
        names, must_call = frozenset([_name(choice, is_nested=is_nested)]), True
    else:
        raise ModelError(
            "tool_choice must be none, auto, required, or an object of the type function, custom "
            f"or allowed_tools, not {choice!r:.80}.",
            param="tool_choice",
        )
    unknown = sorted(names - tools.keys())
    if unknown or not tools:
        name = unknown[0] if unknown else choice
        raise ModelError(
            f"Tool choice {name!r:.80} not found in 'tools' parameter.", param="tool_choice"
        )
    return must_call, names


def _name(tool: Body, *, is_nested: bool) -> str:
    kind = str(tool.get("type"))
    inner = conversation.field(tool, kind, dict, "tool_choice") if is_nested else tool
    name: str = conversation.field(inner, "name", str, "tool_choice")
    return name


def output_format(document: Any, field: str, *, is_nested: bool) -> OutputFormat | None:
    """Return the format of a text, or None; ``is_nested`` as of tools."""
    if document is None:
        return None
    kind = document.get("type") if isinstance(document, dict) else None
    if kind == "text":
        return None
    if kind == "json_object":
        return OutputFormat(field)
    if kind != "json_schema":
        raise ModelError(
            f"{field}.type must be text, json_object or json_schema, not {kind or document!r:.80}.",
            param=field,
        )
    inner, place = document, field
    if is_nested:
        inner, place = conversation.field(document, kind, dict, field), f"{field}.{kind}"
    conversation.field(inner, "name", str, place)
    schema = inner.get("schema")
    return OutputFormat(f"{place}.schema", {} if schema is None else _object(schema, place))


def _object(schema: Any, place: str) -> Body:
    if not isinstance(schema, dict):
        raise ModelError(f"{place}.schema must be an object, not {schema!r:.80}.", param=place)
    return schema


def token(piece: str, most: int, *, is_whole: bool = True) -> dict[str, Any]:
    """Return the probability of a word, which is 1: a script says nothing else."""
    likely: dict[str, Any] = {"token": piece, "logprob": 0.0}
    if is_whole:
        likely["bytes"] = list(piece.encode())
    return {**likely, "top_logprobs": [likely] if most else []}
