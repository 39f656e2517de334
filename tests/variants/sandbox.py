"""The variants of the control plane and of the sandbox."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from tests.mutants.changes import always, at, put, where
from tests.mutants.sandbox import (
    ACTIONS,
    DOWNLOAD,
    UPLOAD,
    data,
    envelope,
    failed,
    inner,
    is_javascript,
    outputs,
    terminal,
)
from tests.mutants.wire import Answer, Change, Request, answers, bodies, in_place
from tests.variants.forms import (
    IN_CAPITALS,
    OF_A_VENDOR,
    escaped,
    of_json,
    of_list,
    status,
    typed,
)

CONTROL = "POST /"
IS_VALUE, AS_DISPLAY = (
    (lambda output: output["output_type"] == "execute_result"),
    put(output_type="display_data", execution_count=None),
)
EMPTY_OUTPUT: dict[str, Any] = {
    **dict.fromkeys(("name", "text", "data", "execution_count", "ename", "evalue", "traceback")),
    "metadata": {},
}
SILENCE = {**EMPTY_OUTPUT, "output_type": "stream", "name": "stdout", "text": ""}
IDLE = {**EMPTY_OUTPUT, "output_type": "status"}
NO_ERROR = {"ename": "", "evalue": "", "traceback": []}
NO_TEXT = {"name": "", "text": ""}


# ---- refusals and results


def error_of(answer: Answer) -> Any:
    """Return the error of a refusal, empty if there is none."""
    return (answer.json or {}).get("ResponseMetadata", {}).get("Error", {})


def refusals(change: Callable[[Answer, str], None]) -> Change:
    """Change the refusals of the control plane, given their messages."""

    def change_answer(answer: Answer, _request: Request) -> None:
        if answer.status >= 400:
            change(answer, str(error_of(answer).get("Message", "")))

    return in_place(CONTROL, change_answer)


def no_error(metadata: Any) -> Any:
    """Show that there is no error."""
    return {"Error": None, **metadata}


def with_null(document: Any) -> Any:
    """Show that there is no result."""
    return {**(document or {}), "Result": None}


def as_plain_text(answer: Answer, message: str) -> None:
    """Refuse with text."""
    answer.body, answer.headers["content-type"] = message.encode(), "text/plain"


def split(some: list[Any]) -> list[Any]:
    """Report printed text in two stream outputs."""
    changed = []
    for output in some:
        text = output["text"]
        if output["output_type"] == "stream" and len(text) > 1:
            half = len(text) // 2
            changed += [{**output, "text": text[:half]}, {**output, "text": text[half:]}]
        else:
            changed.append(output)
    return changed


def by_lines(some: list[Any]) -> list[Any]:
    """Report each line of printed text in a stream output of its own."""
    changed = []
    for output in some:
        lines = re.findall(r"[^\n]*\n|[^\n]+", output["text"] or "")
        is_split = output["output_type"] == "stream" and 1 < len(lines) < 100
        changed += [{**output, "text": line} for line in lines] if is_split else [output]
    return changed


def empty(output: Any) -> Any:
    """Fill the fields that an output does not have with empty values instead of null."""
    absent = {} if output["ename"] else NO_ERROR
    absent = absent if output["output_type"] == "stream" else {**absent, **NO_TEXT}
    return {**output, **absent, "data": output["data"] or {}}


def plain(lines: list[str]) -> list[str]:
    """Remove the colours of a traceback, and split it into lines."""
    return re.sub(r"\x1b\[[\d;]*m", "", "\n".join(lines)).split("\n")


def with_html(output: Any) -> Any:
    """Add another form of a value."""
    return {**output, "data": {"text/html": "<b>value</b>", **(output["data"] or {})}}


def with_dots(id_: str) -> str:
    """Return an id with dots and colons."""
    return f"{id_}.a:1~b" if id_ else id_


def dotted() -> list[Change]:
    """Give sessions ids with dots and colons, and know them by these."""
    named = at("SessionId", lambda id_: id_.removesuffix(with_dots(" ").strip()))
    return [bodies(named, *ACTIONS), envelope("Result.SessionId", with_dots)]


OUTPUTS: dict[str, Any] = {
    "stdout_in_two_streams": outputs(split),
    "stdout_in_a_stream_per_line": outputs(by_lines),
    "an_empty_stream_at_first": outputs(lambda some: [SILENCE, *some]),
    "outputs_of_further_types": outputs(lambda some: [*some, IDLE]),
    "values_as_display_data": outputs(at("*", where(IS_VALUE, AS_DISPLAY))),
    "values_of_further_types": outputs(at("*", where(IS_VALUE, with_html))),
    "no_message_is_null": outputs(at("*.evalue", lambda text: text or None)),
    "absent_fields_are_empty": outputs(at("*", empty)),
    "every_output_with_a_count": outputs(at("*", put(execution_count=7))),
    "values_without_a_count": outputs(at("*", put(execution_count=None))),
    "tracebacks_without_colours": outputs(at("*.traceback", of_list(plain))),
    "tracebacks_in_one_item": outputs(at("*.traceback", of_list(lambda it: ["\n".join(it)]))),
    "tracebacks_with_line_ends": outputs(
        at("*.traceback", of_list(lambda it: [f"{line}\n" for line in it]))
    ),
    "outputs_with_further_keys": outputs(at("*", put(time=1))),
    "outputs_with_metadata": outputs(at("*", put(metadata={"a": [1]}))),
    "another_message": inner(put(message="", further=None)),
    "another_kernel_name": data(put(kernel_name="python-3.12-data")),
    "another_session_of_the_kernel": data(put(session_id="kernel-1", further={})),
    "failed_is_the_status": data(where(failed, put(status="failed"))),
    "a_failure_is_no_success": inner(where(failed, put(success=False, message="It failed."))),
    "a_failure_is_a_success_of_the_call": inner(where(failed, put(success=True))),
    "another_kernel_of_javascript": data(where(is_javascript, put(kernel_name="deno"))),
    "another_form_of_message_ids": data(at("msg_id", lambda id_: f"{id_}_17_3".upper())),
    "a_result_with_escapes": envelope("Result.Result", lambda text: escaped(json.loads(text))),
    "a_result_of_several_lines": envelope(
        "Result.Result", lambda text: json.dumps(json.loads(text), indent=4)
    ),
}
CONTROL_PLANE: dict[str, Any] = {
    **of_json(CONTROL),
    "content_type_in_capitals": in_place(CONTROL, IN_CAPITALS),
    "content_type_of_a_vendor": in_place(CONTROL, OF_A_VENDOR),
    "endpoints_that_are_not_empty": envelope("Result", put(Endpoint="https://x.example")),
    "an_envelope_with_further_fields": envelope("ResponseMetadata", put(Zone="a")),
    "an_envelope_with_further_parts": answers(CONTROL, put(Trace={"Id": "1"}, Warnings=[])),
    "a_result_with_further_fields": envelope("Result", put(Quota=None, Tags=[])),
    "another_service_and_region": envelope(
        "ResponseMetadata", put(Service="another", Region="eu-1")
    ),
    "request_ids_in_another_form": envelope(
        "ResponseMetadata.RequestId", lambda id_: f"req/{id_.upper()}=="
    ),
    "no_error_is_null": envelope("ResponseMetadata", no_error),
    "session_ids_with_dots": envelope("Result.SessionId", with_dots),
    "other_error_codes": answers(CONTROL, at("ResponseMetadata.Error", put(CodeN=1, Data={}))),
    "refusals_without_an_envelope": refusals(lambda it, text: it.set(it.status, {"error": text})),
    "refusals_with_a_result_of_null": refusals(lambda it, _: it.set(it.status, with_null(it.json))),
    "refusals_as_text": refusals(as_plain_text),
    "refusals_in_a_list": refusals(lambda it, text: it.set(it.status, {"errors": [text]})),
    "refusals_are_200": refusals(lambda answer, _: setattr(answer, "status", 200)),
    "an_unknown_tool_is_400": status(CONTROL, 404, 400),
    "an_unknown_tool_is_422": status(CONTROL, 404, 422),
    "an_unknown_tool_is_403": status(CONTROL, 404, 403),
    "a_wrong_signature_is_403": status(CONTROL, 401, 403),
    "a_wrong_signature_is_400": status(CONTROL, 401, 400),
    "a_key_without_access_is_401": status(CONTROL, 403, 401),
    "outputs_with_further_keys": OUTPUTS["outputs_with_further_keys"],
    "outputs_of_further_types": OUTPUTS["outputs_of_further_types"],
    "values_of_further_types": OUTPUTS["values_of_further_types"],
}
SANDBOX: dict[str, Any] = {
    **OUTPUTS,
    "traceback_as_one_text": outputs(at("*.traceback", of_list("\n".join))),
    "session_ids_with_dots": dotted(),
    "commands_with_further_fields": terminal(put(duration_s=0.1)),
    "a_finished_command_is_completed": terminal(at("status", always("completed"))),
    "an_upload_is_201": status(UPLOAD, 200, 201),
    "a_missing_file_is_410": status(DOWNLOAD, 404, 410),
    "a_missing_file_is_400": status(DOWNLOAD, 404, 400),
    "files_have_another_type": in_place(DOWNLOAD, typed("text/plain", "application/octet-stream")),
}
