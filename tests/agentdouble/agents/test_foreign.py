"""Other kinds of agents: a SimpleApp, an agent of Google's ADK."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.api_server.wire import (
    create,
    detail,
    lines,
    read,
    run,
    run_body,
    run_sse,
    texts,
)

SIMPLE = '''
from agentdouble import SimpleApp

root_agent = SimpleApp("simple")


@root_agent.entrypoint
async def answer(payload, headers):
    """Answer an invocation."""
    if payload["prompt"] == "stream":
        async def chunks():
            yield "a"
            yield {"b": 1}
        return chunks()
    if payload["prompt"] == "sync":
        return (chunk for chunk in ("x", "y"))
    if payload["prompt"] == "dict":
        return {"ü": 1}
    return f"{payload['prompt']} from {headers['user_id']} in {headers['session_id']}"
'''
ADK = """
from google.adk.agents import BaseAgent
from google.adk.events import Event, EventActions
from google.genai import types


def said(context, text, **more):
    content = types.Content(role="model", parts=[types.Part(text=text)])
    return Event(author="adk", invocation_id=context.invocation_id, content=content, **more)


class Agent(BaseAgent):
    async def _run_async_impl(self, context):
        turns = context.session.state.get("turns", 0)
        if context.run_config.streaming_mode.value == "sse":
            yield said(context, "turn ", partial=True)
        where = {
            "app_name": context.app_name,
            "user_id": context.user_id,
            "session_id": context.session.id,
        }
        version = await context.artifact_service.save_artifact(
            filename="a.txt", artifact=types.Part(text=f"turn {turns}"), **where
        )
        loaded = await context.artifact_service.load_artifact(filename="a.txt", **where)
        names = await context.artifact_service.list_artifact_keys(**where)
        text = f"turn {turns}, {len(context.session.events)} events, {loaded.text}, {names}"
        actions = EventActions(state_delta={"turns": turns + 1}, artifact_delta={"a.txt": version})
        yield said(context, text, actions=actions)


root_agent = Agent(name="adk", description="An agent of ADK")
"""


def ask(app: str, text: str) -> Any:
    message = {"role": "user", "parts": [{"text": text}]}
    return {**run_body("ann", app=app), "newMessage": message}


@pytest.fixture
def simple(tmp_path: Path) -> Iterator[Emulator]:
    for name, source in (("simple_agent", SIMPLE), ("bare_agent", SIMPLE.split("@")[0])):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(source)
    with Emulator(agents=tmp_path) as double:
        create(double.url, "ann", {"sessionId": "s1"}, "simple_agent")
        create(double.url, "ann", {"sessionId": "s1"}, "bare_agent")
        yield double


def test_simple_application_is_an_agent(simple: Emulator) -> None:
    """The message is its prompt; user and session are its headers."""
    answers = [
        texts(run(simple.url, ask("simple_agent", text)).json())
        for text in ("hi", "stream", "sync", "dict")
    ]

    assert [["hi from ann in s1"], ['a{"b": 1}'], ["xy"], ['{"ü": 1}']] == answers
    assert "simple" == run(simple.url, ask("simple_agent", "hi")).json()[0]["author"]


def test_simple_application_without_an_entrypoint_is_an_error(simple: Emulator) -> None:
    """It does not run."""
    assert (500, "The SimpleApp of 'bare_agent' has no entrypoint.") == detail(
        run(simple.url, ask("bare_agent", "hi"))
    )


@pytest.mark.filterwarnings("ignore:.EXPERIMENTAL.:UserWarning")
def test_adk_agent_runs_in_adk_s_own_runner(tmp_path: Path) -> None:
    """With the session's history, state and artifacts; all yielded events are stored."""
    pytest.importorskip("google.adk", reason="google-adk is not installed: pip install google-adk")
    (tmp_path / "adk_agent").mkdir()
    (tmp_path / "adk_agent" / "agent.py").write_text(ADK)
    with Emulator(agents=tmp_path) as double:
        create(double.url, "ann", {"sessionId": "s1"}, "adk_agent")
        first = run(double.url, ask("adk_agent", "hi")).json()
        stream = lines(run_sse(double.url, {**ask("adk_agent", "again"), "streaming": True}))
        session = read(double.url, "ann", "s1", "adk_agent")

    assert ["turn 0, 1 events, turn 0, ['a.txt']"] == texts(first)
    assert ["turn ", "turn 1, 3 events, turn 1, ['a.txt']", ""] == texts(stream)
    assert {"turns": 2} == session["state"]
    assert ["user", "adk", "user", "adk"] == [event["author"] for event in session["events"]]
    assert 2 == len({event["invocationId"] for event in session["events"]})
    assert {"a.txt": 1} == session["events"][-1]["actions"]["artifactDelta"]
    assert json.dumps(first[0]) == json.dumps(session["events"][1])
