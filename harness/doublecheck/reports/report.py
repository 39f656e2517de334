"""Report: the results of a run of the checks, and their platform."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from doublecheck.contracts.exit_status import left_out
from doublecheck.contracts.run_result import Check, Run
from doublecheck.contracts.verdicts import CARRIED_OUT, Verdict
from doublecheck.core import atomic_files
from doublecheck.core.exit_codes import ExitCode
from doublecheck.core.notebook_repr import Series, Shown, counted
from doublecheck.errors import ReportError
from doublecheck.target.target import Kind


@dataclass(frozen=True)
class Report(Shown, drawn_by="reports.html.report"):
    """The results of the checks on one platform.

    ``url`` is None for a double that the run started.
    """

    name: str
    kind: Kind
    url: str | None
    run: Run

    @property
    def platform_description(self) -> str:
        """The platform in words: its name, its kind and its address."""
        name = "" if self.name == self.kind else f"{self.name}, "
        return name + (f"{self.kind} at {self.url}" if self.url else "a temporary double")

    @property
    def checks(self) -> tuple[Check, ...]:
        """Every check that ran, or was skipped for a reason."""
        return self.run.checks

    @property
    def verdicts(self) -> Mapping[str, Verdict]:
        """The verdict on each checked clause, by its id."""
        return {clause.id: verdict for clause, verdict in self.run.verdicts().items()}

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that fail the run. A "should" does so only in a strict run.

        Known failures, of a baseline, do not.
        """
        failed = Verdict.FAILED.value
        return tuple(
            check
            for checks in self.run.by_clause().values()
            for check in checks
            if self.run.check_outcome(check) == failed
        )

    @property
    def fixed(self) -> tuple[Check, ...]:
        """The checks that failed in the baseline and pass now."""
        return tuple(self.run.fixed())

    @property
    def exit_code(self) -> ExitCode:
        """The result of the run. It is PASSED only if something passed and nothing failed."""
        return self.run.exit_code

    @property
    def effort(self) -> str:
        """The number of checks, examples, requests and lost answers, and the duration."""
        run = self.run
        tried = f" of up to {counted(run.examples, 'example')} (seed {run.seed})"
        checks = counted(len(run.checks), "check") + (tried if run.examples else "")
        lost = (
            f"{counted(run.lost, 'answer')} lost on the way and asked again, " if run.lost else ""
        )
        return f"{checks}, {counted(run.requests, 'request')}, {lost}in {run.duration_s:.1f} s"

    def counts(self) -> Mapping[str, int]:
        """Count the clauses by verdict, worst first.

        ``failed`` are the clauses with checks in ``failed``, which fail the run; other failed
        recommendations are ``failed (should)``, and failures of the baseline ``failed (known)``.
        """
        return self.run.counts()

    def write(self, path: str | Path) -> Path:
        """Write the report to a file ending in .html or .json. Return its path.

        Raises ReportError.
        """
        return Reports((self,)).write(path)

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {word}" for word, count in self.counts().items())
        summary = counts or "nothing was checked"
        cut = ", interrupted" if self.run.interrupted else ""
        clauses = counted(len(self.verdicts), "clause")
        return f"<Report {self.name}: {clauses}, {summary}{cut}, {self.run.duration_s:.1f} s>"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Notes about what was not checked: it did not answer, was interrupted, or left out."""
        notes = (self.cut_short, self._left_out, self._nobody_there)
        return tuple(note for note in notes if note)

    @property
    def _nobody_there(self) -> str | None:
        """A note about a server that answered no check as a platform does, or None."""
        carried_out = {check.verdict for check in self.run.checks if check.verdict in CARRIED_OUT}
        if not self.url or carried_out != {Verdict.COULD_NOT_ASK}:
            return None
        return (
            f"No check could ask {self.url}: is it the platform's address, and are its keys right?"
        )

    @property
    def _left_out(self) -> str | None:
        run = self.run
        return f"{left_out(run.level, run.left_out)}." if run.left_out else None

    @property
    def cut_short(self) -> str | None:
        """A note about an interrupted run, or None."""
        if not self.run.interrupted:
            return None
        return (
            f"Interrupted: {len(self.run.checks)} of {self.run.chosen} checks ran. The others "
            "were not checked."
        )


class Reports(Series[Report], noun="report", drawn_by="reports.html.framed_page"):
    """Reports side by side."""

    def write(self, path: str | Path) -> Path:
        """Write the reports to one file. See Report.write."""

        path = Path(path)
        write(self, path)
        return path


# Modules by name: a Report writes itself through them, and they import it, so they are imported
# late.
_RENDERED_BY = {".html": "html", ".json": "document"}


def write(reports: Sequence[Report], path: Path) -> None:
    """Write reports to one file atomically. Raise ReportError."""
    require_format(path)
    module = importlib.import_module(f"doublecheck.reports.{_RENDERED_BY[path.suffix.lower()]}")
    write_text(module.render(reports), path)


def require_format(path: Path) -> None:
    """Raise ReportError if a path's suffix does not select a format."""
    if path.suffix.lower() not in _RENDERED_BY:
        raise ReportError(
            f"The name of the report {path} must end in one of {', '.join(_RENDERED_BY)}."
        )


def require_writable(path: Path) -> None:
    """Raise ReportError, before a run, if its report could not be written to this path."""
    with _as_report_errors(path):
        if path.exists() and not path.is_file():
            raise ReportError(f"The report cannot be written to {path}: it is not a file.")
        with atomic_files.temporary_sibling(path):
            pass


def write_text(text: str, path: Path) -> None:
    """Write the text of a report atomically. Raise ReportError."""
    with _as_report_errors(path):
        atomic_files.write(path, text)


@contextlib.contextmanager
def _as_report_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ReportError(f"The report cannot be written to {path}: {error.strerror}.") from None
