"""Mutants of the control plane (CTL), the sandbox (SBX) and run_code's results (RUN-01)."""

from __future__ import annotations

import base64
import itertools
import json
import re
from collections.abc import Callable
from typing import Any

from tests.mutants.changes import OfValue, always, at, cut, drop, drop_if, put, signed_anyway, where
from tests.mutants.wire import (
    KEYS,
    Answer,
    Ask,
    Change,
    Request,
    action,
    actions,
    bodies,
    in_place,
    requested,
    statuses,
)

INVOKE, VERSION = "InvokeTool", "2025-10-30"
ACTIONS = (INVOKE, "ListSessions", "GetSession", "CreateSession", "DeleteSession")
INNER = "Result.Result.()"
UPLOAD, DOWNLOAD = "POST /v1/file/upload", "GET /v1/file/download"


# ---- answers


def envelope(path: str, change: OfValue) -> Change:
    """Change the value at a path in the envelope of InvokeTool."""
    return actions(INVOKE, at(path, change))


def inner(change: OfValue) -> Change:
    """Change the JSON of section 2.7 in results of executions."""
    return envelope(INNER, where(lambda value: "outputs" in (value.get("data") or {}), change))


def data(change: OfValue) -> Change:
    """Change the data of executions."""
    return inner(at("data", change))


def outputs(change: Callable[[list[Any]], Any]) -> Change:
    """Change the outputs of executions."""
    return inner(at("data.outputs", change))


def output(kind: str, change: OfValue) -> Change:
    """Change each output of this type or stream."""
    return inner(at("data.outputs.*", where(lambda output: is_of(output, kind), change)))


def stdout(change: Callable[[str], str]) -> Change:
    """Change the text of standard output."""
    return output("stdout", at("text", change))


def is_of(output: Any, kind: str) -> bool:
    """Return whether an output has this type or belongs to this stream."""
    return kind in (output["output_type"], output["name"])


def without(kind: str) -> Callable[[list[Any]], list[Any]]:
    """Remove the outputs of this type or stream."""
    return drop_if(lambda output: is_of(output, kind))


def failed(value: Any) -> bool:
    """Return whether the JSON of section 2.7, or its data, reports a failure."""
    return bool(value.get("data", value)["status"] != "ok")


def is_javascript(value: Any) -> bool:
    """Return whether the JSON of section 2.7, or its data, is for JavaScript."""
    return not value.get("data", value)["kernel_name"].startswith("python")


def succeeds(value: Any) -> Any:
    """Report a success."""
    return at("data", put(status="ok"))({**value, "success": True})


def of_session(value: Any) -> str:
    """Return the session in the data."""
    return str(value["session_id"])


def count(key: Callable[[Any], Any], counts: Callable[[Any], bool]) -> Change:
    """Number executions by key, counting only those that ``counts`` selects."""
    numbers: dict[Any, int] = {}

    def changed(value: Any) -> Any:
        numbers[key(value)] = numbers.get(key(value), 0) + counts(value)
        return {**value, "execution_count": numbers[key(value)]}

    return data(changed)


def refused_first(select: Callable[[Any], bool]) -> Change:
    """Refuse the first invocation of a session if it is selected."""
    ids: set[Any] = set()

    def change_answer(answer: Answer, request: Request) -> None:
        name = request.json.get("UserSessionId")
        if name not in ids and select(request.json):
            answer.set(404, {"ResponseMetadata": {"Error": {"Code": "NotFound", "Message": "No"}}})
        ids.add(name)

    return Change(action(INVOKE), answer=change_answer)


def nameless() -> OfValue:
    """Omit the instance id from the first invocation of a session."""
    ids: set[str] = set()

    def changed(value: Any) -> Any:
        again = value["UserSessionId"] in ids
        ids.add(value["UserSessionId"])
        return value if again else {**value, "SessionId": ""}

    return changed


def same_ids() -> OfValue:
    """Always return the id of a session's first instance."""
    ids: dict[str, str] = {}

    def changed(value: Any) -> Any:
        id_ = ids.setdefault(value["UserSessionId"], value["SessionId"])
        return {**value, "SessionId": id_}

    return changed


# ---- the terminal


def terminal(change: OfValue) -> Change:
    """Change the data of commands."""
    return envelope(
        INNER, where(lambda value: "exit_code" in (value.get("data") or {}), at("data", change))
    )


def command(change: Callable[[str], str]) -> Change:
    """Change commands."""
    return bodies(at("OperationPayload.()", at("command", change)))


# ---- requests


def code(change: Callable[[str], str], *, python: bool = True) -> list[Change]:
    """Change the code of a language; the answer repeats the original code."""

    def body(value: Any, request: Request) -> Any:
        payload = json.loads(value["OperationPayload"])
        if "code" not in payload or payload["kernel_name"].startswith("python") is not python:
            return value
        request.state["code"] = payload["code"]
        return at("OperationPayload.()", at("code", change))(value)

    def named(value: Any, request: Request) -> Any:
        sent = request.state.get("code")
        return at(f"{INNER}.data.code", lambda now: now if sent is None else sent)(value)

    return [bodies(body), actions(INVOKE, named)]


def before_python(prelude: str) -> list[Change]:
    """Run this Python code before the code of each call."""
    return code(lambda text: f"exec({prelude!r})\n{text}")


def language(change: Callable[[str], str]) -> Change:
    """Run code in another language."""
    return bodies(at("OperationPayload.()", at("kernel_name", change)))


def sessions(change: Callable[[str], str]) -> list[Change]:
    """Use a different session from the requested one; answers repeat the requested name."""

    def named(value: Any, request: Request) -> Any:
        name = request.state.get("name")
        return at("Result.UserSessionId", lambda now: name or now)(value)

    def other(value: Any, request: Request) -> Any:
        request.state["name"] = value.get("UserSessionId")
        return at("UserSessionId", change)(value)

    filters = at("Filters.*.Values.*", change)
    listed = bodies(filters, "ListSessions")
    return [bodies(other, *ACTIONS), listed, actions(INVOKE, named)]


def user(change: Callable[[str], str]) -> Callable[[str], str]:
    """Change the user's part of a session's name."""

    def changed(name: str) -> str:
        before, _, session = name.rpartition("_")
        return f"{change(before)}_{session}"

    return changed


def alternating() -> Callable[[str], str]:
    """Alternate between two names."""
    alternating = itertools.cycle("12")
    return lambda name: f"{name}-{next(alternating)}"


def lasting(seconds: int, select: Callable[[Any], bool]) -> Change:
    """Keep instances alive this long unless a request sets the time."""
    return bodies(lambda value: {"Ttl": seconds, **value} if select(value) else value)


# ---- callers


def let_in(when: Callable[[Request], bool]) -> Change:
    """Admit requests that are refused because of their signer."""
    return Change(action(*ACTIONS), around=signed_anyway(when))


def key_of(request: Request) -> str:
    """Return the access key of a request."""
    return request.header("authorization").partition("Credential=")[2].partition("/")[0]


def run_refused(statuses_: tuple[int, ...]) -> Change:
    """Refuse a request, but run it."""

    async def repeat(request: Request, ask: Ask) -> Answer:
        answer = await ask(request)
        if answer.status in statuses_:
            request.query = {**request.query, "Action": INVOKE, "Version": VERSION}
            request.sign()
            await ask(request)
        return answer

    return Change(lambda request: "Action" in request.query, around=repeat)


def tools(is_meant: Callable[[str, str], bool], select: Callable[[Any], bool] = bool) -> Change:
    """Accept other tool ids as the id of the tool that ran first."""
    ids: list[str] = []

    async def ask_again(request: Request, ask: Ask) -> Answer:
        answer = await ask(request)
        sent = str((request.json or {}).get("ToolId"))
        if answer.status < 400:
            ids.append(sent)
        elif ids and is_meant(sent, ids[0]) and select(request.json):
            request.body = json.dumps({**request.json, "ToolId": ids[0]}).encode()
            request.sign()
            answer = await ask(request)
        return answer

    return Change(action(INVOKE), around=ask_again)


def spoken(select: Callable[[str, str], bool]) -> Change:
    """Treat other actions and versions as InvokeTool."""

    def change_request(request: Request) -> None:
        if select(request.query["Action"], request.query.get("Version", "")):
            request.query = {**request.query, "Action": INVOKE, "Version": VERSION}
            request.sign()

    return Change(
        lambda request: (
            (request.query.get("Action"), request.query.get("Version")) != (INVOKE, VERSION)
            and "Action" in request.query
            and "OperationPayload" in (request.json or {})
        ),
        request=change_request,
    )


def unnamed(name: str) -> Change:
    """Refuse unknown actions and versions without naming them."""

    def change_answer(answer: Answer, request: Request) -> None:
        if answer.status >= 400 and request.query.get(name):
            answer.body = answer.body.replace(request.query[name].encode(), b"it")

    return Change(lambda request: "Action" in request.query, answer=change_answer)


def required(select: Callable[[Request], Any]) -> Change:
    """Refuse requests that do not match."""

    def change_answer(answer: Answer, request: Request) -> None:
        if not select(request):
            answer.set(400, {"ResponseMetadata": {"Error": {"Code": "No", "Message": "No."}}})

    return Change(action(INVOKE), answer=change_answer)


# ---- files and the browser

PART = re.compile(rb"(?s)(filename=.*?\r\n\r\n)(.*?)(\r\n--)")
PATH = re.compile(rb'(?s)(name="path"\r\n.*?\r\n)(.*?)(\r\n--)')


def uploaded(change: Callable[[bytes], bytes], part: re.Pattern[bytes] = PART) -> Change:
    """Change the content or the path of uploads."""

    def change_request(request: Request) -> None:
        request.body = part.sub(lambda m: m[1] + change(m[2]) + m[3], request.body, count=1)

    return requested(UPLOAD, change_request)


def downloaded(change: Callable[[bytes], bytes]) -> Change:
    """Change the content of downloads."""

    def change_answer(answer: Answer, _request: Request) -> None:
        if answer.status == 200:
            answer.body = change(answer.body)

    return in_place(DOWNLOAD, change_answer)


PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)

# ---- Python that runs before a session's own

FORGET = """
for _name in [n for n, _v in globals().items() if not n.startswith('_') and ({})
              and n not in ('In', 'Out', 'exit', 'quit', 'open', 'get_ipython')]:
    del globals()[_name]
"""
CLEAR = """
import os as _os, shutil as _shutil
for _name in _os.listdir('/home/gem'):
    _path = _os.path.join('/home/gem', _name)
    try:
        _shutil.rmtree(_path) if _os.path.isdir(_path) else _os.unlink(_path)
    except OSError:
        pass
"""


TABLE: dict[str, dict[str, Any]] = {
    "CTL-01": {
        "name_another_version": envelope("ResponseMetadata.Version", always("2025-10-31")),
        "lose_the_session_id_of_failures": envelope(
            "Result", where(lambda value: '"error"' in value["Result"], drop("SessionId"))
        ),
    },
    "CTL-02": {
        "give_the_result_as_an_object": envelope("Result.Result", json.loads),
        "give_null_for_no_outputs": outputs(lambda some: some or None),
    },
    "CTL-03": {
        "let_in_any_signature_of_a_known_key": let_in(
            lambda request: key_of(request) == KEYS.access_key
        ),
        "refuse_and_run": run_refused((401, 403)),
    },
    "CTL-04": {"know_the_beginning_of_an_id": tools(lambda sent, id_: id_.startswith(sent))},
    "CTL-05": {
        "write_an_underscore": envelope("Result.SessionId", lambda value: f"s_{value[2:]}"),
        "leave_out_the_prefix_of_tools": envelope("Result.ToolId", lambda value: value[2:]),
    },
    "CTL-06": {
        "speak_later_versions": spoken(lambda name, v: name == INVOKE and v > VERSION),
        "refuse_a_version_without_naming_it": unnamed("Version"),
    },
    "CTL-07": {
        "permit_every_key": Change(action(*ACTIONS), around=signed_anyway(lambda _: True, (403,))),
        "refuse_and_run": run_refused((403,)),
    },
    "CTL-08": {
        "require_a_ttl": required(lambda request: "Ttl" in request.json),
        "require_newer_headers": required(lambda r: "x-custom-request-context" in r.headers),
    },
    "SBX-01": {
        "refuse_a_command_first": refused_first(lambda b: b.get("OperationType") == "ExecBash"),
        "name_no_instance_at_first": envelope("Result", nameless()),
    },
    "SBX-02": {"remove_the_files_at_home": before_python(CLEAR)},
    "SBX-03": {"keep_the_session_id_past_the_end": envelope("Result", same_ids())},
    "SBX-04": {"know_24_characters_of_sessions": sessions(cut(24))},
    "SBX-05": {
        "write_standard_error_to_standard_output": output("stderr", put(name="stdout")),
        "lose_standard_output_before_an_error": data(
            where(failed, at("outputs", without("stdout")))
        ),
    },
    "SBX-06": {"tell_errors_of_javascript_as_success": inner(where(is_javascript, succeeds))},
    "SBX-07": {"count_no_errors": count(of_session, lambda value: not failed(value))},
    "SBX-08": {
        "run_javascript_as_python": language(always("python3")),
        "run_javascript_without_promises": code(
            lambda text: re.sub(r"\bawait\b", "void", text), python=False
        ),
    },
    "SBX-09": {"expand_nothing": command(lambda text: text.replace("$", r"\$"))},
    "SBX-10": {
        "download_up_to_the_first_nul": downloaded(lambda content: content.partition(b"\0")[0])
    },
    "SBX-11": {
        "have_no_browser": statuses("GET /v1/browser/info", 500),
        "show_the_same_picture": in_place(
            "GET /v1/browser/screenshot", lambda answer, _: setattr(answer, "body", PIXEL)
        ),
    },
    "SBX-12": {
        "know_users_by_their_length": sessions(user(lambda name: str(len(name)))),
        "leave_out_the_session": sessions(lambda name: name.rpartition("_")[0]),
    },
    "RUN-01": {"keep_the_last_output": outputs(lambda some: some[-1:])},
}
