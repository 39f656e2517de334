"""Mutants of a session's terminal, files and browser (1)."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any

import pytest

from agentdouble.sandbox.browser.input_driver import InputDriver
from agentdouble.sandbox.instance import Instance
from tests.mutants import Mutant, lossy, wire
from tests.mutants.sandbox_changes import Json, Patched, bash, payloads
from tests.mutants.sandbox_state import own_directory

TERMINAL = "a sandbox runtime for agents with terminal operations (1)"
FILES = "a file system (upload and download) (1)"
BROWSER = "browser automation (1)"

UPLOAD, DOWNLOAD = "POST /v1/file/upload", "GET /v1/file/download"
_PART = re.compile(rb"(?s)(filename=.*?\r\n\r\n)(.*?)(\r\n--)")
_PATH = re.compile(rb'(?s)(name="path"\r\n.*?\r\n)(.*?)(\r\n--)')
_NO_UTF_8 = re.compile(rb"[\x80-\xff]")
_PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)

Bytes = Callable[[bytes], bytes]


# ---- the terminal


def _command(change: Callable[[str], str]) -> Patched:
    """Change a command before it runs."""
    return payloads(
        lambda one: {**one, "command": change(one["command"])} if "command" in one else one
    )


def _output(change: Callable[[str], str]) -> wire.Change:
    return bash(lambda data: data.update(stdout=change(data["stdout"] or "")))


def _merged(data: Json) -> None:
    data.update(stdout=(data["stdout"] or "") + (data["stderr"] or ""), stderr=None)


def _one_terminal(of: Callable[[Instance], str]) -> Patched:
    """Run the commands of all instances of a group in the terminal of the first."""

    def change(patch: pytest.MonkeyPatch) -> None:
        original = Instance.exec_bash
        owners: dict[str, Instance] = {}

        async def exec_bash(self: Instance, *given: Any) -> Any:
            owner = owners.get(of(self))
            if owner is None or owner.end_reason is not None:
                owner = owners[of(self)] = self
            return await original(owner, *given)

        patch.setattr(Instance, "exec_bash", exec_bash)

    return change


def _stale_output() -> Callable[[Json], Any]:
    first: dict[str, Any] = {}

    def stale(data: Json) -> None:
        data["stdout"] = first.setdefault(data["session_id"], data["stdout"])

    return stale


def _after_failure() -> Callable[[Json], Any]:
    """Keep the exit code of the last command that failed."""
    failed: dict[str, int] = {}

    def sticky(data: Json) -> None:
        if data["exit_code"]:
            failed[data["session_id"]] = data["exit_code"]
        data["exit_code"] = failed.get(data["session_id"], data["exit_code"])

    return sticky


# ---- files


def _uploaded(change: Bytes) -> wire.Change:
    """Change the content of a file that is uploaded."""

    def part(request: wire.Request) -> None:
        request.body = _PART.sub(
            lambda found: found[1] + change(found[2]) + found[3], request.body, count=1
        )

    return wire.requested(UPLOAD, part)


def _uploaded_to(change: Bytes) -> wire.Change:
    """Change the path that a file is uploaded to."""

    def part(request: wire.Request) -> None:
        request.body = _PATH.sub(
            lambda found: found[1] + change(found[2]) + found[3], request.body, count=1
        )

    return wire.requested(UPLOAD, part)


def _downloaded(change: Bytes) -> wire.Change:
    def content(answer: wire.Answer) -> None:
        if answer.status == 200:
            answer.body = change(answer.body)

    return wire.answered(DOWNLOAD, lambda answer, _request: content(answer))


def _first_download() -> Callable[[wire.Answer, wire.Request], None]:
    """Answer every download of a path with its first content."""
    first: dict[str, bytes] = {}

    def stale(answer: wire.Answer, request: wire.Request) -> None:
        name = request.query.get("faasInstanceName", "") + request.query.get("path", "")
        if answer.status == 200:
            answer.body = first.setdefault(name, answer.body)

    return stale


def _any_download() -> Callable[[wire.Answer, wire.Request], None]:
    """Answer for a file that is missing with one of another session."""
    known: dict[str, bytes] = {}

    def shared(answer: wire.Answer, request: wire.Request) -> None:
        path = request.query.get("path", "")
        if answer.status == 200:
            known[path] = answer.body
        elif path in known:
            answer.status, answer.body = 200, known[path]

    return shared


def _empty_if_missing(answer: wire.Answer, _request: wire.Request) -> None:
    if answer.status >= 400:
        answer.status, answer.body = 200, b""


def _first_upload_alone() -> wire.Change:
    """Store a file only if there is none of its path."""
    stored: dict[tuple[str, bytes], bytes] = {}

    def keep(request: wire.Request) -> None:
        path, content = _PATH.search(request.body), _PART.search(request.body)
        if path and content:
            name = request.query.get("faasInstanceName", ""), path[2]
            first = stored.setdefault(name, content[2])
            request.body = request.body.replace(content[2], first, 1) if content[2] else first

    return wire.requested(UPLOAD, keep)


def _appended() -> wire.Change:
    """Put an upload behind the content that its file has."""
    stored: dict[tuple[str, bytes], bytes] = {}

    def append(request: wire.Request) -> None:
        path = _PATH.search(request.body)
        if path is None:
            return
        name = request.query.get("faasInstanceName", ""), path[2]

        def longer(found: re.Match[bytes]) -> bytes:
            stored[name] = stored.get(name, b"") + found[2]
            return found[1] + stored[name] + found[3]

        request.body = _PART.sub(longer, request.body, count=1)

    return wire.requested(UPLOAD, append)


def _one_file(patch: pytest.MonkeyPatch) -> None:
    """Store every upload of a session under one name, and download it under any."""

    def one(request: wire.Request) -> None:
        request.query = {**request.query, "path": "/home/gem/upload"}

    _uploaded_to(lambda _: b"/home/gem/upload")(patch)
    wire.requested(DOWNLOAD, one)(patch)


# ---- the browser


def _driver(name: str, replacement: Callable[..., Any]) -> Patched:
    return lambda patch: patch.setattr(InputDriver, name, replacement)


async def _nothing(*_given: Any, **_more: Any) -> None:
    """Do nothing, and say that it was done."""


async def _constant_picture(*_given: Any) -> bytes:
    return _PNG


def _one_browser(patch: pytest.MonkeyPatch) -> None:
    original = Instance.browser
    first: list[Instance] = []

    async def browser(self: Instance) -> Any:
        first.append(self)
        return await original(first[0])

    patch.setattr(Instance, "browser", browser)


_TERMINALS = (
    Mutant("lose_the_output_of_commands", "SBX-09", TERMINAL, _output(lambda _: "")),
    Mutant(
        "lose_the_errors_of_commands",
        "SBX-09",
        TERMINAL,
        bash(lambda data: data.update(stderr=None)),
    ),
    Mutant("write_errors_of_commands_to_their_output", "SBX-09", TERMINAL, bash(_merged)),
    Mutant(
        "tell_every_command_as_successful",
        "SBX-09",
        TERMINAL,
        bash(lambda data: data.update(exit_code=0)),
    ),
    Mutant(
        "tell_every_failure_as_one",
        "SBX-09",
        TERMINAL,
        bash(lambda data: data.update(exit_code=min(data["exit_code"] or 0, 1))),
    ),
    Mutant("keep_the_exit_code_of_a_failure", "SBX-09", TERMINAL, bash(_after_failure())),
    Mutant(
        "answer_with_the_output_of_the_first_command", "SBX-09", TERMINAL, bash(_stale_output())
    ),
    Mutant(
        "keep_the_first_line_of_the_output",
        "SBX-09",
        TERMINAL,
        _output(lossy.first_line),
    ),
    Mutant(
        "cut_the_output_to_1000_characters", "SBX-09", TERMINAL, _output(lambda text: text[:1000])
    ),
    Mutant(
        "lose_letters_of_the_output_that_are_not_ascii",
        "SBX-09",
        TERMINAL,
        _output(lossy.to_ascii),
    ),
    Mutant(
        "run_the_first_line_of_commands",
        "SBX-09",
        TERMINAL,
        _command(lossy.first_line),
    ),
    Mutant(
        "run_the_first_command_of_a_pipe",
        "SBX-09",
        TERMINAL,
        _command(lambda text: re.split(r"(?<!\|)\|(?!\|)", text)[0]),
    ),
    Mutant(
        "lose_letters_of_commands_that_are_not_ascii",
        "SBX-09",
        TERMINAL,
        _command(lossy.to_ascii),
    ),
    Mutant(
        "expand_nothing_in_commands",
        "SBX-09",
        TERMINAL,
        _command(lambda text: text.replace("$", r"\$")),
    ),
    Mutant(
        "run_commands_of_all_sessions_in_one_terminal",
        "SBX-09",
        TERMINAL,
        _one_terminal(lambda _: ""),
        also=("SBX-04",),
    ),
    Mutant(
        "run_commands_of_all_users_in_one_terminal",
        "SBX-09",
        TERMINAL,
        _one_terminal(lambda one: one.key.user_session_id.rpartition("_")[2]),
        also=("SBX-12",),
    ),
    Mutant(
        "give_the_terminal_files_of_its_own",
        "SBX-09",
        TERMINAL,
        own_directory("workbench"),
        also=("SBX-10",),
    ),
)

_FILES = (
    Mutant("cut_uploads_to_64_kib", "SBX-10", FILES, _uploaded(lambda file: file[: 1 << 16])),
    Mutant("cut_downloads_to_1_mib", "SBX-10", FILES, _downloaded(lambda file: file[: 1 << 20])),
    Mutant("cut_downloads_to_4000_bytes", "SBX-10", FILES, _downloaded(lambda file: file[:4000])),
    Mutant("upload_text_alone", "SBX-10", FILES, _uploaded(lambda file: _NO_UTF_8.sub(b"?", file))),
    Mutant(
        "download_text_alone",
        "SBX-10",
        FILES,
        _downloaded(lambda file: file.decode("utf-8", "replace").encode()),
    ),
    Mutant(
        "upload_lines_without_carriage_returns",
        "SBX-10",
        FILES,
        _uploaded(lambda file: file.replace(b"\r\n", b"\n")),
    ),
    Mutant(
        "download_up_to_the_first_nul",
        "SBX-10",
        FILES,
        _downloaded(lambda file: file.partition(b"\0")[0]),
    ),
    Mutant("strip_uploads", "SBX-10", FILES, _uploaded(bytes.strip)),
    Mutant("strip_downloads", "SBX-10", FILES, _downloaded(bytes.rstrip)),
    Mutant("store_nothing_of_uploads", "SBX-10", FILES, _uploaded(lambda _: b"")),
    Mutant("upload_all_files_to_one_name", "SBX-10", FILES, _one_file),
    Mutant(
        "upload_to_home_alone", "SBX-10", FILES, _uploaded_to(lambda path: path.rpartition(b"/")[2])
    ),
    Mutant("upload_in_small_letters", "SBX-10", FILES, _uploaded_to(bytes.lower)),
    Mutant(
        "lose_blanks_in_names_of_files",
        "SBX-10",
        FILES,
        _uploaded_to(lambda path: path.replace(b" ", b"_")),
    ),
    Mutant(
        "lose_letters_of_names_of_files_that_are_not_ascii",
        "SBX-10",
        FILES,
        _uploaded_to(lambda path: _NO_UTF_8.sub(b"_", path)),
    ),
    Mutant("keep_the_first_upload_of_a_path", "SBX-10", FILES, _first_upload_alone()),
    Mutant("append_the_second_upload_of_a_path", "SBX-10", FILES, _appended()),
    Mutant(
        "download_the_first_content_of_a_path",
        "SBX-10",
        FILES,
        wire.answered(DOWNLOAD, _first_download()),
    ),
    Mutant(
        "download_the_files_of_other_sessions",
        "SBX-10",
        FILES,
        wire.answered(DOWNLOAD, _any_download()),
        also=("SBX-04",),
    ),
    Mutant(
        "download_an_empty_file_for_a_missing_one",
        "SBX-10",
        FILES,
        wire.answered(DOWNLOAD, _empty_if_missing),
    ),
    Mutant(
        "give_javascript_files_of_its_own",
        "SBX-10",
        FILES,
        own_directory("javascript"),
        also=("SBX-08",),
    ),
    Mutant(
        "say_of_each_upload_that_it_is_at_home",
        "SBX-10",
        FILES,
        wire.answers(
            UPLOAD,
            lambda answer: {**answer, "data": {**(answer["data"] or {}), "file_path": "/home/gem"}},
        ),
    ),
)

_BROWSERS = (
    Mutant("perform_no_actions", "SBX-11", BROWSER, _driver("perform", _nothing)),
    Mutant(
        "show_the_same_picture_always", "SBX-11", BROWSER, _driver("screenshot", _constant_picture)
    ),
    Mutant(
        "refuse_all_facts_about_the_browser",
        "SBX-11",
        BROWSER,
        wire.statuses("GET /v1/browser/info", 500, {"detail": "no browser"}),
    ),
    Mutant("have_one_browser_for_all_sessions", "SBX-11", BROWSER, _one_browser),
)

MUTANTS: tuple[Mutant, ...] = (*_TERMINALS, *_FILES, *_BROWSERS)
