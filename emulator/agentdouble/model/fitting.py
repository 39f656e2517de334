"""A script's answer made to fit its request."""

from __future__ import annotations

import dataclasses

from agentdouble.errors import ModelError
from agentdouble.model.conversation import ConversationRequest, ModelAnswer, ToolCall, words
from agentdouble.model.demands import UNFIT, Demands


def fit(answer: ModelAnswer, request: ConversationRequest) -> ModelAnswer:
    """Return an answer that ends where the request wants it to.

    Raises ModelError for one that a model could not give: its test must script another.
    """
    demands = request.demands
    names = [call.name for call in answer.calls]
    refused = [name for name in names if name not in request.callable_tools]
    if refused:
        allowed = ", ".join(request.callable_tools) or "no tool"
        raise _unfit(f"calls {refused[0]!r}", f"{demands.choice}, which allows {allowed}")
    if demands.must_call and not names:
        raise _unfit(f"says {answer.text!r:.60} and calls no tool", demands.choice)
    if demands.single_call and len(names) > 1:
        raise _unfit(f"calls {' and '.join(names)} at once", "parallel_tool_calls false")
    if demands.output is not None and not names:
        demands.output.check(answer.text)
    return _limited(_stopped(answer, demands.stop), demands)


def _unfit(what: str, field: str) -> ModelError:
    return ModelError(
        f"The script {what}, but the request has {field}. Script an answer that fits the request.",
        code=UNFIT,
    )


def _stopped(answer: ModelAnswer, stops: tuple[str, ...]) -> ModelAnswer:
    """Return an answer up to the first of its stops, which ends it before any call."""
    ends = [answer.text.index(stop) for stop in stops if stop in answer.text]
    return dataclasses.replace(answer, text=answer.text[: min(ends)], calls=()) if ends else answer


def _limited(answer: ModelAnswer, demands: Demands) -> ModelAnswer:
    """Return the first words of an answer, of its text and then of its calls."""
    if demands.limit is None or answer.tokens() <= demands.limit:
        return answer
    pieces = answer.pieces()[: demands.limit]
    left = demands.limit - len(pieces)
    calls: list[ToolCall] = []
    for call in answer.calls:
        kept = words(call.text())[:left]
        left -= len(kept)
        if "".join(kept) == call.text():
            calls.append(call)
        elif kept and demands.cuts_calls:
            calls.append(dataclasses.replace(call, arguments="".join(kept)))
    return dataclasses.replace(answer, text="".join(pieces), calls=tuple(calls), is_cut=True)
