"""Replace what differs from run to run, so a notebook changes only with what it shows."""

from __future__ import annotations

import re
from typing import Any

from nbformat import NotebookNode

_DATA = re.compile(r"(data:[\w/+.-]+;base64,[\w+/=]+)")
# in this order
_REPLACED = (
    (r"\b127\.0\.0\.1:\d{4,5}\b", "127.0.0.1:8000"),
    (r"/tmp/tmp[a-z0-9_]{8}\b", "/tmp/folder"),
    (r"(?:[\w.~-]*/)+(?=(?:harness/doublecheck|emulator/agentdouble)/)", ""),
    (r"\bat 0x[0-9a-f]{6,}", "at 0x7f0000000000"),
    (r"\bAKLT[0-9a-f]{24}\b", "AKLT" + "0" * 24),
    (r"\b\d{8}T\d{6}Z\b", "20260101T120000Z"),
    (r"(?<=/)20\d{6}(?=/)", "20260101"),
    (r"\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4}(?= \d\d:)", "Thu, 01 Jan 2026"),
    (
        r"\b\d{4}-\d\d-\d\d(?P<between>[T ])\d\d:\d\d:\d\d(?:\.\d+)?",
        r"2026-01-01\g<between>12:00:00",
    ),
    (r"(?<![\d:])\d\d:\d\d:\d\d(?:\.\d+)?\b", "12:00:00"),
)
_ID = re.compile(
    r"\b(?P<kind>[a-z]{1,5}-|)(?P<uuid>[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
    r"|[0-9a-f]{32}|(?<=-)[0-9a-f]{20}|(?<=-)[0-9a-f]{16})\b"
)
_TEXTS = ("text/", "application/json")


class Normalizer:
    """Replaces what differs from run to run; an id is the same wherever it comes again."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def notebook(self, notebook: NotebookNode) -> None:
        """Normalize the outputs of a notebook, and join what was printed in pieces."""
        for cell in notebook.cells:
            if cell.cell_type == "code":
                shown = [one for one in cell.outputs if not _gone(one)]
                cell.outputs = [self._output(one) for one in _joined(shown)]

    def text(self, text: str) -> str:
        """Return a normalized text; images in it stay as they are."""
        return "".join(
            part if _DATA.fullmatch(part) else self._said(part) for part in _DATA.split(text)
        )

    def _output(self, output: NotebookNode) -> NotebookNode:
        for name in ("text", "traceback", "evalue"):
            if name in output:
                output[name] = self._within(output[name])
        for mime_type, content in output.get("data", {}).items():
            if mime_type.startswith(_TEXTS):
                output.data[mime_type] = self._within(content)
        if "metadata" in output:
            output.metadata = NotebookNode()
        return output

    def _within(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._within(one) for one in value]
        if isinstance(value, dict):
            return NotebookNode({key: self._within(one) for key, one in value.items()})
        return value

    def _said(self, text: str) -> str:
        for pattern, replacement in _REPLACED:
            text = re.sub(pattern, replacement, text)
        return _ID.sub(self._id, text)

    def _id(self, match: re.Match[str]) -> str:
        number = self._numbers.setdefault(match["uuid"], len(self._numbers) + 1)
        digits = iter(f"{number:0{sum(one != '-' for one in match['uuid'])}d}")
        return match["kind"] + "".join("-" if one == "-" else next(digits) for one in match["uuid"])


def _gone(output: NotebookNode) -> bool:
    """Whether it is what a progress bar leaves, which appears only where something took long."""
    return output.output_type == "display_data" and not any(output.data.values())


def _joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Join what is printed to one stream: in how many pieces it came is of no account."""
    joined: list[NotebookNode] = []
    for output in outputs:
        if joined and _stream(output) and _stream(output) == _stream(joined[-1]):
            joined[-1].text += output.text
        else:
            joined.append(output)
    return joined


def _stream(output: NotebookNode) -> str | None:
    return output.name if output.output_type == "stream" else None
