"""Write and read reports as JSON, in the format of ``report.schema.json``."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from agentdouble import __version__
from doublecheck.contracts.clauses import clauses
from doublecheck.contracts.run_result import IN_BASELINE, ROLES, Check, InBaseline, Role, Run
from doublecheck.contracts.verdicts import Verdict
from doublecheck.errors import ReportError
from doublecheck.reports.report import Report
from doublecheck.target.target import Kind

FORMAT = "doublecheck-report/1"
_OF_A_RUN: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("chosen", "examples", "seed", "pytest_exit", "requests", "lost"), int),
    **dict.fromkeys(("interrupted", "strict_should"), bool),
    "duration_s": float,
}
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
        **{name: getattr(run, name) for name in _OF_A_RUN},
        "level": run.level,
        "left_out": list(run.left_out),
        "exit_code": int(run.exit_code),
        "findings": [
            {
                "cause": finding.cause,
                "outcome": finding.outcome,
                "clauses": list(finding.clauses),
                "checks": [check.name for check in finding.checks],
            }
            for finding in run.findings()
        ],
        "clauses": [
            {
                **vars(clause),
                "verdict": verdicts[clause].value,
                "outcome": outcomes[clause],
                "checks": [
                    {name: value for name, value in vars(check).items() if name != "clause"}
                    for check in checks
                ],
            }
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


def read(path: Path) -> list[Report]:
    """Read the reports from a file. Raise ReportError if it has none."""
    try:
        if path.stat().st_size > _LARGEST:
            raise ReportError(f"{path} is too large for a report: over {_LARGEST} bytes.")
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise ReportError(f"{path} cannot be read: {error.strerror}.") from None
    except RecursionError:
        raise _no_report(str(path), "it is nested too deeply") from None
    except ValueError as error:
        raise _no_report(str(path), f"it is not JSON ({error})") from None
    documents = content if isinstance(content, list) else [content]
    if not documents:
        raise _no_report(str(path), "it is an empty list")
    return [_report(document, str(path)) for document in documents]


def from_document(document: Mapping[str, Any]) -> Report:
    """Return the report that a document describes. Raise ReportError if it is not one."""
    return _report(document, "The document")


def _no_report(source: str, problem: str) -> ReportError:
    return ReportError(
        f"{source} is not a report: {problem}. Create one with 'doublecheck run --json'; "
        f"its format is {FORMAT}."
    )


def _report(document: Any, source: str) -> Report:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise _no_report(source, f"it does not have the format {FORMAT}")
    try:
        return _read(document)
    except KeyError as error:
        raise _no_report(source, f"{error} is missing or unknown") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise _no_report(source, str(error)) from None


def _read(document: Mapping[str, Any]) -> Report:
    target, started = document["target"], document["started"]
    kinds: Mapping[str, Kind] = {"double": "double", "live": "live"}
    run = Run(
        tuple(check for clause in document["clauses"] for check in _checks(clause)),
        started=None if started is None else dt.datetime.fromisoformat(started),
        **{name: kind(document[name]) for name, kind in _OF_A_RUN.items()},
        level=str(document.get("level", "full")),  # reports of 1.0 do not have these two
        left_out=tuple(map(str, document.get("left_out", ()))),
    )
    url = target["url"]
    return Report(
        str(target["name"]), kinds[target["kind"]], None if url is None else str(url), run
    )


def _checks(clause: Mapping[str, Any]) -> Iterator[Check]:
    id_ = clauses()[clause["id"]].id
    roles: Mapping[str, Role] = {role: role for role in ROLES}
    in_baseline: Mapping[str, InBaseline] = {value: value for value in IN_BASELINE}
    for check in clause["checks"]:
        yield Check(
            str(check["name"]),
            id_,
            Verdict(check["verdict"]),
            str(check["reason"]),
            float(check["duration_s"]),
            str(check["details"]),
            roles[check["role"]],
            str(check["cause"]),
            in_baseline[check.get("baseline", "")],  # reports of 1.0 do not have these two
            None if check.get("requests") is None else int(check["requests"]),
        )
