"""Tools that need answers of the client before they can answer (revision 2026-07-28)."""

from __future__ import annotations

from typing import Any

from mcp import MCPError
from mcp.types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CreateMessageResult,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
)

from agentdouble import Context, MCPApp
from tests.mcp_official.everything import forms
from tests.mcp_official.everything.round_tools import (
    ask,
    filled_in,
    questions_for,
    sample,
    three_questions,
)

Answer = str | InputRequiredResult


def register(app: MCPApp) -> None:
    """Add the tools to an application."""
    _register_single_questions(app)
    _register_states(app)
    _register_needs(app)


def _register_single_questions(app: MCPApp) -> None:
    @app.tool
    def test_input_required_result_elicitation(ctx: Context) -> Answer:
        """Ask for a name and greet."""
        return _greeted(ctx)

    @app.tool
    def test_input_required_result_sampling(ctx: Context) -> Answer:
        """Have the client's model answer."""
        answer: Any = (ctx.input_responses or {}).get("capital_question")
        if not isinstance(answer, CreateMessageResult):
            question = sample("What is the capital of France?", 100)
            return InputRequiredResult(input_requests={"capital_question": question})
        return str(answer.content)

    @app.tool
    def test_input_required_result_list_roots(ctx: Context) -> Answer:
        """Ask for the client's roots."""
        answer = (ctx.input_responses or {}).get("client_roots")
        if not isinstance(answer, ListRootsResult):
            return InputRequiredResult(input_requests={"client_roots": ListRootsRequest()})
        return f"Roots: {', '.join(str(root.uri) for root in answer.roots)}"

    @app.tool
    async def test_streaming_elicitation(ctx: Context) -> Answer:
        """Ask by the answer, never by a request on the stream."""
        await ctx.report_progress(1, 2)
        return _greeted(ctx)


def _register_states(app: MCPApp) -> None:
    @app.tool
    def test_input_required_result_request_state(ctx: Context) -> Answer:
        """Give the client a state to carry, and look at it when it comes back."""
        return _confirmed(ctx, "confirm-me")

    @app.tool
    def test_input_required_result_tampered_state(ctx: Context) -> Answer:
        """Do the same; a state that was changed on the way does not even get here."""
        return _confirmed(ctx, "do-not-touch")

    @app.tool
    def test_input_required_result_multiple_inputs(ctx: Context) -> Answer:
        """Ask three things at a time."""
        answers = ctx.input_responses or {}
        if not {"user_name", "greeting", "client_roots"} <= answers.keys():
            return three_questions()
        return f"Thanks, {filled_in(answers, 'user_name', 'name')}."

    @app.tool
    def test_input_required_result_multi_round(ctx: Context) -> Answer:
        """Ask one thing after the other."""
        if ctx.request_state is None:
            question = ask("Step 1: What is your name?", forms.one_text("name"))
            return InputRequiredResult(input_requests={"step1": question}, request_state="asked:")
        name = filled_in(ctx.input_responses, "step1", "name")
        if name is not None:
            question = ask("Step 2: What is your favorite color?", forms.one_text("color"))
            state = ctx.request_state + name
            return InputRequiredResult(input_requests={"step2": question}, request_state=state)
        color = filled_in(ctx.input_responses, "step2", "color")
        return f"{ctx.request_state.removeprefix('asked:')} likes {color}."


def _register_needs(app: MCPApp) -> None:
    @app.tool
    def test_input_required_result_capabilities(ctx: Context) -> Answer:
        """Ask only what the client says it can answer."""
        questions = questions_for(ctx.client_capabilities)
        if not questions or ctx.input_responses:
            return "Nothing more to ask."
        return InputRequiredResult(input_requests=questions)

    @app.tool
    def test_missing_capability(ctx: Context) -> str:
        """Need a client that can sample."""
        able = ctx.client_capabilities
        if able is None or able.sampling is None:
            needed = {"requiredCapabilities": {"sampling": {}}}
            raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "The client cannot sample", needed)
        return "The client can sample."


def _greeted(ctx: Context) -> Answer:
    name = filled_in(ctx.input_responses, "user_name", "name")
    if name is None:
        question = ask("What is your name?", forms.one_text("name"))
        return InputRequiredResult(input_requests={"user_name": question})
    return f"Hello, {name}!"


def _confirmed(ctx: Context, state: str) -> Answer:
    if ctx.request_state is None:
        question = ask("Please confirm", forms.form({"ok": {"type": "boolean"}}, ["ok"]))
        return InputRequiredResult(input_requests={"confirm": question}, request_state=state)
    return "state-ok" if ctx.request_state == state else "another state"
