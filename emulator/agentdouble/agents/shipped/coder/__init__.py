"""Run the code of a message in the session's sandbox; a plot becomes an artifact."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator

from agentdouble.agents import coder
from agentdouble.agents.events import Event, Message, Part
from agentdouble.agents.session import Session


async def root_agent(message: Message, session: Session) -> AsyncIterator[Event]:
    """Answer with what each code block came to; images are saved and sent along."""
    if not message.text.strip():
        yield Event((Part.of_text(coder.NOTHING_TO_RUN),))
        return
    numbers = itertools.count(1)
    for block in coder.code_blocks(message.text):
        outcome = await coder.run(block)
        images = outcome.images()
        for ending, image in images:
            await session.save_artifact(f"plot-{next(numbers)}.{ending}", image)
        yield Event((Part.of_text(outcome.text()), *(image for _, image in images)))
