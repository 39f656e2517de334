"""Mutants of run_code, the agent-side tool."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from agentdouble import code_tool, environment, invoke_tool
from agentdouble.errors import CredentialsMissingError, PlatformError, ToolIdMissingError
from agentdouble.signing import Credentials
from tests.mutants import Mutant, lossy

RESULT = "It returns the result of 2.7 via 2.8 (4.5)"
CODE = "Argument code, string: source to execute (4.5)"
LANGUAGE = "Argument language: python3 is used; Python and JavaScript are supported (4.5)"
FAILURE = "failures expose ename, evalue, traceback in outputs (7.3)"
TOOL_ID = "It needs the PLATFORM_TOOL_ID environment variable, sandbox tool id, required (4.5)"
FIRST = "credentials from the tool context are tried first, then the environment (7.4)"
KEYS = "Environment variables PLATFORM_ACCESS_KEY and PLATFORM_SECRET_KEY (5)"

Mutate = Callable[[pytest.MonkeyPatch], None]
State = Mapping[str, Any]


def _invoke_tool(patch: pytest.MonkeyPatch, **others: Any) -> None:
    """Give run_code, and nobody else, another module of InvokeTool."""
    patch.setattr(code_tool, "invoke_tool", SimpleNamespace(**{**vars(invoke_tool), **others}))


def _sent(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Mutate:
    """Change what run_code sends: its code, its language and so on."""

    def mutant(patch: pytest.MonkeyPatch) -> None:
        _invoke_tool(patch, RunCode=lambda **given: invoke_tool.RunCode(**change(given)))

    return mutant


def _returned(change: Callable[[str], str]) -> Mutate:
    """Change the string that run_code returns."""

    def mutant(patch: pytest.MonkeyPatch) -> None:
        def read(status: int, body: bytes) -> invoke_tool.Envelope:
            envelope = invoke_tool.read(status, body)
            return replace(envelope, result=change(envelope.result))

        _invoke_tool(patch, read=read)

    return mutant


def _result(change: Callable[[dict[str, Any]], Any]) -> Mutate:
    """Change the JSON of 2.7 that run_code returns."""
    return _returned(lambda text: json.dumps(change(json.loads(text))))


def _data(change: Callable[[dict[str, Any]], Any]) -> Mutate:
    return _result(lambda result: {**result, "data": change(result["data"])})


def _outputs(change: Callable[[list[dict[str, Any]]], Any]) -> Mutate:
    return _data(lambda data: {**data, "outputs": change(data["outputs"])})


def _code(change: Callable[[str], str]) -> Mutate:
    return _sent(lambda given: {**given, "code": change(given["code"])})


def _without_details(outputs: list[dict[str, Any]]) -> Any:
    return [{**one, "ename": None, "evalue": None, "traceback": None} for one in outputs]


def _returns_the_envelope(patch: pytest.MonkeyPatch) -> None:
    def read(status: int, body: bytes) -> invoke_tool.Envelope:
        return replace(invoke_tool.read(status, body), result=body.decode())

    _invoke_tool(patch, read=read)


def _repeats_the_first_result(patch: pytest.MonkeyPatch) -> None:
    first: list[str] = []

    def repeat(text: str) -> str:
        first.append(text)
        return first[0]

    _returned(repeat)(patch)


def _raises_for_a_failure(patch: pytest.MonkeyPatch) -> None:
    def raising(text: str) -> str:
        if json.loads(text)["data"]["status"] != "ok":
            raise PlatformError("ExecutionFailed", "The code raised.", status=200, request_id="")
        return text

    _returned(raising)(patch)


def _stdout(text: str) -> str:
    outputs = json.loads(text)["data"]["outputs"]
    return "".join(one["text"] for one in outputs if one["name"] == "stdout")


def _success(result: dict[str, Any]) -> dict[str, Any]:
    return {**result, "success": True, "data": {**result["data"], "status": "ok"}}


def _first_lines(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**one, "text": lossy.first_line(one["text"] or "")} for one in outputs]


RESULTS: tuple[tuple[str, str, Mutate], ...] = (
    ("return_the_envelope", RESULT, _returns_the_envelope),
    ("return_the_data_alone", RESULT, _result(lambda result: result["data"])),
    ("return_standard_output_alone", RESULT, _returned(_stdout)),
    ("repeat_the_first_result", RESULT, _repeats_the_first_result),
    ("wrap_the_result_twice", RESULT, _returned(json.dumps)),
    *(
        (f"lose_{name}", RESULT, _data(lossy.without(name)))
        for name in ("kernel_name", "execution_count", "msg_id", "code", "session_id")
    ),
    ("lose_the_message", RESULT, _result(lossy.without("message"))),
    ("keep_the_last_output", RESULT, _outputs(lambda outputs: outputs[-1:])),
    ("keep_the_first_output", RESULT, _outputs(lambda outputs: outputs[:1])),
    ("keep_the_first_line_of_each_output", RESULT, _outputs(_first_lines)),
    (
        "replace_non_ascii_in_the_result",
        RESULT,
        _outputs(
            lambda outputs: [{**one, "text": lossy.to_ascii(one["text"] or "")} for one in outputs]
        ),
    ),
    ("tell_a_failure_as_success", FAILURE, _result(_success)),
    ("lose_the_details_of_a_failure", FAILURE, _outputs(_without_details)),
    ("raise_for_a_failure", FAILURE, _raises_for_a_failure),
    ("run_everything_as_python", LANGUAGE, _sent(lambda given: {**given, "language": "python3"})),
    (
        "run_everything_as_javascript",
        LANGUAGE,
        _sent(lambda given: {**given, "language": "javascript"}),
    ),
    ("lose_the_indentation_of_the_code", CODE, _code(lambda code: "\n".join(code.split("\n    ")))),
    ("run_the_first_line", CODE, _code(lossy.first_line)),
    ("cut_the_code_at_2000_characters", CODE, _code(lambda code: code[:2000])),
    (
        "take_the_code_out_of_markdown",
        CODE,
        _code(lambda code: code.split("```")[1] if code.count("```") > 1 else code),
    ),
    (
        "replace_non_ascii_in_the_code",
        CODE,
        _code(lossy.to_ascii),
    ),
    (
        "read_escapes_in_the_code",
        CODE,
        _code(lambda code: code.replace("\\n", "\n")),
    ),
)


# ---- the tool's id


def _tool_id(found: Callable[[State], str]) -> Mutate:
    return lambda patch: patch.setattr(code_tool, "_tool_id", found)


def _default_id(state: State) -> str:
    return code_tool._look_up(state, environment.TOOL_ID) or "t-default"


def _kept_id(patch: pytest.MonkeyPatch) -> None:
    kept: list[str] = []
    whole = code_tool._tool_id

    def tool_id(state: State) -> str:
        try:
            kept.append(whole(state))
        except ToolIdMissingError:
            if not kept:
                raise
        return kept[-1]

    patch.setattr(code_tool, "_tool_id", tool_id)


def _empty_id(state: State) -> str:
    found = code_tool._look_up(state, environment.TOOL_ID)
    if found is None and environment.TOOL_ID not in os.environ:
        raise ToolIdMissingError(f"run_code needs {environment.TOOL_ID}.")
    return found or ""


def _unnamed_id(state: State) -> str:
    found = code_tool._look_up(state, environment.TOOL_ID)
    if found is None:
        raise ToolIdMissingError("run_code failed.")
    return found


def _misnamed_id(state: State) -> str:
    found = code_tool._look_up(state, environment.TOOL_ID)
    if found is None:
        raise CredentialsMissingError("run_code needs credentials.")
    return found


def _other_variable(state: State) -> str:
    return code_tool._look_up(state, "TOOL_ID") or "t-default"


IDS: tuple[tuple[str, Mutate], ...] = (
    ("send_a_default_id", _tool_id(_default_id)),
    ("send_no_id", _tool_id(lambda state: code_tool._look_up(state, environment.TOOL_ID) or "")),
    ("send_an_empty_id", _tool_id(_empty_id)),
    ("send_the_id_of_an_earlier_call", _kept_id),
    ("not_say_what_is_missing", _tool_id(_unnamed_id)),
    ("say_that_credentials_are_missing", _tool_id(_misnamed_id)),
    ("read_another_variable", _tool_id(_other_variable)),
)


# ---- credentials


def _credentials(found: Callable[[State], Credentials]) -> Mutate:
    return lambda patch: patch.setattr(code_tool, "_credentials", found)


def _pair(*sources: Mapping[str, Any]) -> Credentials | None:
    for source in sources:
        access, secret = source.get(environment.ACCESS_KEY), source.get(environment.SECRET_KEY)
        if access and secret:
            return Credentials(str(access), str(secret))
    return None


def _hosting() -> Mapping[str, str]:
    return code_tool._hosting.get() or {}


def _required(found: Credentials | None, message: str = "") -> Credentials:
    if found is None:
        names = f"{environment.ACCESS_KEY} and {environment.SECRET_KEY}"
        raise CredentialsMissingError(message or f"run_code needs {names}.")
    return found


def _mixed(state: State) -> Credentials:
    access = state.get(environment.ACCESS_KEY) or os.environ.get(environment.ACCESS_KEY)
    secret = os.environ.get(environment.SECRET_KEY) or state.get(environment.SECRET_KEY)
    return _required(Credentials(str(access), str(secret)) if access and secret else None)


def _first_pair(patch: pytest.MonkeyPatch) -> None:
    first: list[Credentials] = []
    whole = code_tool._credentials

    def credentials(state: State) -> Credentials:
        first.extend([] if first else [whole(state)])
        return first[0]

    patch.setattr(code_tool, "_credentials", credentials)


def _unsigned(state: State) -> Credentials:
    return _pair(state, _hosting(), os.environ) or Credentials("", "")


CREDENTIALS: tuple[tuple[str, str, Mutate], ...] = (
    (
        "try_the_environment_first",
        FIRST,
        _credentials(lambda state: _required(_pair(os.environ, _hosting(), state))),
    ),
    (
        "ignore_the_tool_context",
        FIRST,
        _credentials(lambda _: _required(_pair(_hosting(), os.environ))),
    ),
    ("ignore_the_environment", FIRST, _credentials(lambda state: _required(_pair(state)))),
    ("take_the_secret_from_the_environment_first", FIRST, _credentials(_mixed)),
    ("keep_the_first_credentials", FIRST, _first_pair),
    (
        "read_variables_without_the_prefix",
        KEYS,
        _credentials(
            lambda state: _required(
                _pair(
                    state,
                    {name: os.environ.get(name.removeprefix("PLATFORM_")) for name in os.environ},
                )
            )
        ),
    ),
    ("sign_with_an_empty_key", KEYS, _credentials(_unsigned)),
    (
        "not_say_what_is_missing",
        KEYS,
        _credentials(
            lambda state: _required(_pair(state, _hosting(), os.environ), "run_code failed.")
        ),
    ),
    (
        "say_that_the_tool_is_missing",
        KEYS,
        _credentials(
            lambda state: _required(
                _pair(state, _hosting(), os.environ), "run_code needs PLATFORM_TOOL_ID."
            )
        ),
    ),
)


MUTANTS: tuple[Mutant, ...] = (
    *(Mutant(name, "RUN-01", sentence, change) for name, sentence, change in RESULTS),
    *(Mutant(name, "RUN-02", TOOL_ID, change) for name, change in IDS),
    *(Mutant(name, "RUN-03", sentence, change) for name, sentence, change in CREDENTIALS),
)
