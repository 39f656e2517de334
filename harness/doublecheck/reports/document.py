"""A report as a JSON document of the format that ``report.schema.json`` describes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from typing import Any

from agentdouble import __version__
from doublecheck.contracts.clauses import Clause
from doublecheck.contracts.run_result import Check
from doublecheck.reports.report import Report

FORMAT = "doublecheck-report/1"


def document(report: Report) -> dict[str, Any]:
    """Return the target, its clauses with their checks, and how many came to what."""
    run = report.run
    verdicts = run.verdicts()
    return {
        "format": FORMAT,
        "written_by": f"doublecheck {__version__}",
        "target": {"name": report.name, "kind": report.kind, "url": report.url},
        "started": None if run.started is None else run.started.isoformat(),
        "duration_s": run.duration_s,
        "chosen": run.chosen,
        "interrupted": run.interrupted,
        "strict_should": run.strict_should,
        "pytest_exit": run.pytest_exit,
        "clauses": [
            _clause(clause, verdicts[clause].value, checks)
            for clause, checks in run.by_clause().items()
        ],
        "summary": dict(run.counts()),
    }


def rendered(reports: Sequence[Report]) -> str:
    """Return the document of one report, or a list of those of several, as text."""
    documents = [document(report) for report in reports]
    return json.dumps(documents[0] if len(documents) == 1 else documents, indent=2) + "\n"


def schema() -> Any:
    """Return the JSON Schema of what ``rendered`` returns."""
    file = resources.files("doublecheck.reports").joinpath("report.schema.json")
    return json.loads(file.read_text("utf-8"))


def _clause(clause: Clause, verdict: str, checks: Sequence[Check]) -> dict[str, Any]:
    return {
        "id": clause.id,
        "section": clause.section,
        "level": clause.level,
        "scope": clause.scope,
        "text": clause.text,
        "verdict": verdict,
        "checks": [_check(check) for check in checks],
    }


def _check(check: Check) -> dict[str, Any]:
    return {
        "name": check.name,
        "verdict": check.verdict.value,
        "reason": check.reason,
        "duration_s": check.duration_s,
        "details": check.details,
    }
