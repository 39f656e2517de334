"""The findings of a calibration in a notebook: the answers, then the unknowns without one."""

from __future__ import annotations

from collections.abc import Iterable

from agentdouble import ledger
from doublecheck.calibration.findings import Finding, Findings
from doublecheck.notebook.display.markup import (
    GOOD,
    INFO,
    Markup,
    badge,
    box,
    code,
    element,
    folded,
    joined,
    quiet,
    table,
    title,
)


def render(findings: Findings) -> Markup:
    """Return the findings as HTML; answers that differ from a double's defaults stand out."""
    settled = findings.settled
    others = [one for one in findings if not one.settled]
    return box(
        title("What the deployment answers", badge(f"{len(settled)} settled", GOOD)),
        element("div", code(findings.target)),
        _settled(settled) if settled else None,
        folded(f"{len(others)} not settled", _unsettled(others)) if others else None,
    )


def finding(one: Finding) -> Markup:
    """Return one finding as HTML."""
    return box(_settled([one]) if one.settled else _unsettled([one]))


def _settled(findings: Iterable[Finding]) -> Markup:
    rows = [(_id(one), _answer(one), one.meaning) for one in findings]
    return table(("unknown", "answer", ""), rows)


def _unsettled(findings: Iterable[Finding]) -> Markup:
    return table(("unknown", "why there is no answer"), ([_id(x), x.reason] for x in findings))


def _id(one: Finding) -> Markup:
    return element("b", one.unknown, style="white-space:nowrap")


def _answer(one: Finding) -> Markup:
    usual = ledger.find(one.unknown).default.name == one.answer
    told = None if usual else badge("not the double's own", INFO)
    lived = None if one.lived else quiet(" (the double cannot live that yet)")
    return joined((code(one.answer), " ", told, lived))
