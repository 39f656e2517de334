"""What becomes of reports: files, and either JSON or the matrix on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from doublecheck.reports import write as writing

if TYPE_CHECKING:
    from doublecheck.reports.report import Report


@dataclass(frozen=True)
class Outputs:
    """Where reports go."""

    as_json: bool = False
    html: Path | None = None
    junit: Path | None = None

    def require_writable(self) -> None:
        """Raise ReportError, before a run, for a file that could not be written after it."""
        for path in (self.html, self.junit):
            if path is not None:
                writing.require_writable(path)

    def give(self, reports: Sequence[Report]) -> None:
        """Print the reports and write the files; raise ReportError for what cannot be written."""
        from rich.console import Console

        from doublecheck.reports import document, html, junit, terminal

        if self.as_json:
            print(document.rendered(reports), end="")  # noqa: T201
        else:
            terminal.show(reports, Console())
        if self.html is not None:
            writing.write(html.rendered(reports), self.html)
        if self.junit is not None:
            writing.write(junit.rendered(reports), self.junit)
