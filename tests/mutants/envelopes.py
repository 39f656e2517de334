"""Mutants of the answers of InvokeTool: the envelope and the JSON inside (2.7, 2.8)."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

from tests.mutants import Mutant, lossy, wire
from tests.mutants.sandbox_changes import (
    Json,
    data,
    document,
    error,
    if_bash,
    is_error,
    metadata,
    output,
    result,
)

ENVELOPE = "Tool invocation envelope: {} (2.8)"
EXECUTION = "Code execution result: {} (2.7)"
ITEMS = (
    "Items of outputs: output_type, name, text, data (nullable), metadata (object), "
    "execution_count (nullable integer), ename, evalue, traceback (2.7)"
)


def _second(change: Callable[[Json], Any]) -> Callable[[Json], Any]:
    """Change all results but the first of each session."""
    seen: set[str] = set()

    def from_the_second(result: Json) -> None:
        session = result["SessionId"]
        if session in seen:
            change(result)
        seen.add(session)

    return from_the_second


def _first_of_all(name: str) -> Callable[[Json], Any]:
    """Answer with the value that the first request of all was answered with."""
    first: list[Any] = []

    def stale(result: Json) -> None:
        first.append(result[name])
        result[name] = first[0]

    return stale


def _if_failed(change: Callable[[Json], Any]) -> Callable[[Json], Any]:
    def failed(result: Json) -> None:
        inner = json.loads(result["Result"])
        if "outputs" in inner["data"] and is_error(inner):
            change(result)

    return failed


def _set(**fields: Any) -> Callable[[Json], Any]:
    return lambda changed: changed.update(fields)


def _drop(*names: str) -> Callable[[Json], Any]:
    return lambda changed: [changed.pop(name, None) for name in names]


def _as_object(result: Json) -> None:
    result["Result"] = json.loads(result["Result"])


def _data_alone(result: Json) -> None:
    result["Result"] = json.dumps(json.loads(result["Result"])["data"])


def _twice(result: Json) -> None:
    result["Result"] = json.dumps(result["Result"])


def _as_python(result: Json) -> None:
    result["Result"] = repr(json.loads(result["Result"]))


def _without_nulls(one: Json) -> None:
    for name in [name for name, value in one.items() if value is None]:
        del one[name]


def _stale_code() -> Callable[[Json], Any]:
    before = [""]

    def stale(data: Json) -> None:
        before.append(data["code"])
        data["code"] = before[-2]

    return stale


def _sticky() -> Callable[[Json], Any]:
    """Keep the status of an error in all later executions of its session."""
    failed: dict[str, str] = {}

    def sticky(data: Json) -> None:
        if data["status"] != "ok":
            failed.setdefault(data["session_id"], data["status"])
        data["status"] = failed.get(data["session_id"], "ok")

    return sticky


def _numbered() -> Callable[[Json], Any]:
    numbers = itertools.count(1)
    return lambda data: data.update(msg_id=next(numbers))


def _only_first_whole(data: Json) -> None:
    for one in data["outputs"][1:]:
        _drop("metadata", "execution_count", "data")(one)


def _code(change: Callable[[str], str]) -> wire.Change:
    return data(lambda data: data.update(code=change(data["code"])))


_ENVELOPES = (
    Mutant(
        "lose_the_request_id",
        "CTL-01",
        ENVELOPE.format("ResponseMetadata.RequestId"),
        metadata(_drop("RequestId")),
    ),
    Mutant(
        "give_all_requests_one_id",
        "CTL-01",
        ENVELOPE.format("ResponseMetadata.RequestId"),
        metadata(_set(RequestId="20261121000000000000000000000001")),
    ),
    Mutant(
        "give_a_number_as_the_request_id",
        "CTL-01",
        ENVELOPE.format("RequestId: string"),
        metadata(_set(RequestId=20261121)),
    ),
    Mutant(
        "name_the_operation_as_the_action",
        "CTL-01",
        ENVELOPE.format("Action: `InvokeTool`"),
        metadata(_set(Action="RunCode")),
    ),
    Mutant(
        "name_another_version",
        "CTL-01",
        ENVELOPE.format("Version: `2025-10-30`"),
        metadata(_set(Version="2025-10-31")),
    ),
    Mutant(
        "lose_the_service", "CTL-01", ENVELOPE.format("Service: string"), metadata(_drop("Service"))
    ),
    Mutant(
        "give_no_text_as_the_region",
        "CTL-01",
        ENVELOPE.format("Region: string"),
        metadata(_set(Region=None)),
    ),
    Mutant("lose_the_tool_id", "CTL-01", ENVELOPE.format("Result.ToolId"), result(_drop("ToolId"))),
    Mutant(
        "name_another_tool",
        "CTL-01",
        ENVELOPE.format("Result.ToolId"),
        result(_set(ToolId="t-0123456789abcdef0123")),
    ),
    Mutant(
        "cut_the_user_session_id_to_32_characters",
        "CTL-01",
        ENVELOPE.format("Result.UserSessionId"),
        result(lambda one: one.update(UserSessionId=one["UserSessionId"][:32])),
    ),
    Mutant(
        "write_the_user_session_id_in_capitals",
        "CTL-01",
        ENVELOPE.format("Result.UserSessionId"),
        result(lambda one: one.update(UserSessionId=one["UserSessionId"].upper())),
    ),
    Mutant(
        "name_the_user_session_of_the_first_request",
        "CTL-01",
        ENVELOPE.format("Result.UserSessionId"),
        result(_first_of_all("UserSessionId")),
    ),
    Mutant(
        "leave_out_the_endpoint_from_the_second_call_on",
        "CTL-01",
        ENVELOPE.format("Result.Endpoint (may be empty)"),
        result(_second(_drop("Endpoint"))),
    ),
    Mutant(
        "give_null_as_the_internal_endpoint",
        "CTL-01",
        ENVELOPE.format("Result.InternalEndpoint: string (may be empty)"),
        result(_set(InternalEndpoint=None)),
    ),
    Mutant(
        "lose_the_session_id_of_code_that_fails",
        "CTL-01",
        ENVELOPE.format("Result.SessionId"),
        result(_if_failed(_drop("SessionId"))),
    ),
    Mutant(
        "lose_the_user_session_id_of_commands",
        "CTL-01",
        ENVELOPE.format("Result.UserSessionId"),
        result(if_bash(_drop("UserSessionId"))),
    ),
)

_EXECUTIONS = (
    Mutant(
        "give_the_result_as_an_object",
        "CTL-02",
        ENVELOPE.format("Result.Result: string containing the JSON of 2.7"),
        result(_as_object),
    ),
    Mutant(
        "encode_the_result_twice",
        "CTL-02",
        ENVELOPE.format("Result.Result: string containing the JSON of 2.7"),
        result(_twice),
    ),
    Mutant(
        "write_the_result_as_python",
        "CTL-02",
        ENVELOPE.format("Result.Result: string containing the JSON of 2.7"),
        result(_as_python),
    ),
    Mutant(
        "give_the_data_alone",
        "CTL-02",
        EXECUTION.format("success, message, data"),
        result(_data_alone),
    ),
    Mutant(
        "give_the_result_of_failed_code_as_an_object",
        "CTL-02",
        ENVELOPE.format("Result.Result: string containing the JSON of 2.7"),
        result(_if_failed(_as_object)),
    ),
    Mutant(
        "tell_success_as_text",
        "CTL-02",
        EXECUTION.format("success: bool"),
        document(_set(success="true")),
    ),
    Mutant(
        "tell_no_success_of_what_succeeded",
        "CTL-02",
        EXECUTION.format("success: bool"),
        document(lambda one: one.update(success=False)),
    ),
    Mutant(
        "give_null_as_the_message",
        "CTL-02",
        EXECUTION.format("message: string"),
        document(_set(message=None)),
    ),
    Mutant(
        "lose_the_message_of_failed_code",
        "CTL-02",
        EXECUTION.format("message: string"),
        document(lambda one: one.pop("message") if is_error(one) else None),
    ),
    Mutant(
        "lose_the_kernel_name",
        "CTL-02",
        EXECUTION.format("data.kernel_name"),
        data(_drop("kernel_name")),
    ),
    Mutant(
        "call_every_kernel_python",
        "CTL-02",
        EXECUTION.format("data.kernel_name: the language kernel name"),
        data(_set(kernel_name="python3")),
    ),
    Mutant(
        "give_null_as_the_session_of_the_data",
        "CTL-02",
        EXECUTION.format("data.session_id: string"),
        data(_set(session_id=None)),
    ),
    Mutant(
        "tell_the_status_as_success",
        "CTL-02",
        EXECUTION.format("data.status: `ok` on success"),
        data(lambda one: one.update(status="success") if one["status"] == "ok" else None),
    ),
    Mutant(
        "keep_the_status_after_an_error",
        "CTL-02",
        EXECUTION.format("data.status: `ok` on success"),
        data(_sticky()),
    ),
    Mutant(
        "count_executions_in_text",
        "CTL-02",
        EXECUTION.format("data.execution_count: integer"),
        data(lambda one: one.update(execution_count=str(one["execution_count"]))),
    ),
    Mutant(
        "give_null_in_place_of_no_outputs",
        "CTL-02",
        EXECUTION.format("data.outputs: array"),
        data(lambda one: one.update(outputs=one["outputs"] or None)),
    ),
    Mutant(
        "answer_with_the_code_of_the_execution_before",
        "CTL-02",
        EXECUTION.format("data.code: the executed code"),
        data(_stale_code()),
    ),
    Mutant(
        "strip_the_code",
        "CTL-02",
        EXECUTION.format("data.code: the executed code"),
        _code(str.strip),
    ),
    Mutant(
        "cut_the_code_to_256_characters",
        "CTL-02",
        EXECUTION.format("data.code: the executed code"),
        _code(lambda code: code[:256]),
    ),
    Mutant(
        "lose_letters_of_the_code_that_are_not_ascii",
        "CTL-02",
        EXECUTION.format("data.code: the executed code"),
        _code(lossy.to_ascii),
    ),
    Mutant(
        "answer_with_the_first_line_of_the_code",
        "CTL-02",
        EXECUTION.format("data.code: the executed code"),
        _code(lossy.first_line),
    ),
    Mutant("lose_the_message_id", "CTL-02", EXECUTION.format("data.msg_id"), data(_drop("msg_id"))),
    Mutant(
        "number_the_messages",
        "CTL-02",
        EXECUTION.format("data.msg_id: string"),
        data(_numbered()),
    ),
    Mutant("leave_out_what_is_null_in_outputs", "CTL-02", ITEMS, output(_without_nulls)),
    Mutant("give_null_as_the_metadata_of_outputs", "CTL-02", ITEMS, output(_set(metadata=None))),
    Mutant("write_all_fields_of_the_first_output_alone", "CTL-02", ITEMS, data(_only_first_whole)),
    Mutant("leave_out_the_text_of_errors", "CTL-02", ITEMS, error(_drop("name", "text"))),
    Mutant(
        "leave_out_the_error_fields_of_values",
        "CTL-02",
        ITEMS,
        output(_drop("ename", "evalue", "traceback"), "execute_result"),
    ),
    Mutant(
        "lose_the_metadata_of_what_is_displayed",
        "CTL-02",
        ITEMS,
        output(_set(metadata={}), "display_data"),
    ),
    Mutant("lose_the_data_of_values", "CTL-02", ITEMS, output(_set(data=None), "execute_result")),
    Mutant(
        "keep_only_the_text_of_rich_data",
        "CTL-02",
        ITEMS,
        output(
            lambda one: one.update(data={"text/plain": one["data"].get("text/plain", "")}),
            "display_data",
        ),
    ),
    Mutant("name_every_output_a_stream", "CTL-02", ITEMS, output(_set(output_type="stream"))),
)

MUTANTS: tuple[Mutant, ...] = (*_ENVELOPES, *_EXECUTIONS)
