"""Repeat the message word by word, as a model would."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

from agentdouble.agents import Message, Session


async def root_agent(message: Message, session: Session) -> AsyncIterator[str]:
    """Answer with the message's text in increments."""
    for word in re.findall(r"\S+\s*|\s+", message.text):
        yield word
