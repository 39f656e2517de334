"""Call a tool, read its answer, report it: the three kinds of events of a turn."""

from __future__ import annotations

from collections.abc import AsyncIterator

from agentdouble.agents import Event, Message, Part, Session


def count_words(text: str) -> dict[str, int]:
    """Return how many words and letters a text has."""
    return {"words": len(text.split()), "letters": sum(letter.isalpha() for letter in text)}


async def root_agent(message: Message, session: Session) -> AsyncIterator[str | Part | Event]:
    """Answer with the number of words and letters, which a tool counts."""
    call = Part.of_call("count_words", {"text": message.text})
    yield call
    counted = count_words(message.text)
    yield Event((Part.of_response(call, counted),), role="user")
    session.state["turns"] = session.state.get("turns", 0) + 1
    yield f"{counted['words']} words, {counted['letters']} letters."
