"""Blocking and async clients of API-server mode, and the display of their values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from doublecheck import Platform, Target
from doublecheck.client.doubles import serving_double
from doublecheck.contracts.conftest import REFERENCE_AGENTS
from doublecheck.errors import AnswerError, RefusedError
from doublecheck.results import AgentEvent, AgentSession
from doublecheck.wire import api_server
from tests.doublecheck import bad_servers

APP, SECOND = "doublecheck_reference", "doublecheck_second"
TOOL = json.dumps({"do": "tool", "word": "owl"})


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with serving_double(agents=REFERENCE_AGENTS) as target:
        yield target


def test_create_list_read_and_delete_sessions(client: Platform) -> None:
    created = client.agents.create(APP, user_id="ann", session_id="s 1", state={"a": 1})
    listed = client.agents.list(APP, user_id="ann")
    read = client.agents.get(APP, "s 1", user_id="ann")
    client.agents.delete(created)

    assert (APP, "ann", "s 1", {"a": 1}, ()) == (
        created.app_name,
        created.user_id,
        created.id,
        created.state,
        created.events,
    )
    assert ((created,), created) == (listed, read)
    assert () == client.agents.list(APP, user_id="ann")


def test_an_unknown_session_is_refused(client: Platform) -> None:
    """Reading and running it both fail."""
    deleted = client.agents.create(APP)
    client.agents.delete(deleted)

    for call in (
        lambda: client.agents.get(APP, deleted.id),
        lambda: client.agents.run(deleted, "hello"),
        lambda: next(client.agents.run_sse(deleted, "hello")),
    ):
        with pytest.raises(RefusedError, match="HTTP 404: Session not found"):
            call()


def test_a_run_returns_its_events(client: Platform) -> None:
    session = client.agents.create(APP)

    text, call, response, final = client.agents.run(session, TOOL, stateDelta={"b": 2})

    assert ["owl", "owl has 3 letters."] == [text.text, final.text]
    assert [("count_letters", {"word": "owl"})] == [
        (function_call["name"], function_call["args"]) for function_call in call.function_calls
    ]
    assert [{"letters": 3}] == [response["response"] for response in response.function_responses]
    history = client.agents.get(APP, session.id)
    assert (text, call, response, final) == history.events[1:]
    assert {"b": 2} == history.state
    assert (APP, SECOND) == client.agents.list_apps()
    assert () == client.agents.list_artifacts(session)


def test_a_stream_yields_events_as_they_arrive(client: Platform) -> None:
    """Increments are optional, and the stream can be left early."""
    session = client.agents.create(APP)

    all_of_them = list(client.agents.run_sse(session, "word"))
    with closing(client.agents.run_sse(session, TOOL, streaming=True)) as events:
        first = next(events)

    assert [("word", False)] == [(event.text, event.partial) for event in all_of_them]
    assert ("o", True) == (first.text, first.partial)


def test_a_failure_is_an_event_or_an_error(client: Platform) -> None:
    """A stream ends with an error event; any other run raises RefusedError."""
    session = client.agents.create(APP)
    wrong = json.dumps({"do": "stream"})

    (event,) = client.agents.run_sse(session, wrong)
    with pytest.raises(RefusedError, match=r"HTTP 500.*missing 1 required") as caught:
        client.agents.run(session, wrong)

    assert "TypeError" in (event.error or "")
    assert 500 == caught.value.status


def saved(client: Platform, session: AgentSession, *parts: dict[str, object]) -> None:
    """Save the versions of the artifact ``plots/a 1.png``."""
    for part in parts:
        body = json.dumps({"filename": "plots/a 1.png", "artifact": part}).encode()
        headers = {"Content-Type": "application/json"}
        own = api_server.session_path(session.app_name, session.user_id, session.id)
        assert (
            200
            == client.request("POST", f"{own}/artifacts", headers=headers, content=body).status_code
        )


def test_artifacts_are_fetched_by_name_and_version(client: Platform) -> None:
    """The newest version is the default."""
    session = client.agents.create(APP)
    saved(client, session, {"text": "ü"}, {"inlineData": {"data": "+/8=", "mimeType": "x/y"}})

    (name,) = client.agents.list_artifacts(session)
    assert b"\xfb\xff" == client.agents.download_artifact(session, name)
    assert ["ü".encode(), b"\xfb\xff"] == [
        client.agents.download_artifact(session, name, version=version) for version in (0, 1)
    ]


def test_a_missing_artifact_is_refused(client: Platform) -> None:
    """So is one whose bytes are stored elsewhere."""
    session = client.agents.create(APP)
    saved(client, session, {"fileData": {"fileUri": "gs://x/y", "mimeType": "x/y"}})

    for name, version in (("none", None), ("plots/a 1.png", 1)):
        with pytest.raises(RefusedError, match="HTTP 404: Artifact not found"):
            client.agents.download_artifact(session, name, version=version)
    with pytest.raises(AnswerError, match="but has fileData"):
        client.agents.download_artifact(session, "plots/a 1.png")


def test_values_have_a_repr_and_html() -> None:
    """The HTML is escaped."""
    call = {"functionCall": {"name": "<f>"}}
    answer = {"functionResponse": {"name": "f"}}
    event = AgentEvent("model", ({"text": "<hi>"}, call, answer), author="a", partial=True)
    failed = AgentEvent(None, (), error="it broke")
    session = AgentSession("s1", "app", "ann", {"k": 1}, (event, failed))

    assert "<AgentEvent a partial '<hi>' calls <f> answers f>" == repr(event)
    assert "<AgentEvent ? error='it broke'>" == repr(failed)
    assert "<AgentSession app/ann/s1 events=2 state={'k': 1}>" == repr(session)
    bundle = session._repr_mimebundle_()
    assert repr(session) == bundle["text/plain"]
    assert "&lt;hi&gt;" in bundle["text/html"]
    assert "&lt;f&gt;" in bundle["text/html"]
    assert "it broke" in bundle["text/html"]
    assert "&lt;hi&gt;" in event._repr_mimebundle_()["text/html"]


SESSION = AgentSession("s1", APP, "ann")


@pytest.mark.parametrize(
    ("ask", "body"),
    [
        (lambda live: live.agents.list_apps(), b'[{"nom": 1}]'),
        (lambda live: live.agents.list_apps(), b"5"),
        (lambda live: live.agents.list(APP), b"5"),
        (lambda live: live.agents.list_artifacts(SESSION), b"5"),
        (lambda live: live.agents.run(SESSION, "hi"), b'["x"]'),
        (lambda live: live.agents.run(SESSION, "hi"), b'[{"content": {"parts": ["x"]}}]'),
        (lambda live: live.agents.run(SESSION, "hi"), b'[{"content": {"parts": [{"text": 5}]}}]'),
    ],
)
def test_unexpected_json_is_reported_with_its_request(
    ask: Callable[[Platform], object], body: bytes
) -> None:
    """The error has the JSON."""
    with (
        bad_servers.serving(bad_servers.answer(body)) as server,
        Platform(Target(server.url, "live")) as live,
        pytest.raises(AnswerError, match=r"^(GET|POST) http://.* returned ") as raised,
    ):
        ask(live)

    assert (200, body.decode()) == (raised.value.status, raised.value.body)
