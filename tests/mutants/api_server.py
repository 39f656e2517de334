"""Mutants of API-server mode."""

from __future__ import annotations

from tests.mutants import Mutant, wire

LIST = "GET /apps/{app}/users/{user}/sessions"
ONE = "GET /apps/{app}/users/{user}/sessions/{session}"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "list_only_the_first_session",
        "API-04",
        "GET .../sessions: list of sessions (4.2)",
        wire.answers(LIST, lambda sessions: sessions[:1]),
    ),
    Mutant(
        "lose_the_first_event_of_the_history",
        "API-05",
        "Get session returns the session including its history of events (2.3)",
        wire.answers(ONE, lambda session: {**session, "events": session["events"][1:]}),
    ),
    Mutant(
        "lose_white_space_at_the_ends_of_streamed_texts",
        "API-08",
        "each `data:` line holds one event as JSON (4.2)",
        wire.events(
            "POST /run_sse",
            lambda event: {
                **event,
                "content": {
                    **event["content"],
                    "parts": [
                        {**part, "text": part["text"].strip()} if "text" in part else part
                        for part in event["content"]["parts"]
                    ],
                },
            },
        ),
    ),
)
