"""A run of the checks as a JSON document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from doublecheck.contracts.clauses import Clause
from doublecheck.runs import Check, Run


def document(run: Run, target: Mapping[str, Any]) -> dict[str, Any]:
    """Return target, clauses with their checks, and a count of the verdicts."""
    verdicts = run.verdicts()
    return {
        "target": dict(target),
        "clauses": [
            _clause(clause, verdicts[clause].value, checks)
            for clause, checks in run.by_clause().items()
        ],
        "summary": dict(Counter(verdict.value for verdict in verdicts.values())),
    }


def _clause(clause: Clause, verdict: str, checks: Sequence[Check]) -> dict[str, Any]:
    return {
        "id": clause.id,
        "section": clause.section,
        "level": clause.level,
        "scope": clause.scope,
        "text": clause.text,
        "verdict": verdict,
        "checks": [
            {"name": check.name, "verdict": check.verdict.value, "reason": check.reason}
            for check in checks
        ],
    }
