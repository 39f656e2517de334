"""The variants of API-server mode."""

from __future__ import annotations

import itertools
import json
from typing import Any

from tests.mutants.agents import (
    APPS,
    ARTIFACTS,
    CREATE,
    DELETE,
    HEALTH,
    LIST,
    NAMED,
    READ,
    RUN,
    RUNS,
    STREAM,
    VERSION,
    history,
    hold_back,
    is_increment,
    joined,
    runs,
    stream_events,
    text,
    text_of,
)
from tests.mutants.changes import always, at, drop, put, where
from tests.mutants.wire import (
    Answer,
    Change,
    Request,
    answers,
    events,
    in_place,
    raw_events,
)
from tests.variants.forms import (
    IN_CAPITALS,
    OF_A_VENDOR,
    as_text,
    of_json,
    of_list,
    of_streams,
    several_lines,
    status,
    succeeding,
)

numbers = itertools.count()


def split_words(event: Any) -> Any:
    """Send an increment as several, which split words."""
    whole = text_of(event)
    if not is_increment(event) or len(whole) < 2:
        return event
    middle = len(whole) // 2
    return [text(always(part))(event) for part in (whole[:middle], whole[middle:])]


def joined_by_two(state: dict[str, Any], event: Any) -> Any:
    """Join two increments into one."""

    def pairs(waiting: list[Any]) -> list[Any]:
        some = [waiting[n : n + 2] for n in range(0, len(waiting), 2)]
        return [event for pair in some for event in joined(pair)]

    return hold_back(pairs)(state, event)


def unless_gated(change: Change) -> Change:
    """Change only streams that do not wait for their reader."""
    return Change(
        lambda request: change.matches(request) and b"gate" not in request.body, event=change.event
    )


def snake_case(part: Any) -> Any:
    """Name the fields of a part in snake case."""
    names = {"functionCall": "function_call", "functionResponse": "function_response"}
    return {names.get(name, name): value for name, value in part.items()}


def of_every_event(change: Any) -> list[Change]:
    """Change the events of runs and of histories."""
    return [*runs(change), history(at("*", change))]


def parts(change: Any) -> list[Change]:
    """Change the parts of events."""
    return of_every_event(at("content.parts.*", change))


def as_error_event(answer: Answer, _request: Request) -> None:
    """Refuse with an event."""
    if answer.status == 422:
        answer.status, answer.headers["content-type"] = 200, "text/event-stream"
        answer.body = b'data: {"error": {"code": 7, "message": "No."}}\n\n'


WITHOUT_PARTS = {"id": "e", "content": {"role": "model", "parts": []}, "actions": {"stateDelta": 1}}
NO_FIELDS = dict.fromkeys(("errorCode", "errorMessage", "error", "partial", "author", "usage"))
NO_TEXT = {"thought": None, "inlineData": None, "text": None}
ERROR = {"errorCode": "INVALID", "errorMessage": "No."}
API_SERVER: dict[str, Any] = {
    **of_json("* /*"),
    **of_streams(STREAM),
    "several_data_lines": raw_events(STREAM, several_lines),
    "content_type_in_capitals": in_place("* *", IN_CAPITALS),
    "content_type_of_a_vendor": in_place("* *", OF_A_VENDOR),
    "applications_in_an_object": answers(APPS, lambda names: {"apps": names}),
    "applications_under_another_name": answers(APPS, lambda names: {"applications": names}),
    "applications_beside_other_lists": answers(
        APPS, lambda names: {"apps": names, "total": len(names), "errors": [], "next": None}
    ),
    "applications_in_nested_objects": answers(APPS, lambda names: {"data": {"list": names}}),
    "applications_are_objects": answers(APPS, at("*", lambda name: {"name": name})),
    "applications_have_an_app_name": answers(
        APPS, at("*", lambda name: {"id": "7", "appName": name, "description": ""})
    ),
    "applications_in_another_order": answers(APPS, lambda names: names[::-1]),
    "sessions_in_an_object": answers(LIST, lambda some: {"sessions": some}),
    "sessions_on_a_page": answers(LIST, lambda some: {"items": some, "nextPageToken": ""}),
    "no_sessions_are_null": answers(LIST, lambda some: some or None),
    "no_sessions_are_an_empty_object": answers(
        LIST, lambda some: {"sessions": some} if some else {}
    ),
    "sessions_in_another_order": answers(LIST, lambda some: some[::-1]),
    "sessions_listed_with_id_alone": answers(LIST, at("*", lambda item: {"id": item["id"]})),
    "sessions_without_app_and_user": [
        answers(CREATE, drop("appName", "userId", "state")),
        answers(READ, drop("appName", "userId", "state")),
    ],
    "sessions_with_further_fields": [
        answers(route, where(lambda it: "id" in it, put(title=None, tags=[], createTime="2026")))
        for route in (CREATE, NAMED, READ)
    ],
    "sessions_with_a_time_as_text": [
        answers(route, where(lambda it: "id" in it, put(lastUpdateTime="2026-11-29T00:00:00Z")))
        for route in (CREATE, NAMED, READ)
    ],
    "sessions_with_a_time_of_whole_seconds": [
        answers(route, where(lambda it: "id" in it, put(lastUpdateTime=1795910400)))
        for route in (CREATE, NAMED, READ)
    ],
    "sessions_with_further_state": [
        answers(route, at("state", put(_platform={"region": "a"}, empty=None)))
        for route in (CREATE, NAMED, READ)
    ],
    "no_state_and_no_events_are_null": [
        answers(route, lambda it: {name: value or None for name, value in it.items()})
        for route in (CREATE, NAMED, READ)
    ],
    "new_sessions_without_events": [
        answers(route, drop("events", "state")) for route in (CREATE, NAMED)
    ],
    "events_of_a_session_under_another_name": answers(
        READ, lambda it: {"history" if name == "events" else name: it[name] for name in it}
    ),
    "a_session_is_created_with_201": [status(CREATE, 200, 201), status(NAMED, 200, 201)],
    "deletion_is_204": status(DELETE, 200, 204),
    "deletion_is_202": status(DELETE, 200, 202),
    "deletion_is_text": as_text(DELETE, lambda _: "deleted"),
    "deletion_tells_a_result": answers(DELETE, always({"deleted": True})),
    "an_unknown_session_is_410": status(READ, 404, 410),
    "an_unknown_session_is_403": status(READ, 404, 403),
    "an_unknown_session_is_null": succeeding(READ, 404, None),
    "an_unknown_application_is_403": [status(RUNS, 404, 403), status(NAMED, 404, 403)],
    "artifacts_in_an_object": answers(ARTIFACTS, lambda some: {"artifacts": some}),
    "artifacts_have_a_file_name": answers(
        ARTIFACTS, at("*", lambda name: {"fileName": name, "version": 0, "mimeType": "text/plain"})
    ),
    "artifacts_on_a_page": answers(
        ARTIFACTS, lambda some: {"items": [{"id": name} for name in some], "warnings": []}
    ),
    "events_in_an_object": answers(RUN, of_list(lambda some: {"events": some})),
    "events_beside_other_lists": answers(
        RUN, of_list(lambda some: {"warnings": [], "data": {"events": some}, "usage": {}})
    ),
    "events_with_further_fields": answers(RUN, of_list(at("*", put(model={"name": "m"})))),
    "events_with_nulls": answers(RUN, of_list(at("*", put(errorCode=None)))),
    "events_with_nulls_everywhere": of_every_event(lambda event: {**NO_FIELDS, **event}),
    "events_of_content_alone": of_every_event(
        lambda event: {
            name: event[name] for name in ("content", "error", "errorMessage") if name in event
        }
    ),
    "events_with_a_time_as_text": of_every_event(put(timestamp="2026-11-29T00:00:00Z")),
    "events_with_a_time_in_milliseconds": of_every_event(put(timestamp=1795910400000)),
    "events_without_parts_between": [
        answers(RUN, of_list(lambda some: [it for event in some for it in (event, WITHOUT_PARTS)])),
        events(STREAM, lambda event: [WITHOUT_PARTS, event]),
        history(lambda some: [it for event in some for it in (WITHOUT_PARTS, event)]),
    ],
    "streamed_events_with_further_fields": events(STREAM, put(model={"name": "m"})),
    "increments_that_split_words": events(STREAM, split_words),
    "increments_joined_by_two": unless_gated(stream_events(joined_by_two)),
    "parts_with_nulls": parts(lambda part: {**NO_TEXT, **part}),
    "parts_with_signatures": parts(put(thoughtSignature="c2lnbmVk")),
    "parts_in_snake_case": parts(snake_case),
    "answers_of_tools_have_the_role_tool": of_every_event(
        at("content", where(lambda it: "functionResponse" in json.dumps(it), put(role="tool")))
    ),
    "a_missing_field_is_400": status("POST /run*", 422, 400),
    "a_missing_field_is_404": status("POST /run*", 422, 404),
    "a_missing_field_is_an_event": in_place(STREAM, as_error_event),
    "a_missing_field_is_in_the_list": succeeding(RUN, 422, [ERROR]),
    "health_counts_errors": answers(HEALTH, always({"status": "pass", "errors": []})),
    "health_is_empty": status(HEALTH, 200, 204),
    "version_is_text": as_text(VERSION, lambda _: "1.2.3"),
    "version_is_a_string": answers(VERSION, always("1.2.3")),
    "version_is_a_word": answers(VERSION, always({"version": "nightly"})),
    "version_is_text_of_a_word": as_text(VERSION, lambda _: "main\n"),
    "version_is_a_number": answers(VERSION, always({"version": 3})),
    "version_is_nested": answers(VERSION, always({"build": {"commit": "abcdef"}, "status": "ok"})),
    "version_beside_an_uptime": answers(VERSION, lambda it: {**it, "uptime_s": next(numbers)}),
}
