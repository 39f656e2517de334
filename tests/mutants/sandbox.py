"""Mutants of executions in the sandbox: outputs, errors, counts, languages (2.7, 7.3, 8)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agentdouble.errors import UnknownLanguageError
from agentdouble.sandbox import languages
from agentdouble.sandbox.instance import Instance
from agentdouble.sandbox.languages import Language
from tests.mutants import Mutant, lossy
from tests.mutants.sandbox_changes import (
    PYTHON,
    Json,
    Patched,
    code,
    data,
    document,
    error,
    outputs,
    stdout,
)
from tests.mutants.sandbox_state import fresh_kernels

STDOUT = "Items of outputs: output_type (e.g. stream), name (e.g. stdout), text (string) (2.7)"
FAILURE = "failures expose ename, evalue, traceback in outputs (7.3)"
STATUS = "results carry success and status (7.3); data.status: ok on success (2.7)"
COUNT = "data.execution_count: integer (2.7)"
SPOKEN = "Code execution languages: Python, JavaScript (8); both are supported (4.5)"

Change = Callable[[Json], Any]
Outputs = list[Json]
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def _streams(name: str, change: Callable[[Outputs], Outputs]) -> Patched:
    """Change the outputs of a stream, and leave the others as they are."""

    def of_stream(listed: Outputs) -> Outputs:
        kept = iter(change([one for one in listed if one["name"] == name]))
        changed = [next(kept, None) if one["name"] == name else one for one in listed]
        return [one for one in changed if one is not None]

    return outputs(of_stream)


def _without(name: str, value: str) -> Change:
    return lambda data: data.update(outputs=[o for o in data["outputs"] if o[name] != value])


def _if_error(change: Change) -> Change:
    return lambda data: change(data) if data["status"] != "ok" else None


def _if_javascript(change: Change) -> Change:
    return lambda data: change(data) if data["kernel_name"] not in PYTHON else None


def _from_the_second(change: Change) -> Change:
    seen: set[str] = set()

    def second(data: Json) -> None:
        if data["session_id"] in seen:
            change(data)
        seen.add(data["session_id"])

    return second


def _each(name: str, value: str, change: Change) -> Change:
    return lambda data: [change(one) for one in data["outputs"] if one[name] == value]


def _as_ok(data: Json) -> None:
    data["status"] = "ok"


def _named(*names: str) -> Change:
    """Tell errors of these names as success."""

    def change(document: Json) -> None:
        failed = [one["ename"] for one in document["data"]["outputs"] if one["ename"]]
        if failed and failed[-1] in names:
            document["success"] = True
            document["data"]["status"] = "ok"

    return change


def _old_outputs() -> Change:
    """Put what was written before in front of what was written now."""
    written: dict[str, str] = {}

    def old(data: Json) -> None:
        before = written.get(data["session_id"], "")
        for one in data["outputs"]:
            if one["name"] == "stdout":
                written[data["session_id"]] = before + one["text"]
                one["text"] = before + one["text"]

    return old


def _merged(data: Json) -> None:
    """Write standard error to standard output."""
    for one in data["outputs"]:
        if one["name"] == "stderr":
            one["name"] = "stdout"


def _swapped(data: Json) -> None:
    names = {"stdout": "stderr", "stderr": "stdout"}
    for one in data["outputs"]:
        one["name"] = names.get(one["name"], one["name"])


def _as_display(one: Json) -> None:
    one.update(output_type="display_data", data={"text/plain": one["text"]}, name=None, text=None)


def _text_last(data: Json) -> None:
    """Lose standard output where there is a value."""
    if any(one["output_type"] == "execute_result" for one in data["outputs"]):
        _without("name", "stdout")(data)


def _as_text(data: Json) -> None:
    """Write errors to standard error, as a terminal does."""
    for one in data["outputs"]:
        if one["output_type"] == "error":
            one.update(output_type="stream", name="stderr", text="\n".join(one["traceback"]))
            one.update(ename=None, evalue=None, traceback=None)


def _previous_error() -> Change:
    before: list[tuple[str, str]] = []

    def stale(one: Json) -> None:
        before.append((one["ename"], one["evalue"]))
        one["ename"], one["evalue"] = before[max(0, len(before) - 2)]

    return stale


def _plain(line: str) -> str:
    return _COLOUR.sub("", line)


# ---- counts


def _counts(change: Callable[[Json], Any]) -> Patched:
    def count(one: Json) -> None:
        one["execution_count"] = change(one)

    return data(count)


def _numbers(key: Callable[[Json], Any], counts: Callable[[Json], bool]) -> Callable[[Json], int]:
    """Count the executions with the same key that count."""
    numbers: dict[Any, int] = {}

    def number(data: Json) -> int:
        one = key(data)
        numbers[one] = numbers.get(one, 0) + bool(counts(data))
        return numbers[one]

    return number


def _reset_by_errors() -> Callable[[Json], int]:
    numbers: dict[str, int] = {}

    def number(data: Json) -> int:
        id_ = data["session_id"]
        numbers[id_] = numbers.get(id_, 0) + 1
        told = numbers[id_]
        if data["status"] != "ok":
            numbers[id_] = 0
        return told

    return number


# ---- languages


def _refused(which: Callable[[str], bool]) -> Patched:
    def change(patch: pytest.MonkeyPatch) -> None:
        original = languages.find

        def find(name: str) -> Language:
            if which(name):
                raise UnknownLanguageError(name, ("python3",))
            return original(name)

        patch.setattr(languages, "find", find)

    return change


def _first_language_of_all(patch: pytest.MonkeyPatch) -> None:
    """Run all code of a session in the language of its first."""
    original = Instance.execute
    first: dict[str, str] = {}

    async def execute(self: Instance, code: str, language: str, *rest: Any, **more: Any) -> Any:
        chosen = first.setdefault(self.id, language)
        return await original(self, code, chosen, *rest, **more)

    patch.setattr(Instance, "execute", execute)


def _always_python(patch: pytest.MonkeyPatch) -> None:
    original = Instance.execute

    async def execute(self: Instance, code: str, _language: str, *rest: Any, **more: Any) -> Any:
        return await original(self, code, "python3", *rest, **more)

    patch.setattr(Instance, "execute", execute)


def _echo(patch: pytest.MonkeyPatch) -> None:
    """Answer JavaScript with its text, and do not run it."""
    original = Instance.execute

    async def execute(self: Instance, code: str, language: str, *rest: Any, **more: Any) -> Any:
        if language in PYTHON:
            return await original(self, code, language, *rest, **more)
        ran = await original(self, f"console.log({code!r})", language, *rest, **more)
        return replace(ran, code=code)

    patch.setattr(Instance, "execute", execute)


def _javascript(change: Callable[[str], str]) -> Patched:
    return code(lambda _, text, language: text if language in PYTHON else change(text))


def _one_language_at_once(before: str, language: Language) -> bool:
    return before not in ("", "bash", language.name)


_OUTPUTS = (
    Mutant("drop_standard_error", "SBX-05", STDOUT, data(_without("name", "stderr"))),
    Mutant("write_standard_error_to_standard_output", "SBX-05", STDOUT, data(_merged)),
    Mutant("swap_the_names_of_the_streams", "SBX-05", STDOUT, data(_swapped)),
    Mutant("lose_standard_output", "SBX-05", STDOUT, data(_without("name", "stdout"))),
    Mutant(
        "lose_the_newline_at_the_end",
        "SBX-05",
        STDOUT,
        stdout(lambda text: text.removesuffix("\n")),
    ),
    Mutant("strip_standard_output", "SBX-05", STDOUT, stdout(str.strip)),
    Mutant(
        "lose_indentation",
        "SBX-05",
        STDOUT,
        stdout(lambda text: "".join(map(str.lstrip, text.splitlines(True)))),
    ),
    Mutant("lose_empty_lines", "SBX-05", STDOUT, stdout(lambda text: re.sub(r"\n\n+", "\n", text))),
    Mutant(
        "end_lines_with_carriage_returns",
        "SBX-05",
        STDOUT,
        stdout(lambda text: text.replace("\n", "\r\n")),
    ),
    Mutant("lose_carriage_returns", "SBX-05", STDOUT, stdout(lambda text: text.replace("\r", ""))),
    Mutant("write_blanks_for_tabs", "SBX-05", STDOUT, stdout(str.expandtabs)),
    Mutant(
        "keep_only_the_first_line",
        "SBX-05",
        STDOUT,
        stdout(lambda text: "".join(text.splitlines(True)[:1])),
    ),
    Mutant(
        "keep_only_the_last_line",
        "SBX-05",
        STDOUT,
        stdout(lambda text: "".join(text.splitlines(True)[-1:])),
    ),
    Mutant(
        "cut_standard_output_to_2000_characters", "SBX-05", STDOUT, stdout(lambda text: text[:2000])
    ),
    Mutant("cut_standard_output_to_64_kib", "SBX-05", STDOUT, stdout(lambda text: text[: 1 << 16])),
    Mutant(
        "lose_letters_that_are_not_ascii",
        "SBX-05",
        STDOUT,
        stdout(lossy.to_ascii),
    ),
    Mutant(
        "lose_letters_beyond_16_bits",
        "SBX-05",
        STDOUT,
        stdout(lambda text: re.sub("[\U00010000-\U0010ffff]", "\ufffd", text)),
    ),
    Mutant(
        "read_letters_as_latin_1",
        "SBX-05",
        STDOUT,
        stdout(lossy.misread),
    ),
    Mutant(
        "escape_html",
        "SBX-05",
        STDOUT,
        stdout(lambda text: text.replace("&", "&amp;").replace("<", "&lt;")),
    ),
    Mutant("lose_backslashes", "SBX-05", STDOUT, stdout(lambda text: text.replace("\\", ""))),
    Mutant("lose_colours", "SBX-05", STDOUT, stdout(_plain)),
    Mutant(
        "tell_standard_output_as_displayed",
        "SBX-05",
        STDOUT,
        data(_each("name", "stdout", _as_display)),
    ),
    Mutant(
        "leave_out_the_name_of_streams",
        "SBX-05",
        STDOUT,
        data(_each("output_type", "stream", lambda one: one.update(name=None))),
    ),
    Mutant(
        "lose_standard_output_before_an_error",
        "SBX-05",
        STDOUT,
        data(_if_error(_without("name", "stdout"))),
    ),
    Mutant("lose_standard_output_before_a_value", "SBX-05", STDOUT, data(_text_last)),
    Mutant(
        "keep_only_the_last_stretch_of_standard_output",
        "SBX-05",
        STDOUT,
        _streams("stdout", lambda streams: streams[-1:]),
    ),
    Mutant(
        "lose_standard_output_from_the_second_call_on",
        "SBX-05",
        STDOUT,
        data(_from_the_second(_without("name", "stdout"))),
    ),
    Mutant("repeat_the_standard_output_of_earlier_calls", "SBX-05", STDOUT, data(_old_outputs())),
    Mutant(
        "name_the_standard_output_of_javascript_console",
        "SBX-05",
        STDOUT,
        data(_if_javascript(_each("name", "stdout", lambda one: one.update(name="console")))),
    ),
    Mutant(
        "tell_values_as_standard_output",
        "SBX-05",
        STDOUT,
        data(
            _each(
                "output_type",
                "execute_result",
                lambda one: one.update(
                    output_type="stream", name="stdout", text=one["data"].get("text/plain")
                ),
            )
        ),
    ),
)

_ERRORS = (
    Mutant("tell_the_status_of_errors_as_ok", "SBX-06", STATUS, data(_as_ok)),
    Mutant(
        "tell_syntax_errors_as_success",
        "SBX-06",
        STATUS,
        document(_named("SyntaxError", "IndentationError")),
    ),
    Mutant(
        "tell_failed_assertions_as_success", "SBX-06", STATUS, document(_named("AssertionError"))
    ),
    Mutant("tell_errors_of_javascript_as_success", "SBX-06", STATUS, data(_if_javascript(_as_ok))),
    Mutant(
        "tell_errors_from_the_second_call_on_as_success",
        "SBX-06",
        STATUS,
        data(_from_the_second(_as_ok)),
    ),
    Mutant(
        "tell_errors_after_output_as_success",
        "SBX-06",
        STATUS,
        data(lambda one: _as_ok(one) if len(one["outputs"]) > 1 else None),
    ),
    Mutant(
        "lose_the_output_of_the_error", "SBX-06", FAILURE, data(_without("output_type", "error"))
    ),
    Mutant(
        "keep_only_the_first_output_of_failed_code",
        "SBX-06",
        FAILURE,
        data(_if_error(lambda one: one.update(outputs=one["outputs"][:1]))),
    ),
    Mutant("write_errors_to_standard_error", "SBX-06", FAILURE, data(_as_text)),
    Mutant(
        "call_every_error_error", "SBX-06", FAILURE, error(lambda one: one.update(ename="Error"))
    ),
    Mutant(
        "lose_the_name_of_errors_of_javascript",
        "SBX-06",
        FAILURE,
        data(
            _if_javascript(
                _each("output_type", "error", lambda one: one.update(ename=None, evalue=None))
            )
        ),
    ),
    Mutant("lose_the_value_of_errors", "SBX-06", FAILURE, error(lambda one: one.update(evalue=""))),
    Mutant(
        "cut_the_value_of_errors_to_32_characters",
        "SBX-06",
        FAILURE,
        error(lambda one: one.update(evalue=one["evalue"][:32])),
    ),
    Mutant(
        "keep_the_first_line_of_the_value_of_errors",
        "SBX-06",
        FAILURE,
        error(lambda one: one.update(evalue=lossy.first_line(one["evalue"]))),
    ),
    Mutant(
        "lose_letters_of_errors_that_are_not_ascii",
        "SBX-06",
        FAILURE,
        error(lambda one: one.update(evalue=lossy.to_ascii(one["evalue"]))),
    ),
    Mutant(
        "swap_name_and_value_of_errors",
        "SBX-06",
        FAILURE,
        error(lambda one: one.update(ename=one["evalue"], evalue=one["ename"])),
    ),
    Mutant("tell_the_error_before", "SBX-06", FAILURE, error(_previous_error())),
    Mutant("lose_the_traceback", "SBX-06", FAILURE, error(lambda one: one.update(traceback=None))),
    Mutant(
        "give_an_empty_traceback", "SBX-06", FAILURE, error(lambda one: one.update(traceback=[]))
    ),
    Mutant(
        "keep_the_last_line_of_the_traceback",
        "SBX-06",
        FAILURE,
        error(lambda one: one.update(traceback=one["traceback"][-1:])),
    ),
)

_COUNTS = (
    Mutant("count_from_zero", "SBX-07", COUNT, _counts(lambda data: data["execution_count"] - 1)),
    Mutant("count_always_one", "SBX-07", COUNT, _counts(lambda _: 1)),
    Mutant("count_by_twos", "SBX-07", COUNT, _counts(lambda data: 2 * data["execution_count"] - 1)),
    Mutant(
        "count_the_executions_of_all_instances",
        "SBX-07",
        COUNT,
        _counts(_numbers(lambda _: "", lambda _: True)),
    ),
    Mutant(
        "count_no_errors",
        "SBX-07",
        COUNT,
        _counts(_numbers(lambda data: data["session_id"], lambda data: data["status"] == "ok")),
    ),
    Mutant("count_anew_after_an_error", "SBX-07", COUNT, _counts(_reset_by_errors())),
    Mutant(
        "count_no_executions_without_output",
        "SBX-07",
        COUNT,
        _counts(_numbers(lambda data: data["session_id"], lambda data: bool(data["outputs"]))),
    ),
    Mutant(
        "count_up_to_two", "SBX-07", COUNT, _counts(lambda data: min(data["execution_count"], 2))
    ),
    Mutant(
        "count_values_otherwise_than_executions",
        "SBX-07",
        COUNT,
        data(
            _each(
                "output_type",
                "execute_result",
                lambda one: one.update(execution_count=one["execution_count"] + 1),
            )
        ),
    ),
)

_LANGUAGES = (
    Mutant("speak_no_javascript", "SBX-08", SPOKEN, _refused(lambda name: name not in PYTHON)),
    Mutant("speak_no_python", "SBX-08", SPOKEN, _refused(lambda name: name in PYTHON)),
    Mutant("run_javascript_as_python", "SBX-08", SPOKEN, _always_python),
    Mutant("echo_javascript", "SBX-08", SPOKEN, _echo),
    Mutant("speak_one_language_in_a_session", "SBX-08", SPOKEN, _first_language_of_all),
    Mutant(
        "lose_the_context_of_a_language_by_another",
        "SBX-08",
        SPOKEN,
        fresh_kernels(_one_language_at_once),
        also=("SBX-02",),
    ),
    Mutant(
        "run_the_first_line_of_javascript",
        "SBX-08",
        SPOKEN,
        _javascript(lossy.first_line),
    ),
    Mutant(
        "forget_let_and_const_of_javascript",
        "SBX-08",
        SPOKEN,
        _javascript(lambda text: f"{{{text}\n}}"),
        also=("SBX-02",),
    ),
    Mutant(
        "lose_values_of_javascript",
        "SBX-08",
        SPOKEN,
        data(_if_javascript(_without("output_type", "execute_result"))),
    ),
    Mutant(
        "lose_outputs_of_javascript",
        "SBX-08",
        SPOKEN,
        data(_if_javascript(lambda one: one.update(outputs=[]))),
    ),
    Mutant(
        "run_javascript_without_promises",
        "SBX-08",
        SPOKEN,
        _javascript(lambda text: re.sub(r"\bawait\b", "void", text)),
    ),
    Mutant(
        "lose_letters_of_javascript_that_are_not_ascii",
        "SBX-08",
        SPOKEN,
        _javascript(lossy.to_ascii),
    ),
    Mutant(
        "run_javascript_without_its_library",
        "SBX-08",
        SPOKEN,
        _javascript(lambda text: f"globalThis.JSON = undefined;\n{text}"),
    ),
)

MUTANTS: tuple[Mutant, ...] = (*_OUTPUTS, *_ERRORS, *_COUNTS, *_LANGUAGES)
