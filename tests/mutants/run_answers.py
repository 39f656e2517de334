"""Mutants of the answers of /run in API-server mode: all events of a turn as one list."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.mutants import Mutant, lossy, wire
from tests.mutants.api_changes import (
    RUN,
    Json,
    OfText,
    Patching,
    each_of_run,
    of_run,
    with_texts,
)
from tests.mutants.wire import Answer, Request

ALL_EVENTS = "POST /run: all events as one list (4.2)"
CONTENT = "Has `content`: an object with `role` and `parts`, each with `text`: string (2.2, 2.4)"


def _text(change: OfText) -> wire.Change:
    """Change the texts that /run answers."""
    return each_of_run(with_texts(change))


def _of_later_turns(change: Callable[[list[Json], list[Json]], Any]) -> Patching:
    """Change the events of a session's later turns, together with those of its earlier ones."""

    def patching(patch: pytest.MonkeyPatch) -> None:
        before: dict[str, list[Json]] = {}

        def answer(found: Any, request: Request) -> Any:
            if not isinstance(found, list):
                return found
            earlier = before.setdefault(request.json["sessionId"], [])
            changed = change(earlier, found) if earlier else found
            earlier.extend(found)
            return changed

        wire.answers(RUN, answer)(patch)

    return patching


def _lines(answer: Answer, _request: Request) -> None:
    """Answer a JSON object a line for a list."""
    found = json.loads(answer.body)
    if isinstance(found, list):
        answer.body = b"".join(json.dumps(event).encode() + b"\n" for event in found)
        answer.headers["content-type"] = "application/x-ndjson"


MUTANTS: tuple[Mutant, ...] = (
    Mutant("answer_only_the_last_event", "API-07", ALL_EVENTS, of_run(lambda found: found[-1:])),
    Mutant("answer_only_the_first_event", "API-07", ALL_EVENTS, of_run(lambda found: found[:1])),
    Mutant("answer_the_first_two_events", "API-07", ALL_EVENTS, of_run(lambda found: found[:2])),
    Mutant("answer_no_event", "API-07", ALL_EVENTS, of_run(lambda _found: [])),
    Mutant(
        "answer_one_event_bare",
        "API-07",
        ALL_EVENTS,
        of_run(lambda found: found[0] if len(found) == 1 else found),
    ),
    Mutant("answer_a_list_of_lists", "API-07", ALL_EVENTS, of_run(lambda found: [found])),
    Mutant("answer_lines_for_a_list", "API-07", ALL_EVENTS, wire.answered(RUN, _lines)),
    Mutant("answer_the_last_event_first", "API-07", ALL_EVENTS, of_run(lambda found: found[::-1])),
    Mutant(
        "answer_the_last_event_twice",
        "API-07",
        ALL_EVENTS,
        of_run(lambda found: [*found, *found[-1:]]),
    ),
    Mutant(
        "answer_earlier_turns_again",
        "API-07",
        "POST /run returns all events of the turn as one list (4.2)",
        _of_later_turns(lambda earlier, found: [*earlier, *found]),
    ),
    Mutant(
        "answer_later_turns_with_nothing",
        "API-07",
        ALL_EVENTS,
        _of_later_turns(lambda _earlier, _found: []),
    ),
    Mutant(
        "answer_later_turns_with_the_first",
        "API-07",
        ALL_EVENTS,
        _of_later_turns(lambda earlier, _found: earlier),
    ),
    Mutant("strip_the_texts_of_run", "API-07", CONTENT, _text(str.strip)),
    Mutant("cut_the_texts_of_run_at_2000", "API-07", CONTENT, _text(lossy.cut(2000))),
    Mutant("cut_the_texts_of_run_at_64_kib", "API-07", CONTENT, _text(lossy.cut(65536))),
    Mutant("lose_emoji_in_run", "API-07", CONTENT, _text(lossy.without_astral)),
    Mutant(
        "turn_crlf_into_newlines_in_run",
        "API-07",
        CONTENT,
        _text(lambda text: text.replace("\r\n", "\n")),
    ),
    Mutant("escape_html_in_run", "API-07", CONTENT, _text(html.escape)),
    Mutant("fail_though_it_has_run", "API-07", ALL_EVENTS, wire.statuses(RUN, 500)),
)
