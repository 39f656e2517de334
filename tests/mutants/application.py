"""Mutants of the simple application: what reaches its entrypoint and its sandbox."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import pytest

from agentdouble.apps.simple import SimpleApp
from agentdouble.code_tool import DEFAULT_SESSION, Invocation
from tests.mutants import Mutant, lossy, wire

INVOKE = "POST */invoke"
USUAL = ("user_id", "session_id", "request_id")
OF_HTTP = (
    *("host", "content-type", "content-length", "transfer-encoding", "connection"),
    *("accept", "accept-encoding", "user-agent", "authorization", "cookie", "traceparent"),
)

BODY = "body (JSON object): prompt, user input (2.1)"
FIELDS = "other custom fields, any type: passed to the entrypoint in the payload (2.1)"
CUSTOM = "other custom headers: passed to the entrypoint in headers (2.1)"
TRACE = "header request_id: request trace identifier (2.1)"
IDENTIFIERS = "header user_id: user identifier, session_id: session identifier (2.1)"
DEFAULTS = "The entrypoint may fall back to defaults when user_id or session_id is absent (2.1)"
SELECTS = "session_id: session identifier; also selects the sandbox instance (2.1)"


# ---- payload


def _prompt(change: Callable[[str], Any]) -> wire.Change:
    """Change the prompt on its way to the entrypoint."""

    def payload(given: Any) -> Any:
        if isinstance(given, dict) and isinstance(given.get("prompt"), str):
            return {**given, "prompt": change(given["prompt"])}
        return given

    return wire.requests(INVOKE, payload)


def _fields(keep: Callable[[str, Any], bool]) -> wire.Change:
    """Lose fields of the payload on their way to the entrypoint."""

    def payload(given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        return {name: value for name, value in given.items() if keep(name, value)}

    return wire.requests(INVOKE, payload)


def _values(change: Callable[[Any], Any]) -> wire.Change:
    """Change the values of the payload on their way to the entrypoint, whatever their depth."""

    def deep(value: Any) -> Any:
        if isinstance(value, dict):
            return change({name: deep(inner) for name, inner in value.items()})
        return change([deep(inner) for inner in value] if isinstance(value, list) else value)

    def payload(given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        return {name: deep(value) for name, value in given.items()}

    return wire.requests(INVOKE, payload)


def _text(change: Callable[[str], Any]) -> Callable[[Any], Any]:
    return lambda value: change(value) if isinstance(value, str) else value


def _keep_the_fields_of_earlier_requests(patch: pytest.MonkeyPatch) -> None:
    kept: dict[str, Any] = {}

    def payload(given: Any, request: wire.Request) -> Any:
        if not isinstance(given, dict):
            return given
        session = kept.setdefault(request.headers.get("session_id", ""), {})
        merged = {**session, **given}
        session.update({name: value for name, value in given.items() if name != "do"})
        return merged

    wire.install(patch, wire.requests(INVOKE, payload))


def _take_the_user_of_the_header(given: Any, request: wire.Request) -> Any:
    if isinstance(given, dict) and "user_id" in given and "user_id" in request.headers:
        return {**given, "user_id": request.headers["user_id"]}
    return given


def _without_white_space_names(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {name.strip().replace(" ", "_"): inner for name, inner in value.items()}


def _in_lower_case(given: Any) -> Any:
    if not isinstance(given, dict):
        return given
    return {name.lower(): value for name, value in given.items()}


def _flattened(given: Any) -> Any:
    if not isinstance(given, dict):
        return given
    flat: dict[str, Any] = {}
    for name, value in given.items():
        nested = isinstance(value, dict) and value
        flat.update({f"{name}.{k}": v for k, v in value.items()} if nested else {name: value})
    return flat


PAYLOAD = (
    ("strip_the_prompt", BODY, _prompt(str.strip)),
    ("cut_the_prompt_at_2000_characters", BODY, _prompt(lambda text: text[:2000])),
    ("cut_the_prompt_at_64_kib", BODY, _prompt(lambda text: text[:65536])),
    ("join_the_lines_of_the_prompt", BODY, _prompt(lambda text: " ".join(text.split("\n")))),
    ("read_cr_lf_in_the_prompt_as_lf", BODY, _prompt(lambda text: text.replace("\r\n", "\n"))),
    (
        "read_escapes_in_the_prompt_twice",
        BODY,
        _prompt(lambda text: text.replace("\\n", "\n").replace("\\t", "\t")),
    ),
    (
        "escape_html_in_the_prompt",
        BODY,
        _prompt(lambda text: text.replace("&", "&amp;").replace("<", "&lt;")),
    ),
    (
        "lose_characters_beyond_the_basic_plane",
        BODY,
        _prompt(lambda text: "".join(one for one in text if ord(one) < 0x10000)),
    ),
    ("lose_an_empty_prompt", BODY, _fields(lambda name, value: name != "prompt" or value != "")),
    ("lose_fields_that_are_null", FIELDS, _fields(lambda _name, value: value is not None)),
    ("lose_fields_that_are_false", FIELDS, _fields(lambda _name, value: value is not False)),
    ("read_booleans_as_numbers", FIELDS, wire.requests(INVOKE, lossy.booleans_as_numbers)),
    ("lose_empty_lists_and_objects", FIELDS, _fields(lambda _name, value: value not in ([], {}))),
    ("lose_fields_with_an_underscore_first", FIELDS, _fields(lambda name, _: name[:1] != "_")),
    ("lose_fields_named_like_a_header", FIELDS, _fields(lambda name, _: name not in USUAL)),
    ("lose_fields_of_non_ascii_names", FIELDS, _fields(lambda name, _: name.isascii())),
    (
        "take_user_id_of_the_body_from_the_header",
        FIELDS,
        wire.requests(INVOKE, _take_the_user_of_the_header),
    ),
    (
        "lower_the_case_of_names",
        FIELDS,
        wire.requests(INVOKE, _in_lower_case),
    ),
    ("make_dotted_names_of_nested_fields", FIELDS, wire.requests(INVOKE, _flattened)),
    ("change_white_space_in_nested_names", FIELDS, _values(_without_white_space_names)),
    (
        "say_numbers_as_text",
        FIELDS,
        _values(lambda value: str(value) if type(value) in (int, float) else value),
    ),
    (
        "say_booleans_as_text",
        FIELDS,
        _values(lambda value: str(value).lower() if isinstance(value, bool) else value),
    ),
    (
        "say_nested_objects_as_text",
        FIELDS,
        _values(lambda value: json.dumps(value) if isinstance(value, dict) and value else value),
    ),
    (
        "keep_the_first_of_each_list",
        FIELDS,
        _values(lambda value: value[:1] if isinstance(value, list) else value),
    ),
    ("strip_custom_texts", FIELDS, _values(_text(str.strip))),
    (
        "replace_non_ascii_in_texts",
        FIELDS,
        _values(_text(lossy.to_ascii)),
    ),
    ("keep_the_fields_of_earlier_requests", FIELDS, _keep_the_fields_of_earlier_requests),
)


# ---- headers


def _headers(change: Callable[[wire.Headers], Any]) -> wire.Change:
    """Change the headers in place on their way to the entrypoint."""
    return wire.requested(INVOKE, lambda request: change(request.headers))


def _custom(change: Callable[[str, str], str | None]) -> wire.Change:
    """Change the values of custom headers; None loses one."""

    def in_place(headers: wire.Headers) -> None:
        for name in [name for name in headers if name not in (*USUAL, *OF_HTTP)]:
            changed = change(name, headers.pop(name))
            if changed is not None:
                headers[name] = changed

    return _headers(in_place)


def _ids(change: Callable[[str], str]) -> wire.Change:
    """Change the values of user_id, session_id and request_id."""
    return _headers(
        lambda headers: headers.update(
            {name: change(headers[name]) for name in USUAL if name in headers}
        )
    )


def _keep_one_custom_header(headers: wire.Headers) -> None:
    custom = [name for name in headers if name not in (*USUAL, *OF_HTTP)]
    for name in custom[:-1]:
        del headers[name]


def _swap_user_and_session(headers: wire.Headers) -> None:
    if "user_id" in headers and "session_id" in headers:
        headers["user_id"], headers["session_id"] = headers["session_id"], headers["user_id"]


def _first_of_a_session(name: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Keep the first value of a header for all later requests of the session."""

    def mutant(patch: pytest.MonkeyPatch) -> None:
        first: dict[str, str] = {}

        def in_place(headers: wire.Headers) -> None:
            if name in headers and "session_id" in headers:
                headers[name] = first.setdefault(headers["session_id"], headers[name])

        wire.install(patch, _headers(in_place))

    return mutant


def _show_the_last_requests_headers(patch: pytest.MonkeyPatch) -> None:
    last: dict[str, str] = {}

    def in_place(headers: wire.Headers) -> None:
        custom = {name: headers[name] for name in headers if name not in (*USUAL, *OF_HTTP)}
        headers.update({name: value for name, value in last.items() if name not in headers})
        last.clear()
        last.update(custom)

    wire.install(patch, _headers(in_place))


def _number(text: str) -> str:
    return str(int(text)) if text.isdecimal() else text


HEADERS = (
    ("lose_request_id", TRACE, _headers(lambda headers: headers.pop("request_id", None))),
    (
        "replace_request_id",
        TRACE,
        _headers(lambda headers: headers.update(request_id=uuid.uuid4().hex)),
    ),
    ("keep_the_first_request_id_of_a_session", TRACE, _first_of_a_session("request_id")),
    ("keep_the_first_user_id_of_a_session", IDENTIFIERS, _first_of_a_session("user_id")),
    ("swap_user_id_and_session_id", IDENTIFIERS, _headers(_swap_user_and_session)),
    ("lower_the_case_of_ids", IDENTIFIERS, _ids(str.lower)),
    ("cut_ids_at_32_characters", IDENTIFIERS, _ids(lambda text: text[:32])),
    ("read_ids_as_numbers", IDENTIFIERS, _ids(_number)),
    (
        "read_hyphens_in_ids_as_underscores",
        IDENTIFIERS,
        _ids(lambda text: text.replace("-", "_")),
    ),
    ("lose_custom_headers", CUSTOM, _custom(lambda _name, _value: None)),
    (
        "lose_custom_headers_with_an_x",
        CUSTOM,
        _custom(lambda name, value: None if name.startswith("x-") else value),
    ),
    (
        "lose_custom_headers_without_an_x",
        CUSTOM,
        _custom(lambda name, value: value if name.startswith("x-") else None),
    ),
    (
        "lose_custom_headers_with_an_underscore",
        CUSTOM,
        _custom(lambda name, value: None if "_" in name else value),
    ),
    ("keep_one_custom_header", CUSTOM, _headers(_keep_one_custom_header)),
    ("cut_custom_headers_at_a_comma", CUSTOM, _custom(lambda _, value: value.partition(",")[0])),
    ("cut_custom_headers_at_a_semicolon", CUSTOM, _custom(lambda _, value: value.split(";")[0])),
    ("cut_custom_headers_at_256_characters", CUSTOM, _custom(lambda _, value: value[:256])),
    ("lower_the_case_of_custom_headers", CUSTOM, _custom(lambda _, value: value.lower())),
    ("decode_percent_signs_in_custom_headers", CUSTOM, _custom(lambda _, value: unquote(value))),
    ("lose_empty_custom_headers", CUSTOM, _custom(lambda _, value: value or None)),
    ("show_the_custom_headers_of_the_request_before", CUSTOM, _show_the_last_requests_headers),
)


def _given(name: str, value: Callable[[wire.Headers], str | None]) -> wire.Change:
    """Give a header to requests that lack it."""

    def in_place(headers: wire.Headers) -> None:
        found = value(headers)
        if name not in headers and found is not None:
            headers[name] = found

    return _headers(in_place)


def _last(name: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Give a request that lacks a header the last one that was seen."""

    def mutant(patch: pytest.MonkeyPatch) -> None:
        seen = [""]

        def in_place(headers: wire.Headers) -> None:
            if name in headers:
                seen[:] = [headers[name]]
            elif seen[0]:
                headers[name] = seen[0]

        wire.install(patch, _headers(in_place))

    return mutant


def _fail_without(*names: str) -> wire.Change:
    def answer(answer: wire.Answer, request: wire.Request) -> None:
        if any(name not in request.headers for name in names):
            answer.status = 500
            answer.body = b'{"error": {"message": "Internal Server Error", "type": "KeyError"}}'

    return wire.answered(INVOKE, answer)


def _lose_both_without_one(headers: wire.Headers) -> None:
    if "user_id" not in headers or "session_id" not in headers:
        headers.pop("user_id", None)
        headers.pop("session_id", None)


ABSENT = (
    ("fill_in_a_user_id", _given("user_id", lambda _: "platform-user")),
    ("fill_in_a_session_id", _given("session_id", lambda _: uuid.uuid4().hex)),
    ("fill_in_an_empty_user_id", _given("user_id", lambda _: "")),
    ("fill_in_null_for_a_session_id", _given("session_id", lambda _: "null")),
    (
        "take_the_user_id_for_a_session_id",
        _given("session_id", lambda headers: headers.get("user_id")),
    ),
    ("give_the_user_id_of_an_earlier_request", _last("user_id")),
    ("give_the_session_id_of_an_earlier_request", _last("session_id")),
    ("fail_without_a_user_id", _fail_without("user_id")),
    ("fail_without_a_session_id", _fail_without("session_id")),
    ("lose_both_where_one_is_absent", _headers(_lose_both_without_one)),
)


# ---- the sandbox's instance


def _selected(
    change: Callable[[Invocation, Mapping[str, str]], str],
) -> Callable[[pytest.MonkeyPatch], None]:
    """Select the instance by another session id."""

    def mutant(patch: pytest.MonkeyPatch) -> None:
        whole = SimpleApp._invocation

        def invocation(app: SimpleApp, headers: Mapping[str, str]) -> Invocation:
            found = whole(app, headers)
            return replace(found, session_id=change(found, headers))

        patch.setattr(SimpleApp, "_invocation", invocation)

    return mutant


def _session_of_the_request_before(patch: pytest.MonkeyPatch) -> None:
    last = [DEFAULT_SESSION]

    def before(found: Invocation, _headers: Mapping[str, str]) -> str:
        last.append(found.session_id)
        return last.pop(0)

    _selected(before)(patch)


def _first_session_of_a_user(patch: pytest.MonkeyPatch) -> None:
    first: dict[str, str] = {}
    _selected(lambda found, _: first.setdefault(found.user_id, found.session_id))(patch)


def _new_instance_after_an_error(patch: pytest.MonkeyPatch) -> None:
    failed: list[str] = []

    def note(result: Any, request: wire.Request) -> Any:
        if not result["success"]:
            failed.append(request.json["UserSessionId"])
        return result

    def select(found: Invocation, _headers: Mapping[str, str]) -> str:
        times = sum(one.startswith(found.user_session_id) for one in failed)
        return f"{found.session_id}-{times}" if times else found.session_id

    wire.install(patch, wire.executions(note))
    _selected(select)(patch)


def _session_of_requests_with_a_user(found: Invocation, headers: Mapping[str, str]) -> str:
    return found.session_id if "user_id" in headers else DEFAULT_SESSION


INSTANCES = (
    ("use_one_instance_for_all", _selected(lambda *_: DEFAULT_SESSION)),
    ("use_one_instance_a_user", _first_session_of_a_user),
    ("use_another_instance_each_time", _selected(lambda *_: uuid.uuid4().hex)),
    ("use_the_session_of_the_request_before", _session_of_the_request_before),
    ("use_the_default_session_without_a_user", _selected(_session_of_requests_with_a_user)),
    ("use_a_new_instance_after_an_error", _new_instance_after_an_error),
    ("ignore_the_case_of_the_session_id", _selected(lambda found, _: found.session_id.lower())),
    ("read_the_first_8_characters", _selected(lambda found, _: found.session_id[:8])),
    ("read_the_first_32_characters", _selected(lambda found, _: found.session_id[:32])),
    (
        "read_hyphens_as_underscores",
        _selected(lambda found, _: found.session_id.replace("-", "_")),
    ),
    ("read_numbers_without_leading_zeros", _selected(lambda found, _: _number(found.session_id))),
)


MUTANTS: tuple[Mutant, ...] = (
    *(Mutant(name, "INV-01", sentence, change) for name, sentence, change in PAYLOAD),
    *(Mutant(name, "INV-02", sentence, change) for name, sentence, change in HEADERS),
    *(Mutant(name, "INV-03", DEFAULTS, change) for name, change in ABSENT),
    *(Mutant(name, "INV-09", SELECTS, change) for name, change in INSTANCES),
)
