"""An agent that does what it is told: the message is JSON, ``{"do": ...}``."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

from agentdouble.agents import Event, Message, Part, Session


class _Events(dict[str, threading.Event]):
    """An event for each name; two threads that ask for one at once get the same."""

    def __missing__(self, name: str) -> threading.Event:
        return self.setdefault(name, threading.Event())


started, go, ended = _Events(), _Events(), _Events()
sessions: dict[str, Session] = {}
PATIENCE_S = 60


async def root_agent(message: Message, session: Session) -> AsyncIterator[Any]:
    """Do what the message says."""
    order = json.loads(message.text)
    async for event in globals()[order.pop("do")](session, **order):
        yield event


async def say(_session: Session, texts: list[str]) -> AsyncIterator[Any]:
    for text in texts:
        yield text


async def mixed(_session: Session) -> AsyncIterator[Any]:
    yield "one "
    yield "two"
    yield Part.of_data(b"\xff\xfe\x00", "x/y")
    yield Event((Part.of_text("incre"),), partial=True)
    yield Event(
        (Part.of_text("custom"),), author="helper", more={"finishReason": "STOP", "branch": "b"}
    )
    yield "three"


async def tool(_session: Session) -> AsyncIterator[Any]:
    call = Part.of_call("add", {"a": 1}, "c1")
    yield call
    yield Event((Part.of_response(call, {"sum": 1}),), role="user")
    yield "final"


async def fail(_session: Session, texts: list[str], message: str) -> AsyncIterator[Any]:
    for text in texts:
        yield Event((Part.of_text(text),))
    raise RuntimeError(message)


async def leave(_session: Session) -> AsyncIterator[Any]:
    yield Event((Part.of_text("before"),))
    raise SystemExit(3)


async def cancel(_session: Session) -> AsyncIterator[Any]:
    yield Event((Part.of_text("before"),))
    raise asyncio.CancelledError


async def wrong(_session: Session, kind: str) -> AsyncIterator[Any]:
    yield {"dict": {}, "none": None, "int": 1, "bytes": b"x"}[kind]


async def unsayable(session: Session) -> AsyncIterator[Any]:
    session.state["a"] = object()
    yield "text"


async def remember(session: Session, **values: Any) -> AsyncIterator[Any]:
    before = dict(session.state)
    for key, value in values.items():
        session.state[key] = value
    yield json.dumps([before, dict(session.state)])


async def history(session: Session) -> AsyncIterator[Any]:
    yield Event((Part.of_text("first"),))
    yield json.dumps([[event.author, event.text] for event in await session.history()])


async def files(session: Session) -> AsyncIterator[Any]:
    versions = [
        await session.save_artifact("a.txt", "text"),
        await session.save_artifact("a.txt", b"\x00\xff", "x/y"),
        await session.save_artifact("user:b", Part.of_text("mine")),
    ]
    newest, oldest = await session.load_artifact("a.txt"), await session.load_artifact("a.txt", 0)
    missing = await session.load_artifact("nope")
    assert newest is not None
    assert oldest is not None
    yield json.dumps(
        [versions, list(newest.data or b""), oldest.text, missing, await session.artifacts()]
    )


async def wait(_session: Session, name: str) -> AsyncIterator[Any]:
    """Say that it has begun, wait without blocking to be let go, say so."""
    try:
        yield Event((Part.of_text("begun"),))
        started[name].set()
        yield "gone on" if await asyncio.to_thread(go[name].wait, PATIENCE_S) else "too late"
    finally:
        ended[name].set()


async def block(_session: Session, name: str) -> AsyncIterator[Any]:
    """Block the loop until it is let go."""
    started[name].set()
    yield "gone on" if go[name].wait(PATIENCE_S) else "too late"


async def endless(_session: Session, name: str) -> AsyncIterator[Any]:
    """Yield for ever, without a pause."""
    try:
        while True:
            yield "x" * 1000
            started[name].set()
    finally:
        ended[name].set()


async def steps(_session: Session, name: str, count: int) -> AsyncIterator[Any]:
    """Yield the next one only when it is let go."""
    for number in range(count):
        yield f"{number} "
        if not await asyncio.to_thread(go[f"{name}-{number}"].wait, PATIENCE_S):
            raise RuntimeError("too late")


async def keep(session: Session, name: str) -> AsyncIterator[Any]:
    """Keep the session beyond the run."""
    sessions[name] = session
    yield "kept"


async def thread(_session: Session) -> AsyncIterator[Any]:
    yield threading.current_thread().name


async def stamp(_session: Session) -> AsyncIterator[Any]:
    yield str(time.time())
