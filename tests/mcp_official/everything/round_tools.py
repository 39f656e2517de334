"""Tools that need answers of the client before they can answer (revision 2026-07-28).

Such a tool returns what it wants to know and is called again with the answers, so it runs once
for each round and keeps between rounds only what it gives the client to carry.
"""

from __future__ import annotations

from typing import Any

from mcp.shared.exceptions import MCPError
from mcp.types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolRequestParams,
    CallToolResult,
    ClientCapabilities,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    SamplingMessage,
    TextContent,
)

from tests.mcp_official.everything import forms
from tests.mcp_official.everything.plain_tools import reply
from tests.mcp_official.everything.tables import Context, Tools

TOOLS = Tools()
Answer = CallToolResult | InputRequiredResult


@TOOLS.add()
async def test_input_required_result_elicitation(
    ctx: Context, params: CallToolRequestParams
) -> Answer:
    """Ask for a name and greet."""
    name = filled_in(params.input_responses, "user_name", "name")
    if name is None:
        question = ask("What is your name?", forms.one_text("name"))
        return InputRequiredResult(input_requests={"user_name": question})
    return reply(f"Hello, {name}!")


@TOOLS.add()
async def test_input_required_result_sampling(
    ctx: Context, params: CallToolRequestParams
) -> Answer:
    """Have the client's model answer."""
    answer = (params.input_responses or {}).get("capital_question")
    if not isinstance(answer, CreateMessageResult):
        question = sample("What is the capital of France?", 100)
        return InputRequiredResult(input_requests={"capital_question": question})
    content = answer.content
    return reply(content.text if isinstance(content, TextContent) else str(content))


@TOOLS.add()
async def test_input_required_result_list_roots(
    ctx: Context, params: CallToolRequestParams
) -> Answer:
    """Ask for the client's roots."""
    answer = (params.input_responses or {}).get("client_roots")
    if not isinstance(answer, ListRootsResult):
        return InputRequiredResult(input_requests={"client_roots": ListRootsRequest()})
    return reply(f"Roots: {', '.join(str(root.uri) for root in answer.roots)}")


@TOOLS.add()
async def test_input_required_result_request_state(
    ctx: Context, params: CallToolRequestParams
) -> Answer:
    """Give the client a state to carry, and look at it when it comes back."""
    return _confirmed(params, "confirm-me")


@TOOLS.add()
async def test_input_required_result_tampered_state(
    ctx: Context, params: CallToolRequestParams
) -> Answer:
    """Do the same; a state that was changed on the way does not even get here."""
    return _confirmed(params, "do-not-touch")


@TOOLS.add()
async def test_input_required_result_multiple_inputs(
    ctx: Context, params: CallToolRequestParams
) -> Answer:
    """Ask three things at a time."""
    answers = params.input_responses or {}
    if not {"user_name", "greeting", "client_roots"} <= answers.keys():
        return three_questions()
    return reply(f"Thanks, {filled_in(answers, 'user_name', 'name')}.")


@TOOLS.add()
async def test_input_required_result_multi_round(
    ctx: Context, params: CallToolRequestParams
) -> Answer:
    """Ask one thing after the other."""
    if params.request_state is None:
        question = ask("Step 1: What is your name?", forms.one_text("name"))
        return InputRequiredResult(input_requests={"step1": question}, request_state="asked:")
    name = filled_in(params.input_responses, "step1", "name")
    if name is not None:
        question = ask("Step 2: What is your favorite color?", forms.one_text("color"))
        state = params.request_state + name
        return InputRequiredResult(input_requests={"step2": question}, request_state=state)
    color = filled_in(params.input_responses, "step2", "color")
    return reply(f"{params.request_state.removeprefix('asked:')} likes {color}.")


@TOOLS.add()
async def test_input_required_result_capabilities(
    ctx: Context, params: CallToolRequestParams
) -> Answer:
    """Ask only what the client says it can answer."""
    questions = questions_for(ctx.session.client_capabilities)
    if not questions or params.input_responses:
        return reply("Nothing more to ask.")
    return InputRequiredResult(input_requests=questions)


@TOOLS.add()
async def test_streaming_elicitation(ctx: Context, params: CallToolRequestParams) -> Answer:
    """Ask by the answer, never by a request of its own on the stream."""
    await ctx.session.report_progress(1, 2)
    return await test_input_required_result_elicitation(ctx, params)


@TOOLS.add()
async def test_missing_capability(ctx: Context, params: CallToolRequestParams) -> Answer:
    """Need a client that can sample."""
    able = ctx.session.client_capabilities
    if able is None or able.sampling is None:
        needed = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "The client cannot sample", needed)
    return reply("The client can sample.")


def ask(message: str, form: forms.Form) -> ElicitRequest:
    """Return a question to the user."""
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=form))


def sample(prompt: str, max_tokens: int) -> CreateMessageRequest:
    """Return a prompt for the client's model."""
    message = SamplingMessage(role="user", content=TextContent(text=prompt))
    params = CreateMessageRequestParams(messages=[message], max_tokens=max_tokens)
    return CreateMessageRequest(params=params)


def three_questions() -> InputRequiredResult:
    """Return a question to the user, a prompt for the model and a question for the roots."""
    questions = {
        "user_name": ask("What is your name?", forms.one_text("name")),
        "greeting": sample("Generate a greeting", 50),
        "client_roots": ListRootsRequest(),
    }
    return InputRequiredResult(input_requests=questions, request_state="asked-three")


def questions_for(able: ClientCapabilities | None) -> dict[str, Any]:
    """Return what a client with these capabilities can answer."""
    questions: dict[str, Any] = {}
    if able is not None and able.sampling is not None:
        questions["sampled"] = sample("Say something", 50)
    if able is not None and able.elicitation is not None:
        questions["asked"] = ask("Say something", forms.one_text("something"))
    return questions


def filled_in(answers: Any, key: str, field: str) -> str | None:
    """Return the user's value for a field, or None if there is no such answer."""
    answer = (answers or {}).get(key)
    if not isinstance(answer, ElicitResult) or not answer.content:
        return None
    value = answer.content.get(field)
    return None if value is None else str(value)


def _confirmed(params: CallToolRequestParams, state: str) -> Answer:
    if params.request_state is None:
        question = ask("Please confirm", forms.form({"ok": {"type": "boolean"}}, ["ok"]))
        return InputRequiredResult(input_requests={"confirm": question}, request_state=state)
    return reply("state-ok" if params.request_state == state else "another state")
