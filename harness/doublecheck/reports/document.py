"""Reports as JSON in the format of ``report.schema.json``: write and read them."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from agentdouble import __version__
from doublecheck.contracts.clauses import Clause, clauses
from doublecheck.contracts.run_result import ROLES, Check, Role, Run
from doublecheck.contracts.traffic import Asked
from doublecheck.contracts.verdicts import Verdict
from doublecheck.errors import ReportError
from doublecheck.reports.report import Report

T = TypeVar("T")

FORMAT = "doublecheck-report/1"
_LARGEST = 64 * 1024 * 1024  # bytes; a report of all clauses has about 50 KiB


def to_document(report: Report) -> dict[str, Any]:
    """Return the report as a document: the target, its clauses and checks, and the counts."""
    run = report.run
    verdicts, outcomes = run.verdicts(), run.outcomes()
    return {
        "format": FORMAT,
        "written_by": f"doublecheck {__version__}",
        "target": {"name": report.name, "kind": report.kind, "url": report.url},
        "started": None if run.started is None else run.started.isoformat(),
        "duration_s": run.duration_s,
        "chosen": run.chosen,
        "interrupted": run.interrupted,
        "strict_should": run.strict_should,
        "examples": run.examples,
        "seed": run.seed,
        "pytest_exit": run.pytest_exit,
        "exit_code": int(run.exit_code),
        "asked": {
            "requests": run.asked.requests,
            "made": dict(run.asked.made),
            "addresses": {name: list(found) for name, found in run.asked.addresses.items()},
        },
        "clauses": [
            _clause_document(clause, verdicts[clause].value, outcomes[clause], checks)
            for clause, checks in run.by_clause().items()
        ],
        "summary": dict(run.counts()),
    }


def render(reports: Sequence[Report]) -> str:
    """Return the document of one report, or a list of the documents of several, as text."""
    documents = [to_document(report) for report in reports]
    return json.dumps(documents[0] if len(documents) == 1 else documents, indent=2) + "\n"


def schema() -> Any:
    """Return the JSON Schema of the documents that ``render`` returns."""
    file = resources.files("doublecheck.reports").joinpath("report.schema.json")
    return json.loads(file.read_text("utf-8"))


def _clause_document(
    clause: Clause, verdict: str, outcome: str, checks: Sequence[Check]
) -> dict[str, Any]:
    return {
        "id": clause.id,
        "section": clause.section,
        "level": clause.level,
        "scope": clause.scope,
        "text": clause.text,
        "verdict": verdict,
        "outcome": outcome,
        "checks": [_check_document(check) for check in checks],
    }


def _check_document(check: Check) -> dict[str, Any]:
    return {
        "name": check.name,
        "verdict": check.verdict.value,
        "reason": check.reason,
        "duration_s": check.duration_s,
        "details": check.details,
        "role": check.role,
    }


def read(path: Path) -> list[Report]:
    """Read the reports from a file; raise ReportError if it has none."""
    try:
        if path.stat().st_size > _LARGEST:
            raise ReportError(f"{path} is larger than any report: over {_LARGEST} bytes.")
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise ReportError(f"{path} cannot be read: {error.strerror}.") from None
    except RecursionError:
        raise _no_report(str(path), "it is nested too deeply") from None
    except ValueError as error:
        raise _no_report(str(path), f"it is not JSON ({error})") from None
    try:
        documents = content if isinstance(content, list) else [content]
        if not documents:
            raise _UnexpectedError("it is an empty list")
        return [_report(_Place(one, "")) for one in documents]
    except _UnexpectedError as error:
        raise _no_report(str(path), str(error)) from None


def from_document(document: Mapping[str, Any]) -> Report:
    """Return the report that a document describes; raise ReportError if it is not one."""
    try:
        return _report(_Place(document, ""))
    except _UnexpectedError as error:
        raise _no_report("The document", str(error)) from None


def _no_report(what: str, why: str) -> ReportError:
    return ReportError(
        f"{what} is not a report: {why}. 'doublecheck run --json' prints one, of the format {FORMAT}."
    )


class _UnexpectedError(Exception):
    """A document differs from the format."""


class _Place:
    """A value in a document, and the path to it."""

    def __init__(self, value: Any, path: str) -> None:
        self._value = value
        self._path = path

    def __getitem__(self, key: str) -> _Place:
        mapping: Mapping[str, Any] = self.of(dict)
        if key not in mapping:
            raise _UnexpectedError(f"{self._path or 'it'} has no {key!r}")
        return _Place(mapping[key], f"{self._path}.{key}" if self._path else key)

    def __iter__(self) -> Iterator[_Place]:
        for index, value in enumerate(self.of(list)):
            yield _Place(value, f"{self._path}[{index}]")

    def items(self) -> Iterator[tuple[str, _Place]]:
        mapping: Mapping[str, Any] = self.of(dict)
        return ((key, self[key]) for key in mapping)

    def of(self, *kinds: type[T]) -> T:
        value = self._value
        if isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool)):
            return value
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise _UnexpectedError(
            f"{self._path or 'it'} is a {type(value).__name__} and must be a {expected}"
        )

    def one_of(self, *allowed: str) -> str:
        if self._value not in allowed:
            raise _UnexpectedError(
                f"{self._path} is {str(self._value)[:80]!r} and must be one of {', '.join(allowed)}"
            )
        return str(self._value)


def _report(place: _Place) -> Report:
    place["format"].one_of(FORMAT)
    target = place["target"]
    kind = target["kind"].one_of("double", "live")
    checks = [check for clause in place["clauses"] for check in _checks(clause)]
    run = Run(
        tuple(checks),
        place["pytest_exit"].of(int),
        started=_moment(place["started"]),
        duration_s=_seconds(place),
        chosen=place["chosen"].of(int),
        interrupted=place["interrupted"].of(bool),
        strict_should=place["strict_should"].of(bool),
        asked=_asked(place["asked"]),
        examples=place["examples"].of(int),
        seed=place["seed"].of(int),
    )
    name, url = target["name"].of(str), target["url"].of(str, type(None))
    return Report(name, "live" if kind == "live" else "double", url, run)


def _asked(place: _Place) -> Asked:
    return Asked(
        place["requests"].of(int),
        {kind: one.of(int) for kind, one in place["made"].items()},
        {name: tuple(one.of(str) for one in found) for name, found in place["addresses"].items()},
    )


def _checks(clause: _Place) -> list[Check]:
    id_ = clause["id"].one_of(*clauses())
    return [
        Check(
            check["name"].of(str),
            id_,
            Verdict(check["verdict"].one_of(*(verdict.value for verdict in Verdict))),
            check["reason"].of(str),
            _seconds(check),
            check["details"].of(str),
            _role(check["role"]),
        )
        for check in clause["checks"]
    ]


def _role(place: _Place) -> Role:
    return next(role for role in ROLES if role == place.one_of(*ROLES))


def _seconds(place: _Place) -> float:
    return float(place["duration_s"].of(int, float))


def _moment(place: _Place) -> dt.datetime | None:
    text = place.of(str, type(None))
    try:
        return None if text is None else dt.datetime.fromisoformat(text)
    except ValueError:
        example = "2026-01-31T12:00:00+00:00"
        raise _UnexpectedError(f"started is {text!r:.80} and must be like {example}") from None
