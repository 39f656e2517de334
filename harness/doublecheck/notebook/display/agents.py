"""The displays of agents and tools: events as a conversation, sessions, MCP and A2A."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from doublecheck.core.markup import (
    BAD,
    INFO,
    ODD,
    Markup,
    badge,
    box,
    clipped,
    code,
    element,
    folded,
    image_of,
    joined,
    pre,
    quiet,
    table,
    title,
    toned,
    tree,
)
from doublecheck.core.notebook_repr import counted
from doublecheck.values.agents import (
    A2aAnswer,
    AgentEvent,
    AgentSession,
    McpResult,
    McpTool,
    StreamEvent,
)

_TEXT = "white-space:pre-wrap;overflow-wrap:anywhere"
_SHOWN = 500


def event(shown: AgentEvent) -> Markup:
    """Return an event."""
    return box(_turn(shown))


def events(shown: Sequence[AgentEvent]) -> Markup:
    """Return a conversation; the increments of a text are folded."""
    return box(*_turns(shown)) if shown else box(quiet("No events."))


def collected(shown: Sequence[Any]) -> Markup:
    """Return the events of a stream; events of agents are shown as a conversation."""
    if shown and all(isinstance(each, AgentEvent) for each in shown):
        return events(shown)
    left_out = len(shown) - _SHOWN
    more = quiet(f"{left_out:,} earlier events are not shown.") if left_out > 0 else None
    return box(more, *map(_streamed, shown[-_SHOWN:]), None if shown else quiet("No events."))


def stream_event(shown: StreamEvent) -> Markup:
    """Return an event of a streaming invocation."""
    return box(_streamed(shown))


def session(shown: AgentSession) -> Markup:
    """Return a session: its user, its state, and its history as a conversation."""
    about = f"of {shown.user_id} with {shown.app_name}, {counted(len(shown.events), 'event')}"
    return box(
        title("Session", code(shown.id), quiet(about)),
        tree(dict(shown.state), name="state") if shown.state else None,
        *_turns(shown.events),
    )


def sessions(shown: Sequence[AgentSession]) -> Markup:
    """Return the sessions of a user, without their histories."""
    rows = [
        [code(each.id), each.app_name, each.user_id, tree(dict(each.state), opened=0)]
        for each in shown
    ]
    return box(
        title(counted(len(shown), "session")),
        table(["session", "app", "user", "state"], rows) if rows else None,
    )


def tool(shown: McpTool) -> Markup:
    """Return a tool: its signature, its description, and its folded schemas."""
    return box(_tool(shown))


def tools(shown: Sequence[McpTool]) -> Markup:
    """Return the tools of a server."""
    return box(title(counted(len(shown), "tool")), *map(_tool, shown))


def tool_result(shown: McpResult) -> Markup:
    """Return a tool's result: its blocks, and its folded structured content."""
    structured = shown.structured
    return box(
        badge("error", BAD) if shown.is_error else None,
        *(_block(block, BAD if shown.is_error else None) for block in shown.content),
        None if structured is None else tree(structured, name="structured", opened=0),
    )


def answer(shown: A2aAnswer) -> Markup:
    """Return an answer of an A2A application: its state, its texts, and the whole answer folded."""
    return box(_streamed(shown))


def _turns(shown: Sequence[AgentEvent]) -> Iterator[Markup]:
    for partial, group in groupby(shown, key=_is_increment):
        turns = [*group]
        if not partial:
            yield from map(_turn, turns)
            continue
        text = clipped("".join(each.text for each in turns), 60)
        summary = element("span", quiet(f"{counted(len(turns), 'increment')}: "), text)
        lines = [element("div", code(json.dumps(each.text, ensure_ascii=False))) for each in turns]
        yield _row(turns[0], folded(summary, *lines))


def _is_increment(shown: AgentEvent) -> bool:
    only_text = all(set(part) <= {"text", "thought"} for part in shown.parts)
    return shown.partial and shown.error is None and only_text


def _turn(shown: AgentEvent) -> Markup:
    return _row(shown, *_event_parts(shown))


def _row(shown: AgentEvent, *content: str | None) -> Markup:
    author = shown.author or shown.role or "?"
    tone = BAD if shown.error is not None else INFO if author == "user" else ODD
    style = "flex:0 0 8em;text-align:right;overflow-wrap:anywhere"
    who = element("div", element("b", toned(author, tone)), style=style)
    what = element("div", *content, style="flex:1 1 0;min-width:0")
    return element("div", who, what, style="display:flex;gap:1em;padding:.15em 0")


def _event_parts(shown: AgentEvent) -> Iterator[Markup]:
    for part in shown.parts:
        if part.get("text"):
            text = clipped(str(part["text"]), whole="event.text")
            yield element("div", quiet(text) if part.get("thought") else text, style=_TEXT)
        if part.get("functionCall") is not None:
            call = part["functionCall"]
            yield tree(call.get("args") or {}, name=f"→ {call.get('name')}")
        if part.get("functionResponse") is not None:
            response = part["functionResponse"]
            yield tree(response.get("response"), name=f"↳ {response.get('name')}", opened=0)
        if part.get("inlineData") is not None:
            kind = str(part["inlineData"].get("mimeType"))
            image = image_of(kind, str(part["inlineData"].get("data")))
            yield image or element("div", quiet(f"[{kind}]"))
    if shown.error is not None:
        yield element("div", toned(shown.error, BAD), style=_TEXT)
    changes = (shown.raw.get("actions") or {}).get("stateDelta")
    if changes:
        yield tree(changes, name="state", opened=0)


def _streamed(shown: Any) -> Markup:
    if isinstance(shown, A2aAnswer):
        about = joined([quiet(shown.kind), badge(shown.state) if shown.state else None], " ")
        text = element("div", clipped(shown.text), style=_TEXT) if shown.texts else None
        return element("div", folded(about, tree(shown.raw)), text)
    if not isinstance(shown, StreamEvent):
        return pre(clipped(str(shown)))
    if shown.error is not None:
        return pre(shown.error, tone=BAD)
    try:
        return element("div", tree(json.loads(shown.data), opened=0))
    except (ValueError, RecursionError):
        return pre(clipped(shown.data))


def _tool(shown: McpTool) -> Markup:
    schemas = [tree(shown.input_schema, name="takes", opened=2)]
    if shown.output_schema is not None:
        schemas.append(tree(shown.output_schema, name="returns", opened=2))
    return element(
        "div",
        element("b", code(shown.signature)),
        element("div", clipped(shown.description, 2000), style=_TEXT),
        folded(quiet("schemas"), *schemas),
        style="margin:.3em 0 .6em",
    )


def _block(block: Mapping[str, Any], tone: str | None) -> Markup:
    kind = str(block.get("type"))
    if kind == "text":
        return pre(clipped(str(block.get("text")), whole="result.text"), tone=tone)
    image = image_of(str(block.get("mimeType")), str(block.get("data")))
    return (kind == "image" and image) or tree(block, name=kind, opened=0)
