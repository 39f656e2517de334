from __future__ import annotations

import re
from typing import Any

import pytest

from agentdouble import Emulator
from agentdouble.agents.shipped import coder
from agentdouble.agents.shipped.coder import CodeBlock
from tests.agentdouble.api_server.wire import (
    NO_ACTIONS,
    create,
    event,
    generalised,
    lines,
    new_user,
    read,
    run,
    run_body,
    run_sse,
    texts,
)
from tests.agentdouble.calling import http


def body(app: str, user: str, text: str, **more: Any) -> Any:
    message = {"role": "user", "parts": [{"text": text}]}
    return {**run_body(user, app=app), "newMessage": message, **more}


@pytest.mark.smoke
def test_echo_repeats_the_message(shared: Emulator) -> None:
    """In one event."""
    user = new_user()
    create(shared.url, user, {"sessionId": "s1"}, "echo")

    events = run(shared.url, body("echo", user, "Grüße")).json()

    assert [event("Grüße", "echo")] == generalised(events)


@pytest.mark.smoke
def test_tool_caller_calls_a_tool_and_replies(shared: Emulator) -> None:
    """API-11: a call, its response, and a final reply that counts the turns in the state."""
    user = new_user()
    create(shared.url, user, {"sessionId": "s1"}, "tool_caller")

    for _ in range(2):
        call, response, final = run(shared.url, body("tool_caller", user, "a bc")).json()

    id_ = call["content"]["parts"][0]["functionCall"]["id"]
    called = {"id": id_, "args": {"text": "a bc"}, "name": "count_words"}
    result = {"id": id_, "name": "count_words", "response": {"words": 2, "letters": 3}}
    assert [
        {"parts": [{"functionCall": called}], "role": "model"},
        {"parts": [{"functionResponse": result}], "role": "user"},
    ] == [call["content"], response["content"]]
    assert event(
        "2 words, 3 letters.", "tool_caller", actions={**NO_ACTIONS, "stateDelta": {"turns": 2}}
    ) == generalised(final)


@pytest.mark.smoke
def test_coder_runs_code_in_the_sandbox(shared: Emulator) -> None:
    """The API server's session is the sandbox's, which keeps its context."""
    user = new_user()
    create(shared.url, user, {"sessionId": "s1"}, "coder")

    answers = [
        texts(run(shared.url, body("coder", user, text)).json())
        for text in ("", "x = 6", "print(x * 7)", "```\nprint(1)\n```\n```\n1/0\n```")
    ]
    living = http.get(f"{shared.url}/_emulator/sessions").json()["sessions"]

    assert ["Send me a code block and I run it."] == answers[0]
    assert [["Done, without output."], ["42"]] == answers[1:3]
    assert "1" == answers[3][0]
    assert answers[3][1].startswith("Error: ZeroDivisionError: division by zero")
    assert f"coder_{user}_s1" in [instance["UserSessionId"] for instance in living]


PLOT = "import matplotlib.pyplot as p; p.plot([1, 2]); p.show(); p.plot([3]); p.show()"


@pytest.mark.smoke
@pytest.mark.slow
def test_coder_stores_plots_as_artifacts(shared: Emulator) -> None:
    """They are in the event too; a stream separates content and artifacts."""
    user = new_user()
    create(shared.url, user, {"sessionId": "s1"}, "coder")

    first, second = lines(run_sse(shared.url, body("coder", user, PLOT)))
    path = f"{shared.url}/apps/coder/users/{user}/sessions/s1/artifacts"
    names, plot = http.get(path).json(), http.get(f"{path}/plot-1.png").json()

    parts = first["content"]["parts"]
    saved = {"plot-1.png": 0, "plot-2.png": 0}
    assert ["plot-1.png", "plot-2.png"] == names
    assert plot == parts[1]
    assert "image/png" == plot["inlineData"]["mimeType"]
    assert plot["inlineData"]["data"].startswith("iVBORw0KGgo")
    assert (first["id"], first["timestamp"]) == (second["id"], second["timestamp"])
    assert ({}, saved, False) == (
        first["actions"]["artifactDelta"],
        second["actions"]["artifactDelta"],
        "content" in second,
    )
    stored = read(shared.url, user, "s1", "coder")["events"][1]
    assert (first["content"], saved) == (stored["content"], stored["actions"]["artifactDelta"])


@pytest.mark.parametrize(
    ("message", "blocks"),
    [
        ("1 + 1", [("python3", "1 + 1")]),
        ("Run:\n```python\nprint(1)\n```\nplease", [("python", "print(1)\n")]),
        ("```\nx\n```", [("python3", "x\n")]),
        ("``` js title=a\nx\n```\n\n```python3\ny\n```", [("js", "x\n"), ("python3", "y\n")]),
        ("```python\nprint('```')\n```", [("python", "print('```')\n")]),
        ("```python\nno end", [("python3", "```python\nno end")]),
    ],
)
def test_fenced_blocks_are_found(message: str, blocks: list[tuple[str, str]]) -> None:
    """Each block with its language; a message without a block is all code."""
    assert tuple(CodeBlock(*block) for block in blocks) == coder.code_blocks(message)


def ask(double: Emulator, prompt: object) -> str:
    response = http.post(
        f"{double.url}/invoke",
        json={"prompt": prompt},
        headers={"session_id": "coder"},
        timeout=120,
    )
    answer: str = response.json()
    return answer


def test_an_agent_of_the_user_s_is_missing_where_the_double_serves_its_own(
    shared: Emulator,
) -> None:
    """The refusal lists those, and says how to serve others."""
    user = new_user()
    create(shared.url, user, {"sessionId": "s1"}, app="weather")

    refused = http.post(f"{shared.url}/run", json=body("weather", user, "hi", sessionId="s1"))

    detail = refused.json()["detail"]
    assert 404 == refused.status_code
    assert "its own agents: coder, echo, failing, streamer, tool_caller. For yours" in detail
    assert 'PlatformConfig(settings={"agents": "DIR"})' in detail


@pytest.mark.slow
def test_coder_runs_the_message_s_code(shared: Emulator) -> None:
    """The shipped application really runs it, and the session keeps its context."""
    assert "Done, without output." == ask(shared, "x = 6")
    assert "42" == ask(shared, "Please run\n```python\nprint(x * 7)\n```")


@pytest.mark.slow
def test_image_is_a_data_uri(shared: Emulator) -> None:
    """A plot is visible in the answer."""
    answer = ask(shared, "import matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()")

    assert re.search(r"!\[<Figure .*>\]\(data:image/png;base64,iVBOR[\w+/=]+\)$", answer)


@pytest.mark.parametrize("prompt", [None, 1, ["x"]])
def test_prompt_that_is_not_text_is_refused(shared: Emulator, prompt: object) -> None:
    """The error is the example's own text."""
    assert "Error: Missing required field 'prompt', a string." == ask(shared, prompt)
