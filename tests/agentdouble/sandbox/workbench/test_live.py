"""What is told of a command while it runs."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from agentdouble.sandbox.workbench.bash_session import BashSession, Command
from agentdouble.sandbox.workbench.live import LiveCommand
from agentdouble.sandbox.workbench.output import Output

pytestmark = pytest.mark.once


class Outputs:
    """What of a session is listened to."""

    def __init__(self) -> None:
        self.stdout, self.stderr = Output(), Output()


def test_what_the_next_command_puts_out_is_not_told_as_this_one_s() -> None:
    """It may begin, and say something, before who listens to this one looks again."""

    async def hear() -> list[dict[str, Any]]:
        session, command = Outputs(), Command("echo one")
        command.begun.set()
        command.ends = (None, None)
        over = asyncio.get_running_loop().create_future()
        events = LiveCommand(cast("BashSession", session), command, 0).events(over)
        heard = [await anext(events)]
        session.stdout.append(b"one\n")
        command.ends = (session.stdout.end, session.stderr.end)
        session.stdout.append(b"two\n")
        session.stderr.append(b"wrong\n")
        heard.append(await anext(events))
        over.set_result(None)
        return [*heard, *[event async for event in events]]

    started, *outputs = asyncio.run(hear())
    assert "started" == started["event"]
    assert [{"event": "output", "name": "stdout", "text": "one\n"}] == outputs
