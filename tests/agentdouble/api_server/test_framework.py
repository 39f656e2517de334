"""Agents whose framework has its own runner that keeps its events in sessions."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agentdouble import Emulator
from agentdouble.agents.directory import AgentsDirectory
from agentdouble.api_server.models import CreateSession, RunRequest
from agentdouble.api_server.server import ApiServer
from agentdouble.api_server.stores import SessionKey
from agentdouble.core.clock import Clock
from agentdouble.errors import ApiError
from agentdouble.state import Store
from tests.agentdouble.api_server.test_runs_at_once import WITHIN_S, post_and_leave
from tests.agentdouble.api_server.wire import (
    create,
    detail,
    lines,
    new_user,
    read,
    run,
    run_sse,
    sessions_of,
)
from tests.agentdouble.calling import background, eventually, http

APP = "dicts"
AGENT = Path(__file__).with_name("framework_agent.py")


@pytest.fixture(scope="module")
def folder_of_dicts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("agents")
    (folder / APP).mkdir()
    shutil.copy(AGENT, folder / APP / "agent.py")
    return folder


@pytest.fixture(scope="module")
def _served(folder_of_dicts: Path) -> Iterator[tuple[Emulator, ModuleType]]:
    with Emulator(agents=folder_of_dicts) as double:
        create(double.url, "first", {"sessionId": "s1"}, APP)
        reply(double, "first", "hi")
        yield double, sys.modules[f"{APP}.agent"]


@pytest.fixture(scope="module")
def double(_served: tuple[Emulator, ModuleType]) -> Emulator:
    return _served[0]


@pytest.fixture(scope="module")
def agent(_served: tuple[Emulator, ModuleType]) -> ModuleType:
    """The module of the agent, as imported by the double."""
    return _served[1]


@pytest.fixture
def user(double: Emulator) -> str:
    user = new_user()
    create(double.url, user, {"sessionId": "s1"}, APP)
    return user


def body_of(user: str, text: str, **more: Any) -> Any:
    message = {"role": "user", "parts": [{"text": text}]}
    return {"appName": APP, "userId": user, "sessionId": "s1", "newMessage": message, **more}


def reply(double: Emulator, user: str, text: str, **more: Any) -> Any:
    """Run the agent and return its report."""
    response = run(double.url, body_of(user, text, **more))
    assert 200 == response.status_code, response.text
    return json.loads(response.json()[0]["content"]["parts"][0]["text"])


def path(user: str) -> str:
    return f"{sessions_of(user, APP)}/s1"


def test_turn_sees_earlier_events_without_parsing(double: Emulator, user: str) -> None:
    """The events are the runner's own objects."""
    answers = [reply(double, user, text) for text in ("one", "two", "three")]
    stored = read(double.url, user, "s1", APP)

    assert [0, 2, 4] == [answer["count"] for answer in answers]
    assert 1 == len({answer["parsed"] for answer in answers})
    assert ["one", "two"] == answers[2]["events"][::2]
    assert {"turns": 4} == stored["state"]
    assert [APP, "user"] == sorted({event["author"] for event in stored["events"]})


def test_reset_forgets_sessions(folder_of_dicts: Path) -> None:
    """Of the double, and everything that the agents keep beside them."""
    with Emulator(agents=folder_of_dicts) as double:
        create(double.url, "ann", {"sessionId": "s1"}, APP)
        reply(double, "ann", "one")
        http.post(f"{double.url}/_emulator/reset")

        assert 404 == run(double.url, body_of("ann", "four")).status_code


def test_turn_after_a_restart_sees_the_history(folder_of_dicts: Path, tmp_path: Path) -> None:
    """Of another process with the same state, including events' private fields."""
    state = f"sqlite:///{tmp_path / 'state.db'}"
    with Emulator(agents=folder_of_dicts, state=state) as double:
        create(double.url, "ann", {"sessionId": "s1"}, APP)
        reply(double, "ann", "secret")
    with Emulator(agents=folder_of_dicts, state=state) as double:
        http.patch(double.url + path("ann"), json={"stateDelta": {"a": 1}})
        reply(double, "ann", "two")
    with Emulator(agents=folder_of_dicts, state=state) as double:
        last = reply(double, "ann", "three")
        assert ["secret", "two"] == last["events"][::2]
        assert (5, {"a": 1, "turns": 3}) == (last["count"], last["state"])
        assert "secret" not in json.dumps(
            [event.keys() for event in read(double.url, "ann", "s1", APP)["events"]], default=list
        )


@pytest.mark.parametrize("route", ["/run", "/run_sse"])
def test_disconnecting_client_lets_the_runner_finish(
    double: Emulator, agent: ModuleType, user: str, route: str
) -> None:
    """It learns that the run was aborted, and its last event is stored."""
    post_and_leave(double, route, body_of(user, f"forever {user}"), agent.started[user])
    events = eventually(
        lambda: read(double.url, user, "s1", APP)["events"], lambda events: len(events) == 2
    )

    assert "aborted True" == events[1]["content"]["parts"][0]["text"]
    assert 2 == reply(double, user, "next")["count"]


def test_run_of_a_deleted_session_ends(double: Emulator, agent: ModuleType, user: str) -> None:
    """With the error for an unknown session."""
    waiting = background(lambda: run(double.url, body_of(user, f"wait {user}")))
    assert agent.started[user].wait(WITHIN_S)
    http.delete(double.url + path(user))
    agent.go[user].set()

    assert (404, "Session s1 not found.") == detail(waiting.result(WITHIN_S))


def test_runner_exception_is_reported(double: Emulator, user: str) -> None:
    """In both routes; other runs continue."""
    failed = run(double.url, body_of(user, "raise it broke"))
    stream = lines(run_sse(double.url, body_of(user, "raise it broke")))

    assert (500, "RuntimeError: it broke") == (failed.status_code, failed.json()["detail"])
    assert "RuntimeError: it broke" == stream[-1]["error"]
    assert 2 == reply(double, user, "next")["count"]


def test_private_fields_are_hidden_from_clients(double: Emulator, user: str) -> None:
    """In answers and in the session; the runner gets them back."""
    answer = run(double.url, body_of(user, "a secret")).json()
    stored = read(double.url, user, "s1", APP)["events"]

    assert [False, False] == ["secret" in value for value in (*answer, stored[0])]


def test_other_sessions_and_artifacts(double: Emulator, user: str) -> None:
    """A framework's services are used for more than the run's session."""
    received = reply(double, user, "others")

    assert [{"a": 1, "b": 2}, 1] == received["other"]
    assert ["other", "s1"] == received["listed"] == received["everyone"]
    assert received["gone"]
    loaded = {"text": "old"}
    assert [[0, 1], loaded, [{"n": 1}, {"n": 1}], ["f"], []] == received["files"]


def test_session_is_added_to_the_framework_s_memory(folder_of_dicts: Path) -> None:
    """A reset empties it, and the double's end closes the framework."""

    async def main() -> list[Any]:
        server = ApiServer(Clock(), "1", AgentsDirectory(folder_of_dicts), Store())
        await server.sessions.create(APP, "ann", CreateSession(session_id="s1"))
        key, results = SessionKey(APP, "ann", "s1"), []

        async def remembered() -> Any:
            prepared = await server.runs.prepare(
                RunRequest.model_validate(body_of("ann", "hi")), streaming=False
            )
            chunk: list[Any] = []

            async def send(events: Any) -> None:
                chunk.extend(json.loads(event.json) for event in events)

            await prepared.execute(send)
            return json.loads(chunk[0]["content"]["parts"][0]["text"])["remembered"]

        results.append(await remembered())
        await server.runs.add_session_to_memory(key)
        results.append(await remembered())
        server.runs.reset()
        results.append(await remembered())
        for wrong in (key._replace(id="nosuch"), key._replace(app="echo")):
            with pytest.raises(ApiError) as refused:
                await server.runs.add_session_to_memory(wrong)
            results.append(refused.value.status)
        await server.close()
        return results

    responses = asyncio.run(main())
    assert [[], ["user", APP], [], 404, 404] == responses
    assert [APP] == sys.modules[f"{APP}.agent"].closed[-1:]
