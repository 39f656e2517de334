from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.api_server.wire import (
    AGENTS,
    create,
    detail,
    event,
    generalised,
    lines,
    new_user,
    read,
    run,
    run_body,
    run_order,
    run_sse,
    texts,
)
from tests.agentdouble.calling import http

pytestmark = pytest.mark.smoke


def test_run_returns_the_events_of_the_turn(agents: Emulator) -> None:
    """API-07: consecutive texts are one reply, whose fields have the wire's order."""
    user = new_user()

    events = run_order(agents.url, user, do="say", texts=["He", "llo ü"])

    assert [event("Hello ü")] == generalised(events)
    assert list(event("")) == list(events[0])


def test_run_is_stored_with_the_user_s_message(agents: Emulator) -> None:
    """API-05: the history has all events in order, under one invocation."""
    user = new_user()

    events = run_order(agents.url, user, do="tool")
    session = read(agents.url, user, "s1", "scripted")

    content = {"parts": [{"text": json.dumps({"do": "tool"})}], "role": "user"}
    call = {"functionCall": {"id": "c1", "args": {"a": 1}, "name": "add"}}
    response = {"functionResponse": {"id": "c1", "name": "add", "response": {"sum": 1}}}
    user_event = {"content": content, **event(author="user")}
    assert [
        user_event,
        {"content": {"parts": [call], "role": "model"}, **event()},
        {"content": {"parts": [response], "role": "user"}, **event()},
        event("final"),
    ] == generalised(session["events"])
    assert events == session["events"][1:]
    assert 1 == len({event["invocationId"] for event in session["events"]})
    assert 4 == len({event["id"] for event in session["events"]})
    assert session["lastUpdateTime"] == events[-1]["timestamp"]


def test_stream_framing_matches_the_real_server(agents: Emulator) -> None:
    """API-08: a data line and an empty line for each event, and nothing else."""
    user = new_user()
    create(agents.url, user, {"sessionId": "s1"}, "scripted")

    response = run_sse(agents.url, run_body(user, do="tool"))

    assert "text/event-stream; charset=utf-8" == response.headers["content-type"]
    assert "cache-control" not in response.headers
    assert read(agents.url, user, "s1", "scripted")["events"][1:] == lines(response)
    assert '{"content":{"parts":[{"functionCall":{"id":"c1"' in response.text


@pytest.mark.parametrize("streaming", [False, "no", 0])
def test_without_streaming_only_complete_replies_are_sent(agents: Emulator, streaming: Any) -> None:
    """API-09: false is the default, and increments are omitted."""
    user = new_user()
    create(agents.url, user, {"sessionId": "s1"}, "scripted")

    told_so = run_sse(agents.url, {**run_body(user, do="mixed"), "streaming": streaming})
    by_default = run_sse(agents.url, run_body(user, do="mixed"))

    expected = ["one two", "", "custom", "three"]
    assert [expected, expected] == [texts(lines(response)) for response in (told_so, by_default)]


def test_with_streaming_increments_come_first(agents: Emulator) -> None:
    """Each is partial; the complete reply follows, and only that is stored."""
    user = new_user()
    create(agents.url, user, {"sessionId": "s1"}, "scripted")

    response = run_sse(agents.url, {**run_body(user, do="mixed"), "streaming": True})

    def partial(text: str) -> dict[str, Any]:
        return event(text, partial=True)

    data = {"inlineData": {"data": "__4A", "mimeType": "x/y"}}
    final = [
        event("one two"),
        {"content": {"parts": [data], "role": "model"}, **event()},
        event("custom", author="helper", finishReason="STOP", branch="b"),
        event("three"),
    ]
    one, two, incre, three = (partial(text) for text in ("one ", "two", "incre", "three"))
    assert [one, two, final[0], final[1], incre, final[2], three, final[3]] == generalised(
        lines(response)
    )
    assert final == generalised(read(agents.url, user, "s1", "scripted")["events"][1:])


@pytest.mark.parametrize("route", ["/run", "/run_sse"])
@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        ({"sessionId": "nope"}, 404, "Session not found: nope"),
        ({"userId": "nobody"}, 404, "Session not found: s1"),
        (
            {"appName": "none"},
            404,
            (
                "Agent not found: 'none'. No matching directory or module exists in "
                f"'{AGENTS / 'none'}'."
            ),
        ),
        (
            {"appName": "../scripted"},
            404,
            (
                "Invalid agent name: '../scripted'. Agent names must be valid Python identifiers "
                "(letters, digits, and underscores only)."
            ),
        ),
        (
            {"appName": "__internal"},
            403,
            (
                "Access to internal special agents is disabled in API server mode and on a "
                "development server not known to be bound to a loopback address."
            ),
        ),
        (
            {"appName": ""},
            400,
            "app_name is required when ADK_DEFAULT_APP_NAME is not set",
        ),
        (
            {"appName": None},
            400,
            "app_name is required when ADK_DEFAULT_APP_NAME is not set",
        ),
        (
            {"appName": "broken_import"},
            500,
            (
                "Failed to load agent 'broken_import': KeyError: 'not today' "
                f"({AGENTS / 'broken_import' / '__init__.py'}:1)"
            ),
        ),
    ],
)
def test_invalid_runs_are_refused_before_the_stream(
    agents: Emulator, route: str, change: dict[str, Any], status: int, reason: str
) -> None:
    """API-12: JSON with the reason, and no event is stored."""
    user = new_user()
    create(agents.url, user, {"sessionId": "s1"}, "scripted")

    response = http.post(agents.url + route, json={**run_body(user, do="tool"), **change})

    assert (status, reason) == detail(response)
    assert [] == read(agents.url, user, "s1", "scripted")["events"]


WRONG = [
    ("userId", None, "missing", "Field required"),
    ("sessionId", None, "missing", "Field required"),
    ("userId", 5, "string_type", "Input should be a valid string"),
    ("streaming", "perhaps", "bool_parsing", "unable to interpret input"),
    ("stateDelta", 5, "dict_type", "Input should be a valid dictionary"),
    ("newMessage", "hi", "model_attributes_type", "Input should be a valid dictionary"),
]


@pytest.mark.parametrize("route", ["/run", "/run_sse"])
@pytest.mark.parametrize(("field", "value", "type_", "message"), WRONG)
def test_invalid_fields_are_named(
    agents: Emulator, route: str, field: str, value: Any, type_: str, message: str
) -> None:
    """API-12: 422, also where the answer would be a stream."""
    body = run_body(new_user(), do="tool")
    body = {**body, field: value}
    if value is None:
        del body[field]

    status, problems = detail(http.post(agents.url + route, json=body))

    assert (422, 1) == (status, len(problems))
    assert (type_, ["body", field]) == (problems[0]["type"], problems[0]["loc"])
    assert message in problems[0]["msg"]


@pytest.mark.parametrize(
    ("message", "type_", "loc"),
    [
        ({"parts": [{"txt": "x"}]}, "extra_forbidden", ["parts", 0, "txt"]),
        ({"parts": "x"}, "list_type", ["parts"]),
        ({"part": []}, "extra_forbidden", ["part"]),
        ({"parts": [{"text": 5}]}, "string_type", ["parts", 0, "text"]),
        (
            {"parts": [{"inlineData": {"data": "!!"}}]},
            "bytes_invalid_encoding",
            ["parts", 0, "inlineData", "data"],
        ),
    ],
)
def test_message_is_parsed_strictly(
    agents: Emulator, message: Any, type_: str, loc: list[Any]
) -> None:
    """Unknown keys inside it are refused, those beside it ignored."""
    body = {**run_body(new_user()), "newMessage": message, "unknown": 1}

    status, problems = detail(run(agents.url, body))

    assert 422 == status
    assert [(type_, ["body", "newMessage", *loc])] == [(p["type"], p["loc"]) for p in problems]


WHERE = "Session: s1, User: {user}"
CANNOT_BEGIN = [
    (
        {"newMessage": None},
        (
            "Running an agent requires either a new_message or an invocation_id to resume a "
            f"previous invocation. {WHERE}"
        ),
    ),
    (
        {"newMessage": None, "invocationId": "i1"},
        f"Running an agent requires a new_message or a resumable app. {WHERE}",
    ),
    ({"newMessage": {}}, "No parts in the new_message."),
    ({"newMessage": {"parts": []}}, "No parts in the new_message."),
    (
        {"newMessage": {"parts": [{"functionCall": {"name": "x"}}]}},
        "User message cannot contain function calls.",
    ),
]


@pytest.mark.parametrize(("change", "reason"), CANNOT_BEGIN)
def test_empty_message_is_an_error(agents: Emulator, change: dict[str, Any], reason: str) -> None:
    """API-12: a 500 or the stream's last line says why; nothing is stored."""
    user = new_user()
    create(agents.url, user, {"sessionId": "s1"}, "scripted")
    body, reason = {**run_body(user), **change}, reason.format(user=user)

    answer, stream = run(agents.url, body), run_sse(agents.url, body)

    details = {"error_type": "ValueError", "error_message": reason, "timestamp": "<time>"}
    message = f"ValueError: {reason}"
    assert (500, {"detail": message, "error_details": details}) == (
        answer.status_code,
        generalised(answer.json()),
    )
    assert [{"error": message, "error_details": details}] == generalised(lines(stream))
    assert [] == read(agents.url, user, "s1", "scripted")["events"]


def test_agent_exception_is_answered_in_json(
    agents: Emulator, caplog: pytest.LogCaptureFixture
) -> None:
    """U-RUN-ERROR: earlier events are stored, and the log has the traceback."""
    user = new_user()
    create(agents.url, user, {"sessionId": "s1"}, "scripted")

    response = run(agents.url, run_body(user, do="fail", texts=["before"], message="boom ü"))

    assert (500, "application/json") == (response.status_code, response.headers["content-type"])
    assert {
        "detail": "RuntimeError: boom ü",
        "error_details": {
            "error_type": "RuntimeError",
            "error_message": "boom ü",
            "timestamp": "<time>",
        },
    } == generalised(response.json())
    assert ["before"] == texts(read(agents.url, user, "s1", "scripted")["events"])[1:]
    (record,) = [log for log in caplog.records if log.name.startswith("agentdouble.api_server")]
    assert ("The agent of scripted raised.", logging.ERROR) == (record.getMessage(), record.levelno)
    assert record.exc_info is not None


def test_an_agent_without_a_key_learns_of_the_model(
    agents: Emulator, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says it; the answer is the real server's."""
    user, reason = new_user(), "No API key was provided."
    create(agents.url, user, {"sessionId": "s1"}, "scripted")

    answer = run(agents.url, run_body(user, do="fail", texts=[], message=reason)).json()

    assert f"RuntimeError: {reason}" == answer["detail"]
    assert "use the fixture platform_model" in caplog.text


def test_agent_exception_ends_a_stream_with_a_line(agents: Emulator) -> None:
    """U-RUN-SSE-ERROR: its JSON is formatted unlike the events', with escaped letters."""
    user = new_user()
    create(agents.url, user, {"sessionId": "s1"}, "scripted")

    response = run_sse(agents.url, run_body(user, do="fail", texts=["before"], message="boom ü"))

    before, last, end = response.text.split("\n\n")
    assert ("before", "") == (json.loads(before[6:])["content"]["parts"][0]["text"], end)
    assert last.startswith(
        'data: {"error": "RuntimeError: boom \\u00fc", "error_details": '
        '{"error_type": "RuntimeError", "error_message": "boom \\u00fc", "timestamp": '
    )


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ({"do": "leave"}, "ApplicationExitError: SystemExit: 3"),
        ({"do": "cancel"}, "RunEndedError: The agent of 'scripted' was cancelled."),
    ],
)
def test_agent_cannot_stop_its_loop(agents: Emulator, order: dict[str, str], message: str) -> None:
    """sys.exit() and a cancellation end only their run."""
    user = new_user()
    create(agents.url, user, {"sessionId": "s1"}, "scripted")

    response = run(agents.url, run_body(user, **order))

    assert (500, message) == (response.status_code, response.json()["detail"])
    assert ["fine"] == texts(run_order(agents.url, user, do="say", texts=["fine"]))


@pytest.mark.parametrize(
    ("order", "message"),
    [
        *(
            (
                {"do": "wrong", "kind": kind},
                (
                    f"AgentYieldError: The agent of 'scripted' yielded a value of type {name}. It may "
                    "yield a str, a Part or an Event of agentdouble.agents."
                ),
            )
            for kind, name in (
                ("dict", "dict"),
                ("none", "NoneType"),
                ("int", "int"),
                ("bytes", "bytes"),
            )
        ),
        ({"do": "unsayable"}, "TypeError: "),
    ],
)
def test_yielding_a_wrong_type_is_an_error(
    agents: Emulator, order: dict[str, str], message: str
) -> None:
    """The error names the type and the valid types."""
    user = new_user()
    create(agents.url, user, {"sessionId": "s1"}, "scripted")

    response = run(agents.url, run_body(user, **order))

    assert 500 == response.status_code
    assert response.json()["detail"].startswith(message)


def test_ledger_selects_the_error_format() -> None:
    """Plain text, like the real server, and ``error`` alone, like its older releases."""
    body = run_body("ann", do="fail", texts=[], message="boom ü")
    chosen = {"U-RUN-ERROR": "text", "U-RUN-SSE-ERROR": "error-only"}
    with Emulator(agents=AGENTS, unknowns=chosen) as double:
        create(double.url, "ann", {"sessionId": "s1"}, "scripted")
        answer, stream = run(double.url, body), run_sse(double.url, body)

    assert (500, "text/plain; charset=utf-8", "Internal Server Error") == (
        answer.status_code,
        answer.headers["content-type"],
        answer.text,
    )
    assert 'data: {"error":"boom ü"}\n\n' == stream.text


def test_ledger_can_create_unknown_sessions() -> None:
    """U-RUN-UNKNOWN-SESSION."""
    with Emulator(agents=AGENTS, unknowns={"U-RUN-UNKNOWN-SESSION": "create"}) as double:
        events = run(double.url, run_body("ann", do="say", texts=["hi"])).json()
        session = read(double.url, "ann", "s1", "scripted")

    assert ["hi"] == texts(events)
    assert 2 == len(session["events"])


def test_ledger_selects_the_event_fields() -> None:
    """U-EVENT-FIELDS: content alone, in lists, streams and histories."""
    with Emulator(agents=AGENTS, unknowns={"U-EVENT-FIELDS": "content-only"}) as double:
        create(double.url, "ann", {"sessionId": "s1"}, "scripted")
        body = run_body("ann", do="say", texts=["hi"])
        answers = [run(double.url, body).json(), lines(run_sse(double.url, body))]
        history = read(double.url, "ann", "s1", "scripted")["events"]

    only = {"content": {"parts": [{"text": "hi"}], "role": "model"}}
    assert [[only], [only]] == answers
    assert [["content"]] * 4 == [list(message) for message in history]


def test_state_is_stored(agents: Emulator) -> None:
    """API-17: an agent's changes are in the next event, and in the scopes."""
    user = new_user()
    create(agents.url, user, {"sessionId": "s1", "state": {"old": 1}}, "scripted")
    values = {"a": 1, "user:b": [2], "temp:c": 3}

    (first,) = run(agents.url, run_body(user, do="remember", **values)).json()
    (second,) = run(agents.url, run_body(user, do="remember")).json()
    (elsewhere,) = run_order(agents.url, user, "s2", do="remember")

    state = {"a": 1, "user:b": [2]}
    assert [{"old": 1}, {"old": 1, **values}] == json.loads(texts([first])[0])
    assert state == first["actions"]["stateDelta"]
    assert [{"old": 1, **state}] * 2 == json.loads(texts([second])[0])
    assert [{"user:b": [2]}] * 2 == json.loads(texts([elsewhere])[0])
    assert {"old": 1, **state} == read(agents.url, user, "s1", "scripted")["state"]


def test_request_can_change_state(agents: Emulator) -> None:
    """``stateDelta`` is on the user's event, and the agent sees it, ``temp:`` included."""
    user = new_user()
    create(agents.url, user, {"sessionId": "s1"}, "scripted")
    body = {**run_body(user, do="remember"), "stateDelta": {"a": 1, "user:x": 2, "temp:t": 3}}

    (answer,) = run(agents.url, body).json()
    session = read(agents.url, user, "s1", "scripted")

    assert [{"a": 1, "user:x": 2, "temp:t": 3}] * 2 == json.loads(texts([answer])[0])
    assert {"a": 1, "user:x": 2} == session["events"][0]["actions"]["stateDelta"]
    assert {"a": 1, "user:x": 2} == session["state"]


def test_agent_sees_the_history(agents: Emulator) -> None:
    """API-17: earlier turns, this turn's message and its own events so far."""
    user = new_user()
    run_order(agents.url, user, do="say", texts=["hello"])

    first, second = run_order(agents.url, user, do="history")

    assert ["first"] == texts([first])
    assert [
        ["user", json.dumps({"do": "say", "texts": ["hello"]})],
        ["scripted", "hello"],
        ["user", json.dumps({"do": "history"})],
        ["scripted", "first"],
    ] == json.loads(texts([second])[0])


def test_applications_are_listed(agents: Emulator) -> None:
    """API-01, API-16: sorted, including those that fail to import."""
    names = http.get(f"{agents.url}/list-apps")
    apps = http.get(f"{agents.url}/list-apps?detailed=true").json()["apps"]

    assert (200, '["broken_import","scripted"]') == (names.status_code, names.text)
    assert [
        {
            "name": "scripted",
            "rootAgentName": "scripted",
            "description": "Do what the message says.",
            "language": "python",
            "isComputerUse": False,
            "agents": None,
        }
    ] == apps


def test_ledger_selects_the_list_of_applications() -> None:
    """U-LIST-APPS: with details by default."""
    with Emulator(unknowns={"U-LIST-APPS": "detailed"}) as double:
        listed = http.get(f"{double.url}/list-apps").json()["apps"]

    assert "echo" in [app["name"] for app in listed]
