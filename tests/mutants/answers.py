"""Mutants of the simple application: answers, exceptions, and bodies that are refused."""

from __future__ import annotations

import ast
import json
import re
import uuid
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

import pytest

from doublecheck.contracts.reference.actions import ENVIRONMENT
from tests.mutants import Mutant, wire

INVOKE = "POST */invoke"

WRAPPED = "the entrypoint's return value wrapped as a JSON response (string) (4.1)"
RAISED = "a missing prompt key raises a key error in the function (7.1)"
ANSWERED = "Other exceptions return Error: <message> text in the examples (7.1)"
NO_JSON = "body (JSON object), Content-Type application/json (2.1)"


# ---- answers


def _set(answer: wire.Answer, status: int, body: Any) -> None:
    answer.status, answer.body = status, json.dumps(body).encode()
    answer.headers["content-type"] = "application/json"


def _said(change: Callable[[str], Any]) -> wire.Change:
    """Change the string that the entrypoint returned."""
    return wire.answers(INVOKE, lambda said: change(said) if isinstance(said, str) else said)


def _read(text: str, kinds: tuple[type, ...]) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, kinds) else text


def _say_the_text_itself(answer: wire.Answer, _request: wire.Request) -> None:
    document = json.loads(answer.body) if answer.status == 200 else None
    if isinstance(document, str):
        answer.body = document.encode()


def _say_latin_1(answer: wire.Answer, _request: wire.Request) -> None:
    text = answer.body.decode()
    answer.body = text.encode("latin-1", "replace")


def _lie_about_the_type(answer: wire.Answer, _request: wire.Request) -> None:
    answer.headers["content-type"] = "text/plain; charset=utf-8"


def _repeated(key: Callable[[wire.Request], str]) -> Callable[[pytest.MonkeyPatch], None]:
    """Repeat an earlier answer to requests with the same key."""

    def mutant(patch: pytest.MonkeyPatch) -> None:
        first: dict[str, bytes] = {}

        def answer(answer: wire.Answer, request: wire.Request) -> None:
            if answer.status == 200 and key(request):
                answer.body = first.setdefault(key(request), answer.body)

        wire.install(patch, wire.answered(INVOKE, answer))

    return mutant


def _prompt_of(request: wire.Request) -> str:
    return str((request.json or {}).get("prompt", ""))


STRINGS = (
    ("say_the_text_itself", wire.answered(INVOKE, _say_the_text_itself)),
    ("say_it_is_plain_text", wire.answered(INVOKE, _lie_about_the_type)),
    ("encode_as_latin_1", wire.answered(INVOKE, _say_latin_1)),
    ("wrap_twice", _said(json.dumps)),
    ("unwrap_strings_that_are_json_objects", _said(lambda text: _read(text, (dict, list)))),
    ("unwrap_strings_that_are_numbers", _said(lambda text: _read(text, (int, float)))),
    ("unwrap_null", _said(lambda text: None if text == "null" else text)),
    ("say_null_for_an_empty_string", _said(lambda text: text or None)),
    ("strip_the_string", _said(str.strip)),
    ("lose_newlines_at_the_end", _said(lambda text: text.rstrip("\n"))),
    ("join_lines", _said(lambda text: text.replace("\n", " "))),
    ("read_cr_lf_as_lf", _said(lambda text: text.replace("\r\n", "\n"))),
    ("cut_at_4000_characters", _said(lambda text: text[:4000])),
    ("cut_at_64_kib", _said(lambda text: text[:65536])),
    (
        "lose_control_characters",
        _said(lambda text: re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", "", text)),
    ),
    ("escape_html", _said(lambda text: text.replace("&", "&amp;").replace("<", "&lt;"))),
    ("lose_markdown_fences", _said(lambda text: re.sub(r"^```\w*\n|\n```$", "", text))),
    (
        "replace_characters_beyond_the_basic_plane",
        _said(lambda text: "".join(one if ord(one) < 0x10000 else "\ufffd" for one in text)),
    ),
    (
        "repeat_the_first_answer_of_a_session",
        _repeated(lambda request: request.headers.get("session_id", "")),
    ),
    ("repeat_the_answer_to_the_same_prompt", _repeated(_prompt_of)),
)


# ---- exceptions


def _raised(change: Callable[[wire.Answer, wire.Request], None], kind: str = "") -> wire.Change:
    """Change the answers to exceptions of the entrypoint, or to those of one kind."""

    def answer(answer: wire.Answer, request: wire.Request) -> None:
        if answer.status == 500 and f'"{kind}'.encode() in answer.body:
            change(answer, request)

    return wire.answered(INVOKE, answer)


def _after(
    route: str, *, failures: int = 1, same_session: bool = False
) -> Callable[[pytest.MonkeyPatch], None]:
    """Refuse the requests of a route after exceptions of the entrypoint."""

    def mutant(patch: pytest.MonkeyPatch) -> None:
        failed: list[str] = []

        def refuse(answer: wire.Answer, request: wire.Request) -> None:
            own = not same_session or request.headers.get("session_id", "") in failed
            if len(failed) >= failures and own:
                _set(answer, 503, {"error": "Service Unavailable"})

        def note(answer: wire.Answer, request: wire.Request) -> None:
            if answer.status == 500:
                failed.append(request.headers.get("session_id", ""))

        wire.install(patch, wire.answered(route, refuse), wire.answered(INVOKE, note))

    return mutant


def _after_a_failure_in_a_stream(patch: pytest.MonkeyPatch) -> None:
    failed: list[bytes] = []

    def note(raw: bytes) -> bytes:
        if b'"error"' in raw:
            failed.append(raw)
        return raw

    def refuse(answer: wire.Answer, _request: wire.Request) -> None:
        if failed:
            _set(answer, 503, {"error": "Service Unavailable"})

    wire.install(patch, wire.raw_events(INVOKE, note), wire.answered(INVOKE, refuse))


def _repeat_the_error(patch: pytest.MonkeyPatch) -> None:
    pending: list[bytes] = []

    def answer(answer: wire.Answer, _request: wire.Request) -> None:
        if answer.status == 500:
            pending.append(answer.body)
        elif pending:
            answer.status, answer.body = 500, pending.pop()

    wire.install(patch, wire.answered(INVOKE, answer))


def _restart(patch: pytest.MonkeyPatch) -> None:
    restarted: list[str] = []

    def answer(answer: wire.Answer, _request: wire.Request) -> None:
        if answer.status == 500:
            restarted[:] = [uuid.uuid4().hex]
        for environment in restarted:
            answer.body = answer.body.replace(ENVIRONMENT.encode(), environment.encode())

    wire.install(patch, wire.answered(INVOKE, answer))


EXCEPTIONS = (
    ("answer_null", _raised(lambda answer, _: _set(answer, 200, None))),
    ("answer_an_empty_string", _raised(lambda answer, _: _set(answer, 200, ""))),
    (
        "answer_the_message_as_the_result",
        _raised(lambda answer, request: _set(answer, 200, _prompt_of(request))),
    ),
    ("answer_null_for_a_key_error", _raised(lambda answer, _: _set(answer, 200, None), "KeyError")),
    (
        "answer_null_for_a_value_error",
        _raised(lambda answer, _: _set(answer, 200, None), "ValueError"),
    ),
    ("go_down", _after(INVOKE)),
    ("go_down_after_the_third_exception", _after(INVOKE, failures=3)),
    ("go_down_after_a_failure_in_a_stream", _after_a_failure_in_a_stream),
    ("refuse_the_session_afterwards", _after(INVOKE, same_session=True)),
    ("lose_the_ping_afterwards", _after("GET /ping")),
    ("be_not_ready_afterwards", _after("GET /readiness")),
    ("repeat_the_error_to_the_next_request", _repeat_the_error),
    ("restart_the_environment", _restart),
)


# ---- bodies that are not JSON


def _refused(change: Callable[[wire.Answer, wire.Request], None]) -> wire.Change:
    """Change the refusal of a body that is not JSON."""

    def answer(answer: wire.Answer, request: wire.Request) -> None:
        if answer.status == 400 and request.json is None:
            change(answer, request)

    return wire.answered(INVOKE, answer)


def _taken(change: Callable[[str], Any]) -> wire.Change:
    """Take a body that is not JSON for an object; None where it is none either."""

    def in_place(request: wire.Request) -> None:
        if request.json is None and request.body != b"null":
            found = change(request.body.decode("utf-8", "replace"))
            request.body = request.body if found is None else json.dumps(found).encode()

    return wire.requested(INVOKE, in_place)


def _literal(text: str) -> Any:
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None
    return found if isinstance(found, dict) else None


def _loosely(text: str, *, closed: str = "") -> Any:
    try:
        return json.loads(re.sub(r",(?=\s*[}\]])", "", text) + closed)
    except ValueError:
        return None


def _first_object(text: str) -> Any:
    try:
        return json.JSONDecoder().raw_decode(text)[0]
    except ValueError:
        return None


def _say_nothing(answer: wire.Answer, _request: wire.Request) -> None:
    answer.body = b""


BODIES = (
    ("fail_with_500", _refused(lambda answer, _: _set(answer, 500, {"error": "no JSON"}))),
    ("answer_200_with_an_error", _refused(lambda answer, _: _set(answer, 200, {"error": "no"}))),
    ("refuse_without_a_word", _refused(_say_nothing)),
    ("refuse_with_an_empty_object", _refused(lambda answer, _: _set(answer, 400, {}))),
    ("take_an_empty_body_for_an_object", _taken(lambda text: None if text else {})),
    ("take_text_for_the_prompt", _taken(lambda text: {"prompt": text})),
    ("take_a_form", _taken(lambda text: dict(parse_qsl(text)) or None)),
    ("take_single_quotes", _taken(_literal)),
    ("take_trailing_commas", _taken(_loosely)),
    ("close_a_body_that_is_cut", _taken(lambda text: _loosely(text, closed="}"))),
    ("take_the_first_of_two_objects", _taken(_first_object)),
)


MUTANTS: tuple[Mutant, ...] = (
    *(Mutant(name, "INV-04", WRAPPED, change) for name, change in STRINGS),
    *(
        Mutant(name, "INV-07", RAISED if "key_error" in name else ANSWERED, change)
        for name, change in EXCEPTIONS
    ),
    *(Mutant(name, "INV-08", NO_JSON, change) for name, change in BODIES),
)
