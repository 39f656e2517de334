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
)
from doublecheck.core.notebook_repr import counted
from doublecheck.core.trees import tree
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


def event(event: AgentEvent) -> Markup:
    """Return an event."""
    return box(_event_row(event))


def events(events: Sequence[AgentEvent]) -> Markup:
    """Return a conversation; the increments of a text are folded."""
    return box(*_rows(events)) if events else box(quiet("No events."))


def collected(events: Sequence[Any]) -> Markup:
    """Return the events of a stream; events of agents are shown as a conversation."""
    if events and all(isinstance(event, AgentEvent) for event in events):
        return box(*_rows(events))
    omitted = len(events) - _SHOWN
    note = quiet(f"{omitted:,} earlier events are not shown.") if omitted > 0 else None
    return box(note, *map(_streamed, events[-_SHOWN:]), None if events else quiet("No events."))


def stream_event(event: StreamEvent) -> Markup:
    """Return an event of a streaming invocation."""
    return box(_streamed(event))


def session(session: AgentSession) -> Markup:
    """Return a session: its user, its state, and its history as a conversation."""
    about = f"of {session.user_id} with {session.app_name}, {counted(len(session.events), 'event')}"
    return box(
        title("Session", code(session.id), quiet(about)),
        tree(dict(session.state), name="state") if session.state else None,
        *_rows(session.events),
    )


def sessions(sessions: Sequence[AgentSession]) -> Markup:
    """Return the sessions of a user, without their histories."""
    rows = [
        [code(session.id), session.app_name, session.user_id, tree(dict(session.state), opened=0)]
        for session in sessions
    ]
    return box(
        title(counted(len(sessions), "session")),
        table(["session", "app", "user", "state"], rows) if rows else None,
    )


def tool(tool: McpTool) -> Markup:
    """Return a tool: its signature, its description, and its folded schemas."""
    return box(_tool(tool))


def tools(tools: Sequence[McpTool]) -> Markup:
    """Return the tools of a server."""
    return box(title(counted(len(tools), "tool")), *map(_tool, tools))


def tool_result(result: McpResult) -> Markup:
    """Return a tool's result: its blocks, and its folded structured content."""
    structured = result.structured
    return box(
        badge("error", BAD) if result.is_error else None,
        *(_block(block, BAD if result.is_error else None) for block in result.content),
        None if structured is None else tree(structured, name="structured", opened=0),
    )


def answer(answer: A2aAnswer) -> Markup:
    """Return an answer of an A2A application: its state, its texts, and the whole answer folded."""
    return box(_streamed(answer))


def _rows(events: Sequence[AgentEvent]) -> Iterator[Markup]:
    for partial, group in groupby(events, key=_is_increment):
        run = [*group]
        if not partial:
            yield from map(_event_row, run)
            continue
        text = clipped("".join(turn.text for turn in run), 60)
        summary = element("span", quiet(f"{counted(len(run), 'increment')}: "), text)
        lines = [element("div", code(json.dumps(turn.text, ensure_ascii=False))) for turn in run]
        yield _row(run[0], folded(summary, *lines))


def _is_increment(event: AgentEvent) -> bool:
    only_text = all(set(part) <= {"text", "thought"} for part in event.parts)
    return event.partial and event.error is None and only_text


def _event_row(event: AgentEvent) -> Markup:
    return _row(event, *_event_parts(event))


def _row(event: AgentEvent, *content: str | None) -> Markup:
    author = event.author or event.role or "?"
    tone = BAD if event.error is not None else INFO if author == "user" else ODD
    style = "flex:0 0 8em;text-align:right;overflow-wrap:anywhere"
    who = element("div", element("b", toned(author, tone)), style=style)
    body = element("div", *content, style="flex:1 1 0;min-width:0")
    return element("div", who, body, style="display:flex;gap:1em;padding:.15em 0")


def _event_parts(event: AgentEvent) -> Iterator[Markup]:
    for part in event.parts:
        if part.get("text"):
            text = clipped(str(part["text"]), source="event.text")
            yield element("div", quiet(text) if part.get("thought") else text, style=_TEXT)
        if call := part.get("functionCall") or part.get("function_call"):
            yield tree(call.get("args") or {}, name=f"→ {call.get('name')}")
        if response := part.get("functionResponse") or part.get("function_response"):
            yield tree(response.get("response"), name=f"↳ {response.get('name')}", opened=0)
        if part.get("inlineData") is not None:
            kind = str(part["inlineData"].get("mimeType"))
            image = image_of(kind, str(part["inlineData"].get("data")))
            yield image or element("div", quiet(f"[{kind}]"))
    if event.error is not None:
        yield element("div", toned(event.error, BAD), style=_TEXT)
    changes = (event.raw.get("actions") or {}).get("stateDelta")
    if changes:
        yield tree(changes, name="state", opened=0)


def _streamed(item: Any) -> Markup:
    if isinstance(item, A2aAnswer):
        about = joined([quiet(item.kind), badge(item.state) if item.state else None], " ")
        text = element("div", clipped(item.text), style=_TEXT) if item.texts else None
        return element("div", folded(about, tree(item.raw)), text)
    if not isinstance(item, StreamEvent):
        return pre(clipped(str(item)))
    if item.error is not None:
        return pre(item.error, tone=BAD)
    try:
        return element("div", tree(json.loads(item.data), opened=0))
    except (ValueError, RecursionError):
        return pre(clipped(item.data))


def _tool(tool: McpTool) -> Markup:
    schemas = [tree(tool.input_schema, name="takes", opened=2)]
    if tool.output_schema is not None:
        schemas.append(tree(tool.output_schema, name="returns", opened=2))
    return element(
        "div",
        element("b", code(tool.signature)),
        element("div", clipped(tool.description, 2000), style=_TEXT),
        folded(quiet("schemas"), *schemas),
        style="margin:.3em 0 .6em",
    )


def _block(block: Mapping[str, Any], tone: str | None) -> Markup:
    kind = str(block.get("type"))
    if kind == "text":
        return pre(clipped(str(block.get("text")), source="result.text"), tone=tone)
    image = image_of(str(block.get("mimeType")), str(block.get("data")))
    return (kind == "image" and image) or tree(block, name=kind, opened=0)
