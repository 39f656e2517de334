"""Fields of a request that limit its answer: each is honoured, or refused by name."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.agentdouble.model.clients import CALL, CONTENT, USER, Model, events

pytestmark = pytest.mark.smoke

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "degrees": {"type": "integer"}},
    "required": ["city", "degrees"],
    "additionalProperties": False,
}
GOOD, BAD = '{"city": "Oslo", "degrees": 3}', '{"city": "Oslo"}'
OTHER = {"name": "other", "parameters": {"type": "object"}}
TWO_CHAT = [{"type": "function", "function": {"name": n}} for n in ("run_code", "other")]
TWO_RESPONSES = [{"type": "function", "name": n} for n in ("run_code", "other")]
TWO_GEMINI = [{"functionDeclarations": [{"name": "run_code"}, OTHER]}]


def choice(kind: str, form: str) -> dict[str, Any]:
    """Return the fields of a form for one choice of tools."""
    function = {"name": "other"}
    choices: dict[str, dict[str, dict[str, Any]]] = {
        "none": {
            "chat": {"tool_choice": "none"},
            "responses": {"tool_choice": "none"},
            "gemini": {"toolConfig": {"functionCallingConfig": {"mode": "NONE"}}},
        },
        "required": {
            "chat": {"tool_choice": "required"},
            "responses": {"tool_choice": "required"},
            "gemini": {"tool_config": {"function_calling_config": {"mode": "ANY"}}},
        },
        "other": {
            "chat": {"tool_choice": {"type": "function", "function": function}},
            "responses": {"tool_choice": {"type": "function", **function}},
            "gemini": {
                "toolConfig": {
                    "functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["other"]}
                }
            },
        },
        "allowed": {
            "chat": {
                "tool_choice": {
                    "type": "allowed_tools",
                    "allowed_tools": {
                        "mode": "auto",
                        "tools": [{"type": "function", "function": function}],
                    },
                }
            },
            "responses": {
                "tool_choice": {
                    "type": "allowed_tools",
                    "mode": "auto",
                    "tools": [{"type": "function", **function}],
                }
            },
            "gemini": {
                "toolConfig": {
                    "functionCallingConfig": {
                        "mode": "VALIDATED",
                        "allowedFunctionNames": ["other"],
                    }
                }
            },
        },
    }
    return choices[kind][form]


FORMS = ("chat", "responses", "gemini")


def ask(model: Model, form: str, fields: dict[str, Any]) -> httpx.Response:
    """Send a request with two tools in one of the forms."""
    fields = dict(fields)
    if form == "chat":
        messages = fields.pop("messages", [USER])
        return model.chat(*messages, **{"tools": TWO_CHAT, **fields})
    if form == "responses":
        content = fields.pop("input", "What is 6 * 7?")
        return model.respond(content, **{"tools": TWO_RESPONSES, **fields})
    contents = fields.pop("contents", [CONTENT])
    return model.generate(*contents, **{"tools": TWO_GEMINI, **fields})


def said(form: str, response: httpx.Response) -> tuple[str, list[str], str]:
    """Return the text of an answer, the names of the tools that it calls, and how it ends."""
    assert 200 == response.status_code, response.text
    body = response.json()
    if form == "chat":
        choice = body["choices"][0]
        calls = choice["message"].get("tool_calls", [])
        names = [call["function"]["name"] for call in calls]
        return choice["message"]["content"] or "", names, choice["finish_reason"]
    if form == "responses":
        texts = [i["content"][0]["text"] for i in body["output"] if i["type"] == "message"]
        names = [item["name"] for item in body["output"] if item["type"] == "function_call"]
        reason = (body["incomplete_details"] or {}).get("reason", body["status"])
        return "".join(texts), names, reason
    (candidate,) = body["candidates"]
    parts = candidate["content"]["parts"]
    names = [part["functionCall"]["name"] for part in parts if "functionCall" in part]
    return "".join(p.get("text", "") for p in parts), names, candidate["finishReason"]


def message(response: httpx.Response) -> str:
    """Return the message of a refusal."""
    assert 400 == response.status_code, response.text
    text: str = response.json()["error"]["message"]
    return text


@pytest.mark.parametrize("form", FORMS)
def test_the_choice_of_tools_is_kept(model: Model, form: str) -> None:
    """An answer that a model could not give is refused, and says what the request demands."""
    other = {"calls": [{"name": "other"}]}
    model.script(CALL, {"text": "No."}, CALL, CALL, other, {"text": "No."})

    none = message(ask(model, form, choice("none", form)))
    required = message(ask(model, form, choice("required", form)))
    wrong = message(ask(model, form, choice("other", form)))
    not_allowed = message(ask(model, form, choice("allowed", form)))
    right = said(form, ask(model, form, choice("other", form)))
    optional = said(form, ask(model, form, choice("allowed", form)))

    assert "calls 'run_code'" in none
    assert "which allows no tool" in none
    assert "calls no tool" in required
    assert "which allows other" in wrong
    assert "which allows other" in not_allowed
    assert ["other"] == right[1]
    assert "No." == optional[0]


@pytest.mark.parametrize("form", FORMS)
def test_a_script_for_a_tool_is_not_for_a_request_that_forbids_it(model: Model, form: str) -> None:
    model.script({**CALL, "times": "all"}, tool="run_code")
    model.script({"text": "Without tools."})

    assert "Without tools." == said(form, ask(model, form, choice("none", form)))[0]


@pytest.mark.parametrize("form", FORMS)
def test_a_choice_names_only_tools_of_the_request(model: Model, form: str) -> None:
    model.script({"text": "never"})
    fields = {"tools": [], **choice("other", form)}

    assert "other" in message(ask(model, form, fields))


@pytest.mark.parametrize("form", ["chat", "responses"])
def test_calls_in_parallel_can_be_forbidden(model: Model, form: str) -> None:
    model.script({"calls": [{"name": "run_code"}, {"name": "other"}], "times": 2})

    assert ["run_code", "other"] == said(form, ask(model, form, {}))[1]
    refused = message(ask(model, form, {"parallel_tool_calls": False}))
    assert "calls run_code and other at once" in refused


LIMITS = {
    "chat": (("max_tokens", "max_completion_tokens"), "length"),
    "responses": (("max_output_tokens",), "max_output_tokens"),
    "gemini": (("maxOutputTokens", "max_output_tokens"), "MAX_TOKENS"),
}


@pytest.mark.parametrize("form", FORMS)
def test_an_answer_ends_at_the_limit_of_tokens(model: Model, form: str) -> None:
    """A limit that the answer keeps changes nothing; words are tokens, also in the usage."""
    model.script({"text": "one two three", "times": "all"})
    names, reason = LIMITS[form]
    for name in names:
        for limit, text in ((2, "one two "), (3, "one two three")):
            fields: dict[str, Any] = {name: limit}
            answer = ask(model, form, {"generationConfig": fields} if form == "gemini" else fields)

            assert text == said(form, answer)[0]
            assert (reason == said(form, answer)[2]) == (limit == 2)
            assert str(limit) in str(answer.json().get("usage", answer.json().get("usageMetadata")))


@pytest.mark.parametrize("form", FORMS)
def test_a_call_over_the_limit_is_cut_or_left_out(model: Model, form: str) -> None:
    """OpenAI's arguments are text and end anywhere; Gemini's are an object."""
    model.script({"text": "I run it.", **CALL})
    name = LIMITS[form][0][0]
    fields: dict[str, Any] = {name: 4}

    answer = ask(model, form, {"generationConfig": fields} if form == "gemini" else fields)
    text, names, reason = said(form, answer)

    assert ("I run it.", LIMITS[form][1]) == (text, reason)
    assert ([] if form == "gemini" else ["run_code"]) == names
    assert ('{\\"code\\": "' in answer.text) == (form != "gemini")


def test_a_streamed_answer_ends_at_the_limit_too(model: Model) -> None:
    model.script({"text": "one two three", "times": "all"})

    chunks = events(model.chat(USER, stream=True, max_tokens=1))
    items = events(model.respond("x", stream=True, max_output_tokens=1))
    config = {"maxOutputTokens": 1}
    pieces = events(
        model.generate(CONTENT, method="streamGenerateContent?alt=sse", generationConfig=config)
    )

    assert "length" == chunks[-2]["choices"][0]["finish_reason"]
    assert ("response.incomplete", "incomplete") == (
        items[-1]["type"],
        items[-1]["response"]["status"],
    )
    assert "MAX_TOKENS" == pieces[-1]["candidates"][0]["finishReason"]


def test_a_text_ends_before_a_stop(model: Model) -> None:
    """Also before a call, which the model does not reach."""
    model.script({"text": "one END two", **CALL, "times": "all"})

    for stop in ("END", ["two", "END"]):
        assert ("one ", [], "stop") == said("chat", model.chat(USER, stop=stop))
    config = {"stopSequences": ["END"]}
    assert ("one ", [], "STOP") == said("gemini", model.generate(CONTENT, generationConfig=config))


def formats(form: str) -> tuple[dict[str, Any], ...]:
    """Return the fields of a form for any object of JSON, and for one by a schema."""
    if form == "chat":
        named = {"name": "weather", "schema": SCHEMA, "strict": True}
        return (
            {"response_format": {"type": "json_object"}},
            {"response_format": {"type": "json_schema", "json_schema": named}},
        )
    if form == "responses":
        flat = {"type": "json_schema", "name": "weather", "schema": SCHEMA}
        return {"text": {"format": {"type": "json_object"}}}, {"text": {"format": flat}}
    config = {"responseMimeType": "application/json"}
    return (
        {"generationConfig": config},
        {"generationConfig": {**config, "responseJsonSchema": SCHEMA}},
    )


@pytest.mark.parametrize("form", FORMS)
def test_a_text_has_the_format_that_the_request_demands(model: Model, form: str) -> None:
    """A script that says something else is refused; a call of a tool is not text."""
    any_object, by_schema = formats(form)
    texts = [{"text": text} for text in ("Oslo", GOOD, BAD, GOOD)]
    model.script(*texts, CALL)

    no_json = message(ask(model, form, any_object))
    assert GOOD == said(form, ask(model, form, any_object))[0]
    lacking = message(ask(model, form, by_schema))
    assert GOOD == said(form, ask(model, form, by_schema))[0]
    assert ["run_code"] == said(form, ask(model, form, by_schema))[1]

    assert "The script says 'Oslo'" in no_json
    assert "it is not JSON" in no_json
    assert "'degrees' is a required property" in lacking


def test_gemini_has_schemas_of_its_own_and_lists_of_values(model: Model) -> None:
    schema = {
        "type": "OBJECT",
        "properties": {
            "names": {"type": "ARRAY", "items": {"type": "STRING"}, "min_items": "1"},
            "note": {"type": "STRING", "nullable": True},
        },
        "propertyOrdering": ["names", "note"],
        "required": ["names"],
    }
    by_schema = {"response_mime_type": "application/json", "response_schema": schema}
    enum = {"responseMimeType": "text/x.enum"}
    enum["responseSchema"] = {"type": "STRING", "enum": ["red", "blue"]}  # type: ignore[assignment]
    model.script(*({"text": t} for t in ('{"names": ["a"], "note": null}', '{"names": []}')))
    model.script(*({"text": text} for text in ("red", "green")))

    good = model.generate(CONTENT, generationConfig=by_schema)
    empty = model.generate(CONTENT, generationConfig=by_schema)
    red = model.generate(CONTENT, generationConfig=enum)
    green = model.generate(CONTENT, generationConfig=enum)

    assert 200 == good.status_code, good.text
    assert "$.names" in message(empty)
    assert "red" == said("gemini", red)[0]
    assert "'green' is not one of" in message(green)


def test_a_scripted_word_is_certain(model: Model) -> None:
    """Log probabilities are 0, of each word, whole and as a stream."""
    model.script({"text": "one two", "times": "all"})
    included = {"include": ["message.output_text.logprobs"], "top_logprobs": 1}
    config = {"responseLogprobs": True, "logprobs": 1}

    chat = model.chat(USER, logprobs=True, top_logprobs=3).json()["choices"][0]["logprobs"]
    plain = model.chat(USER).json()["choices"][0]["logprobs"]
    chunks = events(model.chat(USER, logprobs=True, stream=True))[1:3]
    response = model.respond("x", **included).json()["output"][0]["content"][0]["logprobs"]
    gemini = model.generate(CONTENT, generationConfig=config).json()["candidates"][0]

    assert ["one ", "two"] == [token["token"] for token in chat["content"]]
    assert {"token": "two", "bytes": [*b"two"], "logprob": 0.0} == chat["content"][1][
        "top_logprobs"
    ][0]
    assert plain is None
    assert ["one ", "two"] == [c["choices"][0]["logprobs"]["content"][0]["token"] for c in chunks]
    assert ["one ", "two"] == [token["token"] for token in response]
    assert [0.0, 0.0] == [
        word["logProbability"] for word in gemini["logprobsResult"]["chosenCandidates"]
    ]


def test_a_custom_tool_takes_text(model: Model) -> None:
    """In both of OpenAI's forms, whole, streamed, and with its result in the next request."""
    step = {"calls": [{"name": "patch", "arguments": {"input": "*** a"}}]}
    model.script({"text": "Patched: {{result}}", "times": "all"}, after="patch")
    model.script({**step, "times": "all"})
    chat_tools = [{"type": "custom", "custom": {"name": "patch"}}]
    tools = [{"type": "custom", "name": "patch", "format": {"type": "text"}}]

    call = model.chat(USER, tools=chat_tools).json()["choices"][0]["message"]["tool_calls"][0]
    chunks = events(model.chat(USER, tools=chat_tools, stream=True))
    item = model.respond("x", tools=tools).json()["output"][0]
    stream = events(model.respond("x", tools=tools, stream=True))
    result = {"role": "tool", "tool_call_id": call["id"], "content": "done"}
    last_chat = model.chat(USER, {"role": "assistant", "tool_calls": [call]}, result)
    output = {"type": "custom_tool_call_output", "call_id": item["call_id"], "output": "done"}
    last = model.respond([USER, item, output], tools=tools)
    model.script({"calls": [{"name": "patch", "arguments": {"x": 1}}]}, contains="wrong")

    assert {"name": "patch", "input": "*** a"} == call["custom"]
    assert {"custom": {"input": "*** a"}, "index": 0} == chunks[2]["choices"][0]["delta"][
        "tool_calls"
    ][0]
    assert ("custom_tool_call", "*** a") == (item["type"], item["input"])
    assert "response.custom_tool_call_input.done" in [event["type"] for event in stream]
    assert "Patched: done" == said("chat", last_chat)[0]
    assert "Patched: done" == said("responses", last)[0]
    assert "script it as input" in message(model.respond("wrong", tools=tools))


@pytest.mark.parametrize(
    ("form", "fields", "text"),
    [
        ("chat", {"n": 2}, "n is not supported"),
        ("chat", {"audio": {"voice": "a", "format": "wav"}}, "audio is not supported"),
        ("chat", {"modalities": ["text", "audio"]}, "modalities is not supported"),
        ("chat", {"functions": [], "function_call": "auto"}, "use tools"),
        ("chat", {"web_search_options": {}}, "web_search_options is not supported"),
        ("chat", {"nonsense": 1}, "Unknown parameter: 'nonsense'."),
        ("chat", {"messages": [{"role": "user"}]}, "messages[0].content must be a string"),
        (
            "chat",
            {"messages": [{"role": "user", "content": [{"type": "txt", "text": "x"}]}]},
            "messages[0].content[0].type must be one of text",
        ),
        (
            "responses",
            {"input": [{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}]},
            "input[0].content[0].type must be one of input_text",
        ),
        (
            "gemini",
            {"contents": [{"parts": [{"txt": "x"}]}]},
            "Unknown name 'txt' at 'contents[0].parts[0]'",
        ),
        ("chat", {"max_token": 1}, "Did you mean max_tokens?"),
        ("chat", {"max_tokens": 1, "max_completion_tokens": 1}, "exclude each other"),
        ("chat", {"max_tokens": 0}, "max_tokens must be at least 1"),
        ("chat", {"max_tokens": "9"}, "max_tokens must be an integer"),
        ("chat", {"top_logprobs": 2}, "top_logprobs needs logprobs"),
        ("chat", {"logprobs": True, "top_logprobs": 21}, "at most 20"),
        ("chat", {"stop": ["a"] * 5}, "stop may have 4"),
        ("chat", {"stop": 7}, "stop must be a list of strings"),
        ("chat", {"stream_options": {"include_usage": True}}, "needs stream true"),
        ("chat", {"stream": True, "stream_options": {"x": 1}}, "'stream_options.x'"),
        ("chat", {"parallel_tool_calls": "no"}, "must be true or false"),
        ("chat", {"tool_choice": "any"}, "tool_choice must be none, auto, required"),
        ("chat", {"response_format": {"type": "xml"}}, "response_format.type must be"),
        (
            "chat",
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": 7}}},
            "schema must be an object",
        ),
        (
            "responses",
            {"text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "foo"}}}},
            "no valid JSON schema",
        ),
        ("responses", {"tools": [{"type": "web_search"}]}, "tools[0].type 'web_search'"),
        ("responses", {"tools": [{"type": "mcp", "server_label": "x"}]}, "'mcp' is not supported"),
        ("responses", {"tool_choice": {"type": "file_search"}}, "tool_choice must be"),
        ("responses", {"conversation": "conv_1"}, "use previous_response_id"),
        ("responses", {"prompt": {"id": "x"}}, "no stored prompts"),
        ("responses", {"include": ["x"]}, "include must be among"),
        ("responses", {"text": {"format": {"type": "text"}, "x": 1}}, "'text.x'"),
        ("responses", {"stop": ["x"]}, "Unknown parameter: 'stop'"),
        ("responses", {"background": True, "store": False}, "needs store true"),
        ("responses", {"input": [{"type": "telepathy"}]}, "'telepathy' is no type of an item"),
        ("gemini", {"generationConfig": {"candidateCount": 2}}, "candidateCount is not supported"),
        ("gemini", {"generation_config": {"candidate_count": 2}}, "candidateCount is not"),
        ("gemini", {"generationConfig": {"responseModalities": ["AUDIO"]}}, "responseModalities"),
        ("gemini", {"generationConfig": {"speechConfig": {}}}, "speechConfig is not supported"),
        ("gemini", {"generationConfig": {"logprobs": 2}}, "needs responseLogprobs"),
        ("gemini", {"generationConfig": {"stopSequences": ["a"] * 6}}, "may have 5"),
        (
            "gemini",
            {"generationConfig": {"responseSchema": {"type": "STRING"}}},
            "application/json",
        ),
        ("gemini", {"generationConfig": {"responseMimeType": "text/html"}}, "responseMimeType"),
        ("gemini", {"cachedContent": "cachedContents/x"}, "cachedContent is not supported"),
        ("gemini", {"nonsense": 1}, "Unknown name 'nonsense': Cannot find field."),
        ("gemini", {"generationConfig": {"x": 1}}, "Unknown name 'x' at 'generationConfig'"),
        ("gemini", {"tools": [{"googleSearch": {}}]}, "tools[0].googleSearch is not supported"),
        ("gemini", {"tools": [{"code_execution": {}}]}, "tools[0].codeExecution is not"),
        ("gemini", {"toolConfig": {"functionCallingConfig": {"mode": "MAYBE"}}}, "mode must be"),
        (
            "gemini",
            {"toolConfig": {"functionCallingConfig": {"allowedFunctionNames": ["other"]}}},
            "needs the mode ANY",
        ),
    ],
)
def test_what_no_script_can_do_is_refused_by_name(
    model: Model, form: str, fields: dict[str, Any], text: str
) -> None:
    model.script({"text": "never", "times": "all"})

    assert text in message(ask(model, form, fields))


@pytest.mark.parametrize(
    ("form", "fields"),
    [
        ("chat", {"n": 1, "modalities": ["text"], "audio": None, "stop": None, "tools": None}),
        ("chat", {"temperature": 0.2, "seed": 7, "user": "ann", "store": True, "top_k": 4}),
        (
            "chat",
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [
                            {"type": "image_url", "image_url": {"url": "data:,"}},
                            {"type": "text", "text": "What is it?"},
                        ],
                    }
                ]
            },
        ),
        ("gemini", {"contents": [{"parts": [{"inline_data": {}}, {"text": "What is it?"}]}]}),
        ("chat", {"thinking": {"type": "enabled"}, "caching": {}, "expire_at": 1}),
        ("chat", {"prediction": {"type": "content", "content": "x"}, "reasoning_effort": "low"}),
        (
            "responses",
            {"reasoning": {"effort": "low"}, "truncation": "auto", "metadata": {"a": "b"}},
        ),
        ("responses", {"include": ["reasoning.encrypted_content"], "text": {"verbosity": "low"}}),
        ("gemini", {"safetySettings": [], "labels": {"a": "b"}, "service_tier": "standard"}),
        ("gemini", {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}, "topK": 2}}),
        ("gemini", {"generationConfig": {"candidateCount": 1, "responseModalities": ["TEXT"]}}),
    ],
)
def test_what_has_no_effect_on_a_script_is_accepted(
    model: Model, form: str, fields: dict[str, Any]
) -> None:
    model.script({"text": "It is 42."})

    assert "It is 42." == said(form, ask(model, form, fields))[0]


def test_a_schema_never_reaches_for_the_network(model: Model) -> None:
    schema = {"$ref": "http://192.0.2.1/schema.json"}
    model.script({"text": GOOD})
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}

    assert "leads nowhere" in message(model.chat(USER, response_format=wanted))
