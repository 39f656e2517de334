"""The display of ``%sandbox log``: what ran, in which session, and what the answer was."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import httpx

from doublecheck.core.markup import BAD, Markup, box, clipped, pre, quiet, table, title
from doublecheck.core.notebook_repr import counted
from doublecheck.errors import AnswerError, RefusedError
from doublecheck.notebook.display.double import entry_line
from doublecheck.values.executions import plain
from doublecheck.wire import control_plane, data_plane
from doublecheck.wire.exchanges import redacted_text

if TYPE_CHECKING:
    from doublecheck.values.double import JournalEntry
    from doublecheck.values.executions import BashResult, CodeResult

_SHOWN = 200
_CHARS = 600  # of code, and of an answer
_HEADS = ["at", "session", "code", "answer", "ms"]


def log(entries: Sequence[JournalEntry]) -> Markup:
    """Return the requests with their code, session and answer, newest last."""
    names: dict[str, str] = {}  # of the sessions by the id of their instance
    rows = [_row(entry, names) for entry in entries]
    omitted = max(len(rows) - _SHOWN, 0)
    note = quiet(f"the last {_SHOWN} of them") if omitted else None
    return box(
        title(counted(len(rows), "request"), note),
        table(_HEADS, rows[omitted:], right=["ms"]),
    )


def _row(entry: JournalEntry, names: dict[str, str]) -> list[str | None]:
    asked = _object(entry.request_body)
    if entry.session is not None and asked.get("UserSessionId"):
        names[entry.session] = str(asked["UserSessionId"])
    session = "" if entry.session is None else names.get(entry.session, entry.session)
    return [
        quiet(entry.at.strftime("%H:%M:%S")),
        session,
        _code(entry, asked),
        _answer(entry),
        "" if entry.duration_ms is None else f"{entry.duration_ms:.0f}",
    ]


def _code(entry: JournalEntry, asked: Mapping[str, Any]) -> Markup:
    """Return the code or the command of a request, or its method and address."""
    payload = _object(asked.get("OperationPayload"))
    for fields in (payload, asked):
        for name, sign in (("code", ""), ("command", "$ ")):
            if isinstance(fields.get(name), str):
                return pre(clipped(redacted_text(sign + fields[name]), _CHARS))
    return entry_line(entry)


def _answer(entry: JournalEntry) -> Markup:
    """Return the output of code, or the status of another answer."""
    if entry.status is None:
        return pre("no answer", tone=BAD)
    try:
        result = _result(entry, entry.status)
    except RefusedError as error:
        return pre(clipped(redacted_text(f"{entry.status}: {error}"), _CHARS), tone=BAD)
    if result is None:
        return quiet(str(entry.status))
    failure = result.failure()
    text = "".join(_texts(result)).rstrip("\n")
    if failure is None:
        return pre(clipped(redacted_text(plain(text)), _CHARS)) if text else quiet("done")
    why = f"{failure.ename}: {failure.evalue}" if failure.evalue else failure.ename
    said = f"{text}\n{why}".strip()
    return pre(clipped(redacted_text(plain(said)), _CHARS), tone=BAD)


def _texts(result: CodeResult | BashResult) -> list[str]:
    """Return what was printed and the values, in order, with a word for a picture."""
    texts = []
    for output in result.outputs:
        if output.text:
            texts.append(output.text)
        elif output.data:
            kinds = [kind for kind in output.data if kind.startswith("image/")]
            texts.append(f"({kinds[0]})" if kinds else str(output.data.get("text/plain", "")))
    return texts


def _result(entry: JournalEntry, status: int) -> CodeResult | BashResult | None:
    """Return the result of code or of a command, or None for another answer.

    Raises RefusedError for a refusal.
    """
    response = httpx.Response(
        status,
        content=entry.response_body.encode(),
        request=httpx.Request(entry.method, entry.url),
    )
    for read in (control_plane.read_result, data_plane.read_command):
        try:
            return read(response)
        except RefusedError:
            raise
        except AnswerError:
            continue
    return None


def _object(text: Any) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
