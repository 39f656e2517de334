"""What the model sends and accepts in each wire form."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from agentdouble import Emulator
from agentdouble.model.endpoint import CODE, SHIPPED
from tests.agentdouble.model.clients import (
    ARGUMENTS,
    CALL,
    CONTENT,
    RESPONSES,
    USER,
    Model,
    events,
)

pytestmark = pytest.mark.smoke


def test_a_chat_completion_has_text_or_calls(model: Model) -> None:
    model.script({"text": "It is 42."}, CALL)

    text = model.chat(USER).json()
    call = model.chat(USER).json()["choices"][0]

    assert isinstance(text.pop("created"), int)
    assert {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "It is 42.", "refusal": None},
                "finish_reason": "stop",
                "logprobs": None,
            }
        ],
        "usage": {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8},
    } == text
    function = {"name": "run_code", "arguments": '{"code": "6*7"}'}
    assert "tool_calls" == call["finish_reason"]
    assert [{"id": "call_2_1", "type": "function", "function": function}] == call["message"][
        "tool_calls"
    ]


def test_a_chat_completion_streams_words_and_calls(model: Model) -> None:
    model.script({"text": "I run it.", **CALL})

    *chunks, usage, end = events(
        model.chat(USER, stream=True, stream_options={"include_usage": True})
    )

    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert [
        {"role": "assistant", "content": ""},
        *({"content": word} for word in ("I ", "run ", "it.")),
        {
            "tool_calls": [
                {
                    "index": 0,
                    "id": "call_1_1",
                    "type": "function",
                    "function": {"name": "run_code", "arguments": ""},
                }
            ]
        },
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"code": "6*7"}'}}]},
        {},
    ] == deltas
    assert "tool_calls" == chunks[-1]["choices"][0]["finish_reason"]
    assert ([], "[DONE]") == (usage["choices"], end)


def test_a_response_has_the_same_output_whole_and_streamed(model: Model) -> None:
    model.script({"text": "I run it.", **CALL, "times": 2})
    body = {**RESPONSES, "input": "What is 6 * 7?"}

    whole = model.openai.post("/responses", json=body).json()
    stream = events(model.openai.post("/responses", json={**body, "stream": True}))

    assert list(range(len(stream))) == [event["sequence_number"] for event in stream]
    last = stream[-1]["response"]
    assert ("response.completed", "completed") == (stream[-1]["type"], last["status"])
    assert ["message", "function_call"] == [item["type"] for item in whole["output"]]
    renamed = json.loads(json.dumps(last["output"]).replace("_2", "_1"))
    assert whole["output"] == renamed
    deltas = [e["delta"] for e in stream if e["type"] == "response.output_text.delta"]
    assert ["I ", "run ", "it."] == deltas


def test_gemini_answers_whole_as_events_and_as_an_array(model: Model) -> None:
    model.script({"text": "I run it.", **CALL, "times": 3})

    whole = model.generate(CONTENT).json()
    stream = events(model.generate(CONTENT, method="streamGenerateContent?alt=sse"))
    array = model.generate(CONTENT, method="streamGenerateContent").json()

    call = {"functionCall": {"id": "call_1_1", "name": "run_code", "args": ARGUMENTS}}
    assert {
        "candidates": [
            {
                "content": {"role": "model", "parts": [{"text": "I run it."}, call]},
                "index": 0,
                "finishReason": "STOP",
            }
        ],
        "usageMetadata": {
            "promptTokenCount": 5,
            "candidatesTokenCount": 5,
            "totalTokenCount": 10,
        },
        "modelVersion": "gemini-pro",
        "responseId": "response-1",
    } == whole
    for pieces in (stream, array):
        parts = [piece["candidates"][0]["content"]["parts"][0] for piece in pieces]
        assert ["I ", "run ", "it."] == [part["text"] for part in parts[:-1]]
        assert "run_code" == parts[-1]["functionCall"]["name"]


def test_each_form_reads_the_result_of_a_tool(model: Model) -> None:
    """A script can wait for the tool and repeat what it returned."""
    model.script({"text": "It is {{result}}.", "times": 3}, after="run_code")
    function = {"name": "run_code", "arguments": "{}"}
    called = {"id": "c", "type": "function", "function": function}
    calling_item = {"type": "function_call", "call_id": "c", **function}
    result = {"type": "function_call_output", "call_id": "c", "output": "42"}
    calling = {"role": "model", "parts": [{"functionCall": {"name": "run_code", "args": {}}}]}
    returned = {"functionResponse": {"name": "run_code", "response": {"result": "42"}}}

    chat = model.chat(
        USER,
        {"role": "assistant", "content": None, "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "c", "content": "42"},
    ).json()
    response = model.openai.post(
        "/responses", json={**RESPONSES, "input": [USER, calling_item, result]}
    )
    gemini = model.generate(CONTENT, calling, {"role": "user", "parts": [returned]}).json()

    assert "It is 42." == chat["choices"][0]["message"]["content"]
    assert "It is 42." == response.json()["output"][0]["content"][0]["text"]
    assert "It is 42." == gemini["candidates"][0]["content"]["parts"][0]["text"]
    turns = [request["turns"] for request in model.admin.get("/model").json()["requests"]]
    assert [["user", "assistant", "tool"]] * 3 == [[t["role"] for t in listed] for listed in turns]


@pytest.mark.parametrize(
    ("messages", "fields", "message"),
    [
        ([{"role": "boss", "content": "x"}], {}, "messages[0].role must be one of"),
        (
            [{"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f"}}]}],
            {},
            "messages[0].tool_calls[0].function.arguments must be a string, not None",
        ),
        (
            [{"role": "tool", "tool_call_id": "c", "content": "42"}],
            {},
            "The result of the tool call 'c' follows no such call; the conversation has none",
        ),
        ([USER], {"n": 2}, "n is not supported: a script has one answer"),
        ([USER], {"model": 7}, "model must be a string, not 7"),
    ],
)
def test_malformed_requests_are_refused(
    model: Model, messages: list[Any], fields: dict[str, Any], message: str
) -> None:
    """The message names the place."""
    model.script({"text": "never", "times": "all"})

    refused = model.chat(*messages, **fields)

    assert 400 == refused.status_code
    assert message in refused.json()["error"]["message"]


def test_a_wrong_key_is_refused_in_the_wire_form(running: Emulator) -> None:
    """The double's own token and no key at all do not open the model either."""
    url = f"{running.url}/model"
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"X-API-Key": running.token}):
        openai = httpx.post(f"{url}/v1/responses", json={}, headers=headers)
        gemini = httpx.post(f"{url}/v1beta/models/m:generateContent", json={}, headers=headers)

        assert (401, 401) == (openai.status_code, gemini.status_code)
        assert "Unauthorized" == openai.json()["error"]["code"]
        assert "UNAUTHENTICATED" == gemini.json()["error"]["status"]
        assert "env --for model" in gemini.json()["error"]["message"]


def test_malformed_arguments_are_sent_as_they_are(model: Model) -> None:
    """Only Gemini's form has no place for them."""
    model.script({"calls": [{"name": "run_code", "arguments": '{"code": '}], "times": 2})

    message = model.chat(USER).json()["choices"][0]["message"]
    refused = model.generate(CONTENT, method="streamGenerateContent?alt=sse")

    assert '{"code": ' == message["tool_calls"][0]["function"]["arguments"]
    assert 400 == refused.status_code
    assert "arguments are an object" in refused.json()["error"]["message"]


def test_models_are_listed_and_limited(model: Model) -> None:
    model.admin.post("/model", json={"models": ["gpt-4o", "gemini-pro"]})
    model.script({"text": "Hello."})

    refused = model.chat(USER, model="gpt-4")

    assert (404, "model_not_found") == (refused.status_code, refused.json()["error"]["code"])
    assert "There is no model 'gpt-4'; there are gpt-4o, gemini-pro." in refused.text
    assert ["gpt-4o", "gemini-pro"] == [m["id"] for m in model.openai.get("/models").json()["data"]]
    assert 200 == model.generate(CONTENT).status_code


def test_the_shipped_script_calls_run_code() -> None:
    """Its answer has the tool's result."""
    with Emulator(model_scripts=SHIPPED) as double, Model(double) as model:
        call = model.chat(USER).json()["choices"][0]["message"]["tool_calls"][0]
        without = model.chat(USER, tools=[]).json()["choices"][0]["message"]["content"]
        result = {"role": "tool", "tool_call_id": call["id"], "content": "6 * 7 = 42"}
        last = model.chat(USER, {"role": "assistant", "tool_calls": [call]}, result).json()

    assert CODE == json.loads(call["function"]["arguments"])["code"]
    assert "Give the agent the tool run_code" in without
    assert last["choices"][0]["message"]["content"].endswith("printed: 6 * 7 = 42")
