"""Mutants that answer in another order, or end before the last output."""

from __future__ import annotations

from typing import Any

from tests.mutants import agents, application, protocols, sandbox, wire
from tests.mutants.changes import at
from tests.mutants.wire import Change, Request


def swapped(number: int) -> Change:
    """Swap the string of this number, from 0, with the next one."""

    def change(text: str, before: list[str]) -> Any:
        if len(before) == number:
            return []
        return [text, before[number]] if len(before) == number + 1 else text

    return application.strings(change)


def failure_before_the_last() -> Change:
    """Send the failure of a stream before its last string."""

    def event(raw: bytes, request: Request) -> list[bytes]:
        waiting = request.state.pop("waiting", [])
        if application.is_failure(raw):
            return [raw, *waiting]
        request.state["waiting"] = [raw]
        return list(waiting)

    def end(request: Request) -> list[bytes]:
        return list(request.state.pop("waiting", []))

    return Change(wire.routed(application.INVOKE), event=event, end=end)


def last_strings_with_the_next() -> Change:
    """Send the last string of a stream at the beginning of the next stream."""
    rest: list[bytes] = []

    def event(raw: bytes, request: Request) -> list[bytes]:
        waiting = request.state.pop("waiting", None)
        ready = list(rest) if waiting is None else waiting
        if waiting is None:
            rest.clear()
        request.state["waiting"] = [raw]
        return list(ready)

    def end(request: Request) -> list[bytes]:
        rest.extend(request.state.pop("waiting", []))
        return []

    return Change(wire.routed(application.INVOKE), event=event, end=end)


def replies_first(events: list[Any]) -> list[Any]:
    """Put the events of each turn in reverse order."""
    turns: dict[Any, list[Any]] = {}
    for event in events:
        turns.setdefault(event.get("invocationId"), []).insert(0, event)
    return [event for turn in turns.values() for event in turn]


def reply_before_the_last(state: dict[str, Any], event: Any) -> Any:
    """Send the reply before the last increment."""
    waiting, state["held"] = state["held"], []
    if agents.is_reply(event):
        return [event, *waiting]
    if agents.is_increment(event):
        state["held"] = [event]
        return waiting
    return [*waiting, event]


def names(event: Any, kind: str) -> bool:
    """Return whether an event has a part of this kind."""
    return any(kind in part for part in (event.get("content") or {}).get("parts") or ())


def responses_first(events: list[Any]) -> list[Any]:
    """Put the responses of tools before their calls."""
    return sorted(events, key=lambda event: not names(event, "functionResponse"))


def end_before_the_last(document: Any, request: Request) -> Any:
    """Send the end before the last artifact."""
    waiting = request.state.pop("waiting", [])
    if protocols.is_end(document):
        return [document, *waiting]
    if protocols.update_of(document) is None:
        return [*waiting, document]
    request.state["waiting"] = [document]
    return list(waiting) or wire.DROP


TABLE: dict[str, dict[str, Any]] = {
    "INV-05": {
        "swap_the_third_and_the_fourth_string": swapped(2),
        "send_the_last_string_with_the_next_stream": last_strings_with_the_next(),
    },
    "INV-06": {"send_the_failure_before_the_last_string": failure_before_the_last()},
    "API-05": {"put_replies_before_messages": agents.history(replies_first)},
    "API-09": {
        "send_the_reply_before_the_last_increment": agents.stream_events(reply_before_the_last)
    },
    "API-11": {"put_responses_before_calls": agents.of_run(responses_first)},
    "A2A-02": {
        "reverse_the_artifacts": protocols.tasks(
            protocols.SEND, at("artifacts", lambda some: some[::-1])
        )
    },
    "A2A-03": {"end_before_the_last_artifact": protocols.streamed(end_before_the_last)},
    "SBX-05": {"reverse_the_outputs": sandbox.outputs(lambda some: some[::-1])},
}
