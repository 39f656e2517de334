"""Mutants that fail for values at the edge: large numbers, invisible characters, empty texts."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from tests.mutants import agents, application, protocols, sandbox, wire
from tests.mutants.changes import at, drop_if, leaves, texts
from tests.mutants.wire import Answer, Change, Request

EXACT = 2**53
INVISIBLE = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff"))


# ---- values


def rounded(value: Any) -> Any:
    """Read large integers as floating-point numbers."""
    return int(float(value)) if type(value) is int and abs(value) > EXACT else value


def visible(text: str) -> str:
    """Remove characters without width."""
    return text.translate(INVISIBLE)


def without_nul(text: str) -> str:
    """Remove NUL."""
    return text.replace("\0", "")


def composed(text: str) -> str:
    """Compose letters and their accents."""
    return unicodedata.normalize("NFC", text)


def broken_at(size: int) -> Callable[[str], str]:
    """Decode parts of this many bytes one by one."""

    def change(text: str) -> str:
        content = text.encode("utf-8", "surrogatepass")
        parts = (content[i : i + size] for i in range(0, len(content), size))
        return "".join(part.decode("utf-8", "replace") for part in parts)

    return change


def on_a_terminal(text: str) -> str:
    """Show what a terminal shows after carriage returns."""
    return re.sub(r"[^\r\n]*\r(?=[^\r\n])", "", text)


def without_empty(value: Any) -> Any:
    """Remove empty lists and objects, at any depth."""
    if isinstance(value, list):
        return [without_empty(item) for item in value if item not in ([], {})]
    if isinstance(value, dict):
        return {key: without_empty(item) for key, item in value.items() if item not in ([], {})}
    return value


# ---- names


def spelled_as_first() -> list[Change]:
    """Take names of sessions that differ in case only for one."""
    names: dict[str, str] = {}

    def first(name: str) -> str:
        return names.setdefault(name.lower(), name)

    return [
        agents.segment(5, first, f"* {agents.SESSION}*"),
        wire.requests(agents.RUNS, at("sessionId", first)),
    ]


def empty_missing(answer: Answer, _request: Request) -> None:
    """Answer a download of an empty file as if there was none."""
    if answer.status == 200 and not answer.body:
        answer.set(404, {"success": False, "message": "not found"})


def without_message(answer: Answer, request: Request) -> None:
    """Answer null for an exception without a message."""
    if not (request.json or {}).get("prompt"):
        answer.set(200, None)


def id_0_as_none(document: Any) -> Any:
    """Answer a request with the id 0 as one without."""
    return {**document, "id": None} if document.get("id") == 0 else document


def numeric_id(document: Any) -> Any:
    """Answer an id of digits with a number."""
    id_ = document.get("id")
    return {**document, "id": int(id_)} if isinstance(id_, str) and id_.isdecimal() else document


TABLE: dict[str, dict[str, Any]] = {
    "INV-01": {
        "round_large_integers": application.payload(leaves(rounded)),
        "lose_characters_without_width": application.payload(texts(visible)),
    },
    "INV-02": {
        "decode_percent_in_ids": [application.header(n, unquote) for n in ("user_id", "session_id")]
    },
    "INV-04": {
        "lose_nul": application.string(without_nul),
        "break_a_character_at_8_kib": application.string(broken_at(8192)),
    },
    "INV-05": {"lose_empty_strings": application.strings(lambda text, _: text or [])},
    "INV-06": {
        "end_silently_without_a_message": application.failure(
            lambda v: v if v["error"] else wire.DROP
        )
    },
    "INV-07": {"answer_null_without_a_message": application.raised(without_message)},
    "HST-01": {"decode_percent_in_sessions": application.session(unquote)},
    "API-03": {
        "take_names_in_capitals_for_one": spelled_as_first(),
        "read_plus_as_a_space": agents.renamed(lambda name: name.replace("+", " "), stored=False),
    },
    "API-06": {
        "delete_names_in_other_capitals": agents.deleted(
            lambda this, other: this[:2] == other[:2] and this[2].lower() == other[2].lower()
        )
    },
    "API-07": {
        "lose_nul": agents.of_run(agents.each_event(agents.text(without_nul))),
        "lose_empty_parts_of_the_message": agents.message(
            at("parts", drop_if(lambda part: part == {"text": ""}))
        ),
    },
    "API-08": {
        "break_lines_at_separators": wire.events(
            agents.STREAM, agents.text(lambda t: re.sub("[\u2028\x85]", "\n", t))
        )
    },
    "API-11": {
        "round_large_integers_of_calls": agents.runs(
            at("content.parts.*.functionCall.args", leaves(rounded))
        )
    },
    "API-13": {"list_names_without_folders": agents.artifacts(at("*", posixpath.basename))},
    "API-18": {
        "take_users_in_capitals_for_one": agents.users(str.lower),
        "decode_percent_in_users_twice": agents.users(unquote),
    },
    "MCP-01": {
        "answer_the_id_0_with_null": wire.messages("*", id_0_as_none, protocols.ENDPOINT),
        "answer_ids_of_digits_with_numbers": wire.messages("*", numeric_id, protocols.ENDPOINT),
    },
    "MCP-03": {"round_large_integers": protocols.arguments(leaves(rounded))},
    "MCP-05": {
        "lose_empty_lists_and_objects": protocols.structured(without_empty),
        "round_large_integers": protocols.structured(leaves(rounded)),
    },
    "MCP-06": {
        "cut_the_prompt_at_nul": protocols.arguments(texts(lambda t: t.partition("\0")[0]), "shout")
    },
    "SVC-01": {
        "lose_characters_without_width": protocols.arguments(
            texts(visible), route=protocols.SERVICE
        )
    },
    "SVC-02": {
        "send_no_arguments_that_are_false": protocols.arguments(
            drop_if(lambda v: not v), route=protocols.SERVICE
        ),
        "cut_arguments_at_a_hash": protocols.arguments(
            texts(lambda t: t.partition("#")[0]), route=protocols.SERVICE
        ),
    },
    "A2A-02": {
        "lose_characters_without_width": protocols.message(at("parts.*.text", visible)),
        "lose_empty_parts": protocols.message(at("parts", drop_if(lambda p: p.get("text") == ""))),
    },
    "A2A-03": {"lose_nul": protocols.updates(at("artifact.parts", texts(without_nul)))},
    "A2A-04": {
        "find_tasks_by_ids_in_capitals": [
            wire.called_with(method, at("id", str.lower)) for method in protocols.GET_TASK
        ]
    },
    "CTL-02": {"compose_the_code": sandbox.data(at("code", composed))},
    "CTL-04": {"strip_the_id": sandbox.tools(lambda sent, id_: sent.strip() == id_ != sent)},
    "SBX-04": {"take_sessions_in_capitals_for_one": sandbox.sessions(str.lower)},
    "SBX-05": {
        "lose_nul": sandbox.stdout(without_nul),
        "show_what_a_terminal_shows": sandbox.stdout(on_a_terminal),
        "lose_outputs_of_white_space": sandbox.outputs(
            drop_if(lambda output: output["output_type"] == "stream" and not output["text"].strip())
        ),
    },
    "SBX-06": {
        "lose_errors_without_a_message": sandbox.outputs(
            drop_if(lambda output: output["evalue"] == "")
        ),
        "compose_messages": sandbox.output("error", at("evalue", composed)),
    },
    "SBX-09": {
        "sign_exit_codes": sandbox.terminal(
            at("exit_code", lambda code: code - 256 * (code > 127))
        ),
        "lose_nul": sandbox.terminal(at("stdout", without_nul)),
    },
    "SBX-10": {
        "lose_empty_files": wire.in_place(sandbox.DOWNLOAD, empty_missing),
        "replace_spaces_in_names": sandbox.uploaded(
            lambda path: path.replace(b" ", b"_"), sandbox.PATH
        ),
    },
    "SBX-12": {
        "read_users_without_leading_zeros": sandbox.sessions(
            sandbox.user(lambda name: re.sub(r"_0+(?=\d)", "_", name))
        )
    },
    "RUN-01": {"compose_the_code": sandbox.code(composed)},
}
