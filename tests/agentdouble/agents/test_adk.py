"""Agents and Apps of google-adk over the double's sessions, artifacts and memory.

They run where google-adk is installed:: pip install google-adk && python -m pytest
tests/agentdouble/agents/test_adk.py
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.api_server.test_runs_at_once import WITHIN_S, post_and_leave
from tests.agentdouble.api_server.wire import (
    create,
    lines,
    new_user,
    read,
    run,
    run_sse,
    sessions_of,
)
from tests.agentdouble.calling import background, eventually, http

pytest.importorskip("google.adk", reason="google-adk is not installed: pip install google-adk")
pytestmark = pytest.mark.filterwarnings("ignore")  # the SDK warns of itself

AGENTS = Path(__file__).with_name("adk_agents")
TELLER, APP = "teller", "scripted_app"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("agents")
    for source, name in (("teller", TELLER), ("scripted", APP)):
        (folder / name).mkdir()
        shutil.copy(AGENTS / f"{source}.py", folder / name / "agent.py")
    with (folder / APP / "agent.py").open("a") as file:
        file.write("\nroot_agent = app\n")
    return folder


@pytest.fixture(scope="module")
def _served(folder: Path) -> Iterator[tuple[Emulator, dict[str, ModuleType]]]:
    with Emulator(agents=folder) as double:
        for app in (TELLER, APP):
            create(double.url, "first", {"sessionId": "s1"}, app)
            run(double.url, body(app, "first", "hi"))
        yield double, {app: sys.modules[f"{app}.agent"] for app in (TELLER, APP)}


@pytest.fixture(scope="module")
def double(_served: tuple[Emulator, dict[str, ModuleType]]) -> Emulator:
    return _served[0]


@pytest.fixture(scope="module")
def agents(_served: tuple[Emulator, dict[str, ModuleType]]) -> dict[str, ModuleType]:
    """The agents' modules, as imported by the double."""
    return _served[1]


@pytest.fixture
def user(double: Emulator) -> str:
    user = new_user()
    for app in (TELLER, APP):
        create(double.url, user, {"sessionId": "s1"}, app)
    return user


def body(app: str, user: str, text: str | None = None, **more: Any) -> Any:
    message = {} if text is None else {"newMessage": {"role": "user", "parts": [{"text": text}]}}
    return {"appName": app, "userId": user, "sessionId": "s1", **message, **more}


def tell(double: Emulator, user: str, text: str, **more: Any) -> Any:
    """Return the teller's report."""
    (event,) = run(double.url, body(TELLER, user, text, **more)).json()
    return json.loads(event["content"]["parts"][0]["text"])


def call(double: Emulator, user: str, *tools: str, **more: Any) -> list[Any]:
    """Let the App's model call tools, and return the events."""
    text = json.dumps([[tool, more] for tool in tools])
    events: list[Any] = run(double.url, body(APP, user, text)).json()
    return events


def answer(double: Emulator, user: str, to: Any, response: Any) -> Any:
    """Answer a call of an event."""
    function_response = {"id": to["id"], "name": to["name"], "response": response}
    message = {"role": "user", "parts": [{"functionResponse": function_response}]}
    return run(double.url, {**body(APP, user), "newMessage": message}).json()


def parts(events: list[Any], kind: str) -> list[Any]:
    """Return all parts of a kind."""
    parts = [part for event in events for part in event.get("content", {}).get("parts", ())]
    return [part[kind] for part in parts if kind in part]


def path(app: str, user: str) -> str:
    return f"{sessions_of(user, app)}/s1"


def test_each_turn_sees_its_session(double: Emulator, user: str) -> None:
    """Earlier turns, others' changes, and the state of all scopes."""
    tell(double, user, "one")
    http.patch(double.url + path(TELLER, user), json={"stateDelta": {"patched": [1]}})
    second = tell(double, user, "two", stateDelta={"given": 1, "app:shared": 2})
    third = tell(double, user, "three")

    assert (4, 6) == (second["count"], third["count"])
    shared = {"app:shared": 2, "user:u": [1]}
    assert {"turns": 1, "patched": [1], "given": 1, **shared} == second["state"]
    assert {"turns": 2, "patched": [1], "given": 1, **shared} == third["state"]
    assert ["user: one", "user: two", "user: three"] == third["events"][::2]


def test_deleted_session_is_forgotten(double: Emulator, user: str) -> None:
    """A new one of the same name starts empty, or with the given content."""
    tell(double, user, "one")
    http.delete(double.url + path(TELLER, user))
    imported = [{"author": "user", "content": {"parts": [{"text": text}]}} for text in "ab"]
    create(double.url, user, {"sessionId": "s1", "events": imported}, TELLER)

    assert ["user: a", "user: b", "user: two"] == tell(double, user, "two")["events"]


def test_history_survives_its_process(folder: Path, tmp_path: Path) -> None:
    """A turn sees other processes' events and changes in the same state."""
    state = f"sqlite:///{tmp_path / 'state.db'}"
    for number in range(3):
        with Emulator(agents=folder, state=state) as double:
            create(double.url, f"ann{number}", {"sessionId": "s1"}, TELLER)
            http.post(double.url + sessions_of("ann", TELLER), json={"sessionId": "s1"})
            http.patch(double.url + path(TELLER, "ann"), json={"stateDelta": {"n": number}})
            context = tell(double, "ann", f"turn {number}")

    assert ["user: turn 0", "user: turn 1", "user: turn 2"] == context["events"][::2]
    assert (8, 2, 2) == (context["count"], context["state"]["n"], context["state"]["turns"])


def test_sent_events_are_stored_unchanged(double: Emulator, user: str) -> None:
    """With the runner's ids and without the state of one run."""
    sent = run(double.url, body(TELLER, user, "one")).json()
    sent += lines(run_sse(double.url, {**body(TELLER, user, "two"), "streaming": True}))
    stored = read(double.url, user, "s1", TELLER)["events"]

    assert sent == [event for event in stored if event["author"] == TELLER]
    assert {"turns": 1, "user:u": [1]} == sent[0]["actions"]["stateDelta"]
    assert [turn["invocationId"] for turn in stored[::2]] == [turn["invocationId"] for turn in sent]


def test_events_have_the_platform_s_time(double: Emulator, user: str) -> None:
    """The runner takes it from the double's clock."""
    with double.clock.freeze():
        for text in ("one", "two"):
            tell(double, user, text)
    stored = read(double.url, user, "s1", TELLER)

    assert {stored["lastUpdateTime"]} == {event["timestamp"] for event in stored["events"]}


def test_failing_run_affects_no_other(double: Emulator, user: str) -> None:
    """It ends with the agent's or plugin's error; earlier events are kept."""
    failed = run(double.url, body(TELLER, user, "raise"))
    refused = run(double.url, body(APP, user, "raise"))
    nothing = run(double.url, body(TELLER, user, "nothing"))
    missing = run(double.url, body(TELLER, user))

    assert (500, "RuntimeError: it broke") == (failed.status_code, failed.json()["detail"])
    assert 500 == refused.status_code
    assert "the plugin refuses" in refused.json()["detail"]
    assert (200, []) == (nothing.status_code, nothing.json())
    assert 500 == missing.status_code
    assert "requires either a new_message or an invocation_id" in missing.json()["detail"]
    assert 4 == tell(double, user, "next")["count"]


def test_blocking_agent_delays_no_other_run(
    double: Emulator, agents: dict[str, ModuleType], user: str
) -> None:
    """Not even one of its own application."""
    create(double.url, f"{user}-2", {"sessionId": "s1"}, TELLER)
    blocked = background(lambda: tell(double, user, "block"))
    assert agents[TELLER].started.wait(WITHIN_S)

    assert 1 == tell(double, f"{user}-2", "meanwhile")["count"]
    agents[TELLER].go.set()
    assert 1 == blocked.result(WITHIN_S)["count"]


def test_app_has_its_plugins(double: Emulator, user: str) -> None:
    """They mark each event, and may answer instead of the agent."""
    event = run(double.url, body(APP, user, "hi")).json()[0]
    (halted,) = run(double.url, body(APP, user, "halt")).json()

    assert ("inner", {"watched": True}) == (event["author"], event["customMetadata"])
    assert ["halted"] == parts([halted], "text")


def test_resumable_app_resumes(double: Emulator, user: str) -> None:
    """With the result of a long-running tool, or by the invocation's id alone."""
    paused = call(double, user, "job")
    (pending,) = parts(paused, "functionCall")
    resumed = run(double.url, body(APP, user, invocationId=paused[0]["invocationId"]))
    ended = answer(double, user, pending, {"status": "ended"})

    assert [pending["id"]] == paused[0]["longRunningToolIds"]
    assert 200 == resumed.status_code
    assert {paused[0]["invocationId"]} == {session["invocationId"] for session in ended}
    assert parts(ended, "text")[0].startswith("done")


def test_tool_waits_for_its_confirmation(double: Emulator, user: str) -> None:
    deleted = call(double, user, "delete", name="f")
    request = parts(deleted, "functionCall")[-1]
    confirmed = answer(double, user, request, {"confirmed": True})

    assert "adk_request_confirmation" == request["name"]
    assert {"deleted": "f"} == parts(confirmed, "functionResponse")[0]["response"]


def test_secret_is_only_for_the_agent(double: Emulator, user: str) -> None:
    """Clients do not see the credential's secrets, and a resumed invocation has them."""
    question = call(double, user, "connect")
    request = parts(question, "functionCall")[-1]
    config = request["args"]["authConfig"]
    config["exchangedAuthCredential"] = {
        "authType": "oauth2",
        "oauth2": {"clientId": "id", "accessToken": "token"},
    }
    connected = answer(double, user, request, config)
    stored = read(double.url, user, "s1", APP)

    assert {"token": "token", "known": True} == parts(connected, "functionResponse")[0]["response"]
    assert "hidden" not in json.dumps([question, connected, stored])


def test_memory_is_searched_in_other_sessions(double: Emulator, user: str) -> None:
    """Per application and user, until the double is reset."""
    run(double.url, body(APP, user, "the zebra is striped"))
    call(double, user, "remember")
    http.post(f"{double.url}{sessions_of(user, APP)}/s2")
    answer = run(
        double.url,
        {**body(APP, user, json.dumps([["load_memory", {"query": "zebra"}]])), "sessionId": "s2"},
    ).json()

    (response,) = parts(answer, "functionResponse")
    assert "the zebra is striped" in json.dumps(response["response"])


def test_credentials_are_kept_for_the_user(double: Emulator, user: str) -> None:
    create(double.url, f"{user}-2", {"sessionId": "s1"}, APP)
    credentials = [
        parts(call(double, name, "credentials"), "functionResponse")[0]["response"]["known"]
        for name in (user, user, f"{user}-2")
    ]

    assert [False, True, False] == credentials


@pytest.mark.parametrize("route", ["/run", "/run_sse"])
def test_disconnecting_client_aborts_the_run(
    double: Emulator, agents: dict[str, ModuleType], user: str, route: str
) -> None:
    """The runner answers the open call, like behind the real server."""
    text = json.dumps([["wait", {"name": user}]])
    post_and_leave(double, route, body(APP, user, text), agents[APP].started[user])
    events = eventually(
        lambda: read(double.url, user, "s1", APP)["events"], lambda events: len(events) == 3
    )

    assert "INVOCATION_ABORTED" == events[2]["errorCode"]
    (aborted,) = parts(events[2:], "functionResponse")
    assert parts(events[1:2], "functionCall")[0]["id"] == aborted["id"]
    assert 200 == run(double.url, body(APP, user, "next")).status_code


def test_runner_is_closed_with_its_double(folder: Path) -> None:
    """So are the plugins and toolsets of its agents."""
    with Emulator(agents=folder) as double:
        create(double.url, "ann", {"sessionId": "s1"}, APP)
        run(double.url, body(APP, "ann", "hi"))
        module = sys.modules[f"{APP}.agent"]
        assert not module.closed.is_set()

    assert module.closed.is_set()


def test_reimported_agent_keeps_its_memory(folder: Path, tmp_path: Path) -> None:
    """It gets a new runner; the old one is closed."""
    agents = shutil.copytree(folder, tmp_path / "agents")
    with Emulator(agents=agents, reload=True) as double:
        create(double.url, "ann", {"sessionId": "s1"}, APP)
        run(double.url, body(APP, "ann", "the zebra is striped"))
        call(double, "ann", "remember")
        before = sys.modules[f"{APP}.agent"]
        with (agents / APP / "agent.py").open("a") as file:
            file.write("\nchanged = True\n")
        results = parts(call(double, "ann", "load_memory", query="zebra"), "functionResponse")

    assert before.closed.is_set()
    assert "the zebra is striped" in json.dumps(results)
