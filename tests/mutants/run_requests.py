"""Mutants of what runs are asked with in API-server mode: the message, and required fields."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest

from tests.mutants import Mutant, lossy, wire
from tests.mutants.api_changes import (
    CREATE,
    CREATE_WITH_ID,
    RUN,
    RUN_SSE,
    Json,
    OfText,
    Patching,
    all_of,
    segments,
    with_texts,
)
from tests.mutants.wire import DROP, Answer, Request

MESSAGE = "newMessage: this turn's user message; parts: array of objects, each with text (2.2)"
REQUIRED = "appName, userId, sessionId, newMessage: required (2.2)"


# ---- the message


def _message(change: Callable[[Json], Json]) -> Patching:
    """Change the message before the agent has it."""

    def body(given: Json) -> Json:
        message = given.get("newMessage")
        if not isinstance(message, dict) or not message.get("parts"):
            return given
        return {**given, "newMessage": change(message)}

    return all_of(wire.requests(RUN, body), wire.requests(RUN_SSE, body))


def _said(change: OfText) -> Patching:
    """Change the texts of the message before the agent has them."""
    content = with_texts(change)
    return _message(lambda message: content({"content": message})["content"])


def _composed(text: str) -> str:
    """Return a text in which accents are one with their letters."""
    return unicodedata.normalize("NFC", text)


# ---- required fields


def _filled(route: str, field: str) -> Patching:
    """Fill in a field that a run lacks, from the session that was created last."""

    def patching(patch: pytest.MonkeyPatch) -> None:
        known: dict[str, Any] = {"newMessage": {"role": "user", "parts": [{"text": "Hello"}]}}

        def note(found: Json, request: Request) -> Json:
            if "id" in found:
                app, user = segments(request)[1], segments(request)[3]
                known.update(appName=app, userId=user, sessionId=found["id"])
            return found

        def body(given: Json) -> Json:
            lacks = given.get(field) is None and field in known
            return {**given, field: known[field]} if lacks else given

        created = [wire.answers(one, note) for one in (CREATE, CREATE_WITH_ID)]
        wire.install(patch, *created, wire.requests(route, body))

    return patching


def _nothing_went_wrong(route: str, body: Any) -> wire.Change:
    """Answer what is refused with 200."""

    def answer(answer: Answer, _request: Request) -> None:
        if answer.status >= 400:
            answer.status = 200
            answer.body = answer.body if body is None else json.dumps(body).encode()

    return wire.answered(route, answer)


def _error(event: Json) -> Any:
    return DROP if "error" in event and "content" not in event else event


MUTANTS: tuple[Mutant, ...] = (
    # ---- API-07
    Mutant(
        "give_the_agent_the_first_part",
        "API-07",
        MESSAGE,
        _message(lambda message: {**message, "parts": message["parts"][:1]}),
        also=("API-08",),
    ),
    Mutant(
        "give_the_agent_the_last_part",
        "API-07",
        MESSAGE,
        _message(lambda message: {**message, "parts": message["parts"][-1:]}),
        also=("API-08",),
    ),
    Mutant("give_the_agent_one_line", "API-07", MESSAGE, _said(lossy.first_line)),
    Mutant("give_the_agent_normalized_text", "API-07", MESSAGE, _said(_composed)),
    Mutant(
        "give_the_agent_single_spaces",
        "API-07",
        MESSAGE,
        _said(lambda text: re.sub(" +", " ", text)),
    ),
    Mutant("give_the_agent_json_without_spaces", "API-07", MESSAGE, _said(lossy.compact_json)),
    # ---- API-12
    *(
        Mutant(f"{name}_without_{field}", "API-12", REQUIRED, _filled(route, field))
        for name, route in (("run", RUN), ("stream", RUN_SSE))
        for field in ("appName", "userId", "sessionId", "newMessage")
    ),
    Mutant(
        "answer_an_empty_list_for_a_refusal",
        "API-12",
        REQUIRED,
        _nothing_went_wrong(RUN, []),
    ),
    Mutant("answer_refusals_of_run_with_200", "API-12", REQUIRED, _nothing_went_wrong(RUN, None)),
    Mutant(
        "answer_refusals_of_streams_with_200",
        "API-12",
        REQUIRED,
        _nothing_went_wrong(RUN_SSE, {"status": "accepted"}),
    ),
    Mutant("end_a_refused_stream_quietly", "API-12", REQUIRED, wire.events(RUN_SSE, _error)),
)
