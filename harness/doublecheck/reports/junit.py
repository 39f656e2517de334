"""Reports as JUnit XML: a testsuite for each platform, a testcase for each check."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from xml.etree import ElementTree

from doublecheck.contracts.clauses import Clause, clauses
from doublecheck.contracts.run_result import FORGIVEN, Check, Run
from doublecheck.contracts.verdicts import Verdict
from doublecheck.reports.report import Report

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TAGS: Mapping[Verdict, str | None] = {
    Verdict.PASSED: None,
    Verdict.OBSERVED: None,
    Verdict.FAILED: "failure",
    Verdict.ERROR: "error",
    Verdict.COULD_NOT_ASK: "error",
}


def render(reports: Sequence[Report]) -> str:
    """Return the XML; characters that XML does not allow are left out."""
    root = ElementTree.Element("testsuites", name="doublecheck")
    root.attrib.update(_counts(reports), time=_time(sum(one.run.duration_s for one in reports)))
    for report in reports:
        root.append(_suite(report))
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def _suite(report: Report) -> ElementTree.Element:
    run = report.run
    suite = _element("testsuite", name=report.platform_description)
    suite.attrib.update(_counts([report]), time=_time(run.duration_s))
    if run.started is not None:
        suite.set("timestamp", run.started.strftime("%Y-%m-%dT%H:%M:%S"))
    told = {"target": report.name, "kind": report.kind, "url": report.url or ""}
    answered = {f"answered by {one}": ", ".join(names) for one, names in _addresses(report)}
    interrupted = {"interrupted": str(run.interrupted).lower()}
    suite.append(_properties({**told, **interrupted, "asked": run.asked.in_words, **answered}))
    for clause, checks in run.by_clause().items():
        suite.extend(_case(clause, check, _tag(run, check)) for check in checks)
    if report.cut_short:
        suite.append(_text("system-err", report.cut_short))
    return suite


def _addresses(report: Report) -> Iterable[tuple[str, Sequence[str]]]:
    return report.run.asked.surfaces_by_address.items()


def _case(clause: Clause, check: Check, tag: str | None) -> ElementTree.Element:
    case = _element("testcase", classname=f"doublecheck.{clause.id[:3]}")
    case.set("name", _allowed(f"{clause.id}: {check.name}"))
    case.set("time", _time(check.duration_s))
    told = {"clause": clause.id, "level": clause.level, "section": clause.section}
    case.append(_properties({**told, "verdict": check.verdict.value}))
    if tag is not None:
        case.append(_outcome(tag, clause, check))
    return case


def _outcome(tag: str, clause: Clause, check: Check) -> ElementTree.Element:
    first = check.reason.partition("\n")[0] or check.verdict.value
    if tag == "skipped" and check.verdict is Verdict.FAILED:
        return _element(tag, message=f"failed, and is only recommended (should): {first}")
    if tag == "skipped":
        return _element(tag, message=first)
    told = f"{clause}\nspecification, section {clause.section}\n\n{check.reason}"
    outcome = _text(tag, check.details or told)
    outcome.attrib.update(message=_allowed(first), type=check.verdict.value)
    return outcome


def _tag(run: Run, check: Check) -> str | None:
    """Return the JUnit tag of a check; only failures that fail the run are failures here."""
    if run.outcome(clauses()[check.clause], check.verdict) == FORGIVEN:
        return "skipped"
    return _TAGS.get(check.verdict, "skipped")


def _counts(reports: Sequence[Report]) -> dict[str, str]:
    runs = [report.run for report in reports]
    tags = [_tag(run, one) for run in runs for checks in run.by_clause().values() for one in checks]
    return {
        "tests": str(len(tags)),
        "failures": str(tags.count("failure")),
        "errors": str(tags.count("error")),
        "skipped": str(tags.count("skipped")),
    }


def _properties(told: Mapping[str, str]) -> ElementTree.Element:
    properties = _element("properties")
    properties.extend(_element("property", name=name, value=told[name]) for name in told)
    return properties


def _text(tag: str, text: str) -> ElementTree.Element:
    element = _element(tag)
    element.text = _allowed(text)
    return element


def _element(tag: str, **attributes: str) -> ElementTree.Element:
    return ElementTree.Element(tag, {name: _allowed(one) for name, one in attributes.items()})


def _allowed(text: str) -> str:
    return _NOT_XML.sub("", text)


def _time(seconds: float) -> str:
    return f"{seconds:.3f}"
