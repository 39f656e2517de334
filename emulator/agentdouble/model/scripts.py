"""Scripts: what the model answers to which requests."""

from __future__ import annotations

import difflib
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from agentdouble.core.suggestions import did_you_mean
from agentdouble.errors import ModelError
from agentdouble.model import fitting
from agentdouble.model.conversation import ConversationRequest, ModelAnswer, ToolCall
from agentdouble.model.demands import UNFIT

RESULT = "{{result}}"  # in a script: the result of the tool that was called last
_CALLS = 'calls are a list of objects, such as { name = "run_code", arguments = { code = "1" } }'
OUTPUT = "{{output}}"  # the same, but of a result of run_code only the output of the code


class ScriptedCall(BaseModel):
    """A call of a tool; arguments that are text are sent as they are, to test malformed ones."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1)
    arguments: dict[str, Any] | str = Field(default_factory=dict)


class Step(BaseModel):
    """One answer, which is given ``times`` times: text, calls of tools, or both."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    times: int | Literal["all"] = 1

    @model_validator(mode="after")
    def _is_an_answer(self) -> Step:
        if not self.text and not self.calls:
            raise ValueError("a step has text or calls")
        if self.times != "all" and self.times < 1:
            raise ValueError("times is 1 or more, or 'all'")
        return self

    def described(self) -> str:
        """Return a description in one line."""
        calls = [f"call_tool({call.name!r})" for call in self.calls]
        text = f"{self.text[:37]}..." if len(self.text) > 40 else self.text
        return " and ".join([*([f"reply({text!r})"] if text else []), *calls])


class When(BaseModel):
    """The requests that a script is for; without conditions it is for all.

    ``contains`` is in the last text of the user, in any case of letters. ``model`` is the requested
    model, ``tool`` the name of a tool that the request offers and lets the model call, and
    ``after`` the name of the tool whose result the request ends with.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    contains: str | None = None
    model: str | None = None
    tool: str | None = None
    after: str | None = None

    def described(self) -> str:
        """Return the condition as it is written in Python."""
        fields = self.model_dump(exclude_none=True)
        listed = ", ".join(f"{name}={value!r}" for name, value in fields.items())
        return f"when({listed})" if listed else "any request"

    def misses(self, request: ConversationRequest) -> list[str]:
        """Return why the script is not for a request; empty if it is."""
        result = request.result
        after = "no tool's result" if result is None else f"the result of {result.name}"
        checks = {
            f"its prompt does not contain {self.contains!r}": self.contains is None
            or self.contains.lower() in request.prompt.lower(),
            f"its model is {request.model!r}": self.model in (None, request.model),
            f"its tools are {', '.join(request.callable_tools) or 'none'}": self.tool is None
            or self.tool in request.callable_tools,
            f"it ends with {after}": self.after is None
            or (result is not None and result.name == self.after),
        }
        return [reason for reason, fits in checks.items() if not fits]


class Script:
    """Steps that answer the requests of one condition, in order."""

    def __init__(self, when: When) -> None:
        self.when = when
        self.steps: list[Step] = []
        self.used: list[int] = []

    def add(self, step: Step) -> None:
        """Add a last step."""
        self.steps.append(step)
        self.used.append(0)

    def next(self) -> Step | None:
        """Return the next step and count it as used, or None if all are used up."""
        for index, step in enumerate(self.steps):
            if step.times == "all" or self.used[index] < step.times:
                self.used[index] += 1
                return step
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return the script as JSON-ready data; ``unused`` describes steps that remain."""
        unused = [
            step.described()
            for step, used in zip(self.steps, self.used, strict=True)
            if used < (1 if step.times == "all" else step.times)
        ]
        return {
            "when": self.when.described(),
            "steps": [step.described() for step in self.steps],
            "used": self.used,
            "unused": unused,
        }


class Scripts:
    """The scripts of a model. Those with a condition come before the one without."""

    def __init__(self, initial: Iterable[Mapping[str, Any]] = ()) -> None:
        self._initial = tuple(initial)
        self._scripts: list[Script] = []
        self._numbers = itertools.count(1)
        self.reset()

    def reset(self) -> None:
        """Restore the initial scripts; the ids of answers begin with 1 again."""
        self._scripts.clear()
        self._numbers = itertools.count(1)
        for table in self._initial:
            self.add(table)

    def clear(self) -> None:
        """Remove every script."""
        self._scripts.clear()

    def add(self, table: object) -> Script:
        """Add the steps of a table to the script of its condition. Raise ModelError."""
        if not isinstance(table, Mapping) or not table.keys() <= {"when", "steps"}:
            raise ModelError(f"A script is an object with when and steps, not {table!r:.80}.")
        steps = table.get("steps")
        if not isinstance(steps, list) or not steps:
            raise ModelError(
                f"The steps of a script are a list with at least one step: {steps!r:.80}."
            )
        try:
            when = When.model_validate(table.get("when", {}))
            checked = [Step.model_validate(step) for step in steps]
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"])) or "step"
            is_call = where.startswith("calls") and first["type"] in ("model_type", "tuple_type")
            reason = _CALLS if is_call else first["msg"]
            reason = reason.removeprefix("Value error, ")
            raise ModelError(f"The {where} of a script: {reason}.") from None
        script = next((script for script in self if script.when == when), None)
        if script is None:
            script = Script(when)
            self._scripts.append(script)
        for step in checked:
            script.add(step)
        return script

    def __iter__(self) -> Iterator[Script]:
        return iter(self._scripts)

    def answer(self, request: ConversationRequest) -> ModelAnswer:
        """Return the answer of the first script that has one. Raise ModelError without one."""
        matching = [script for script in self if not script.when.misses(request)]
        conditional = [script for script in matching if script.when != When()]
        for script in conditional or matching:
            step = script.next()
            if step is not None:
                return self._written(step, request)
        raise ModelError(self._explained(request, conditional or matching), code="no_script")

    def _written(self, step: Step, request: ConversationRequest) -> ModelAnswer:
        number = next(self._numbers)
        for call in step.calls:
            if call.name not in request.tools:
                hint = did_you_mean(call.name, request.tools)
                raise ModelError(
                    f"The script calls the tool {call.name!r}, but the request offers "
                    f"{', '.join(request.tools) or 'no tools'}.{hint}",
                    code="tool_not_offered",
                )
        result = next((turn.text for turn in reversed(request.turns) if turn.role == "tool"), "")
        calls = tuple(
            _call(call, f"call_{number}_{index}", is_custom=call.name in request.custom_tools)
            for index, call in enumerate(step.calls, 1)
        )
        text = step.text.replace(RESULT, result)
        text = text.replace(OUTPUT, _output(result)) if OUTPUT in text else text
        return fitting.fit(ModelAnswer(text, calls, number), request)

    def _explained(self, request: ConversationRequest, used_up: list[Script]) -> str:
        prompt = request.prompt if len(request.prompt) <= 100 else f"{request.prompt[:97]}..."
        ending = f" after the result of {request.result.name}" if request.result else ""
        unanswered = (
            f"No script answers the prompt {prompt!r}{ending} ({request.form}, {request.model})."
        )
        if not self._scripts:
            return f"{unanswered} There are no scripts. Add one: platform_model.reply('...')."
        if used_up:
            script = used_up[-1]
            steps = "; ".join(step.described() for step in script.steps)
            unanswered += (
                f" The script for {script.when.described()} is used up: {steps}. "
                "Add a further answer, or repeat one with times='all'."
            )
        others = [script for script in self if script.when.misses(request)]
        if not others or (used_up and used_up[-1].when != When()):
            return unanswered
        nearest = max(others, key=lambda script: _likeness(script, request))
        reasons = " and ".join(nearest.when.misses(request))
        return f"{unanswered} The nearest script is for {nearest.when.described()}, but {reasons}."


def _call(call: ScriptedCall, call_id: str, *, is_custom: bool) -> ToolCall:
    """Return a call; a custom tool takes text, which a script has as such or as ``input``."""
    arguments = call.arguments
    if is_custom and not isinstance(arguments, str):
        if arguments.keys() != {"input"} or not isinstance(arguments["input"], str):
            raise ModelError(
                f"The tool {call.name!r} is a custom one, which takes a text: script it as input, "
                f"instead of {arguments!r:.80}.",
                code=UNFIT,
            )
        arguments = arguments["input"]
    return ToolCall(call.name, arguments, call_id, is_custom)


def _output(result: str) -> str:
    """Return the output of code in a result of run_code (section 2.7), or any other result itself."""
    try:
        document = json.loads(result)
        if isinstance(document.get("result"), str):  # the SDKs of agents wrap the result
            document = json.loads(document["result"])
        outputs = document["data"]["outputs"]
        texts = [o["text"] or o["evalue"] or (o["data"] or {})["text/plain"] for o in outputs]
        return "".join(texts).strip()
    except (ValueError, LookupError, TypeError, AttributeError):
        return result


def _likeness(script: Script, request: ConversationRequest) -> tuple[int, float]:
    text = (script.when.contains or "").lower()
    words = request.prompt[:1000].lower().split()
    ratios = (difflib.SequenceMatcher(None, text, word).ratio() for word in words)
    return -len(script.when.misses(request)), max(ratios, default=0.0)
