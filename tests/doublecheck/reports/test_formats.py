"""Reports in each format: on a terminal, as JSON and as HTML."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from rich.console import Console

from doublecheck.contracts.clauses import clauses
from doublecheck.contracts.failure_report import explained
from doublecheck.contracts.run_result import KNOWN, Check, Run
from doublecheck.contracts.verdicts import Verdict
from doublecheck.core import markup
from doublecheck.core.markup import element
from doublecheck.errors import ReportError
from doublecheck.reports import document, html, terminal
from doublecheck.reports.report import Report
from doublecheck.wire import calls
from doublecheck.wire.exchanges import Exchange
from tests.doublecheck.reports.examples import DOUBLE, INTERRUPTED, STAGING

pytestmark = pytest.mark.smoke


RUN = Run(
    (
        Check("b", "CTL-04", Verdict.NOT_RUN, "not run: takes long"),
        Check("a", "INV-04", Verdict.FAILED, "assert 1 == 2\nmore"),
        Check("c", "INV-04", Verdict.PASSED),
    ),
    pytest_exit=1,
)


def show(*, colours: bool) -> str:
    file = io.StringIO()
    report = Report("double", "double", None, RUN)
    console = Console(file=file, width=100, force_terminal=colours)
    terminal.show([report], console, verbose=True)
    return file.getvalue()


def test_checks_that_did_not_run_are_folded() -> None:
    """Each clause appears once, with its worst verdict and the reasons' first lines."""
    assert [
        "clause  level  verdict",
        "INV-04  must   failed   A returned string is wrapped as a JSON response.",
        "                        assert 1 == 2",
        "",
        "failed: assert 1 == 2  INV-04",
        "not run: takes long  CTL-04",
        "",
        (
            f"a temporary double: 1 failed, 1 not run. {len(clauses()) - 2} of {len(clauses())} "
            "clauses were not checked. 3 checks, 0 requests, in 0.0 s."
        ),
    ] == [line.rstrip() for line in show(colours=False).strip().splitlines()]


def test_failures_come_first() -> None:
    """The other executed checks follow in the specification's order."""
    verdicts = [Verdict.PASSED, Verdict.PASSED, Verdict.FAILED, Verdict.COULD_NOT_ASK]
    ids = ["INV-04", "PRB-01", "CTL-01", "CTL-04"]
    checks = [Check("a", id_, verdict) for id_, verdict in zip(ids, verdicts, strict=True)]

    report = Report("live", "live", "http://a", Run(tuple(checks), 1))
    lines = _lines([report], width=100, verbose=True)

    expected = ["CTL-01", "INV-04", "PRB-01"]
    assert expected == [line[:6] for line in lines if line[:6] in expected]


def test_could_not_ask_is_grouped_by_reason() -> None:
    """It precedes checks that did not run for other reasons."""
    checks = [Check("a", id_, Verdict.COULD_NOT_ASK, "it hangs") for id_ in ("PRB-01", "PRB-02")]
    skipped = Check("b", "INV-04", Verdict.NOT_RUN, "not run: takes long")

    lines = _lines([Report("live", "live", "http://a", Run((skipped, *checks), 1))], width=100)

    assert "could not ask: it hangs  PRB-01 PRB-02" == lines[0]
    assert "not run: takes long  INV-04" == lines[1]


def test_a_partly_checked_clause_is_marked() -> None:
    """The reason for the rest is below its outcome."""
    checks = (
        Check("a", "PRB-06", Verdict.PASSED),
        Check("b", "PRB-06", Verdict.NOT_OBSERVABLE, "not observable: needs the application"),
    )
    report = Report("live", "live", "http://a", Run(checks, 0))

    lines = _lines([report], width=120, verbose=True)

    assert lines[1].startswith("PRB-06  should  partly passed  Ping answers within 1 second")
    assert "not observable: needs the application" == lines[2].strip()
    assert {"partly passed": 1} == report.counts()


def test_a_smoke_check_passes_a_clause_partly() -> None:
    """It replaces the full checks."""
    smoke = Check("a", "MCP-03", Verdict.PASSED, role="smoke")

    assert {"partly passed": 1} == Run((smoke,), 0).counts()
    assert {"passed": 1} == Run((smoke, Check("b", "MCP-03", Verdict.PASSED)), 0).counts()


def test_only_terminals_get_colours() -> None:
    assert (True, False) == ("\x1b[" in show(colours=True), "\x1b[" in show(colours=False))


def test_platforms_are_columns() -> None:
    """A clause that was not checked on one of them has a dash."""
    lines = _lines([DOUBLE, STAGING], width=100)

    assert "clause  level   double  staging" == lines[0]
    assert (
        "INV-04  must    passed  failed   A returned string is wrapped as a JSON response." in lines
    )
    assert "CTL-04  should  passed  -        An unknown tool id is refused." in lines
    assert INTERRUPTED == lines[-1]


def test_a_narrow_terminal_wraps_text() -> None:
    """Platform answers cannot contain escape sequences."""
    lines = _lines([STAGING], width=60, verbose=True)

    assert all(len(line) <= 60 for line in lines[: lines.index("")])
    assert "\x1b" not in "".join(lines)


def test_each_cause_is_reported_once() -> None:
    """The clauses that passed follow as ranges, then the reasons for the rest."""
    missing, failed = "GET /version answers HTTP 404", Verdict.FAILED
    checks = [
        Check("a", "API-15", failed, "assert False", cause=missing),
        Check("b", "INV-08", failed, "assert 1 == 2"),
        Check("c", "INV-08", failed, "assert 3 == 4"),
        Check("d", "API-01", failed, "assert False", cause=missing),
        *(Check("e", f"PRB-0{number}", Verdict.PASSED) for number in (1, 2, 3, 5)),
        Check("f", "PRB-05", Verdict.NOT_RUN, "not run: takes long. It does"),
        Check("g", "CTL-04", Verdict.NOT_RUN, "not run: takes long. It does"),
    ]

    lines = _lines([Report("live", "live", "http://a", Run(tuple(checks), 1))], width=60)

    assert [
        "failed: GET /version answers HTTP 404  API-01 API-15",
        "failed (should): assert 1 == 2  INV-08",
        "passed  PRB-01 PRB-02 PRB-03",
        "partly passed  PRB-05",
        "not run: takes long  PRB-05 CTL-04",
    ] == lines[:5]


def test_a_full_run_fits_a_screen() -> None:
    """Even if each group of clauses has a few causes of its own."""
    causes = {
        id_: f"{id_[:3]} is broken" + "!" * (number % 3) for number, id_ in enumerate(clauses())
    }
    checks = [Check("a", id_, Verdict.FAILED, cause, cause=cause) for id_, cause in causes.items()]

    lines = _lines([Report("live", "live", "http://a", Run(tuple(checks), 1))], width=100)

    assert len(lines) <= 40


def test_lost_answers_are_counted() -> None:
    report = Report("live", "live", "http://a", Run(RUN.checks, 1, requests=90, lost=12))

    assert "90 requests, 12 answers lost on the way and asked again, in" in terminal.summary(report)


def _lines(reports: list[Report], *, width: int, verbose: bool = False) -> list[str]:
    file = io.StringIO()
    terminal.show(reports, Console(file=file, width=width), verbose=verbose)
    return [line.rstrip() for line in file.getvalue().strip().splitlines()]


@pytest.mark.parametrize("reports", [[DOUBLE], [STAGING], [DOUBLE, STAGING]])
def test_a_report_survives_a_round_trip_through_json(tmp_path: Path, reports: list[Any]) -> None:
    """The document conforms to its schema."""
    path = tmp_path / "report.json"
    path.write_text(document.render(reports), "utf-8")

    jsonschema.validate(json.loads(path.read_text("utf-8")), document.schema())
    assert reports == document.read(path)


def test_findings_name_their_clauses_and_checks() -> None:
    finding = document.to_document(STAGING)["findings"][1]

    assert {
        "cause": "it did not answer",
        "outcome": "error",
        "clauses": ["PRB-01"],
        "checks": ["test_x.py::test_d"],
    } == finding


def test_the_schema_lists_exactly_the_verdicts() -> None:
    allowed = document.schema()["$defs"]["verdict"]["enum"]

    assert sorted(verdict.value for verdict in Verdict) == sorted(allowed)


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (["format"], "junit/1", "it does not have the format doublecheck-report/1"),
        (["target", "kind"], "moon", "'moon' is missing or unknown"),
        (["clauses", 0, "id"], "XYZ-01", "'XYZ-01' is missing or unknown"),
        (["clauses", 0, "checks", 0, "verdict"], "odd", "'odd' is not a valid Verdict"),
    ],
)
def test_a_file_without_a_report_is_refused(
    tmp_path: Path, keys: list[Any], value: Any, message: str
) -> None:
    """The message names the file and the reason."""
    broken = place = document.to_document(DOUBLE)
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    path = tmp_path / "report.json"
    path.write_text(json.dumps(broken))

    with pytest.raises(ReportError) as refused:
        document.read(path)

    assert str(refused.value).startswith(f"{path} is not a report: {message}")


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[" * 100_000, b"[]"])
def test_rubbish_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(content)

    with pytest.raises(ReportError, match="is not a report: "):
        document.read(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """The message has the system's reason."""
    with pytest.raises(ReportError, match=r"absent\.json cannot be read: No such file"):
        document.read(tmp_path / "absent.json")


class Page(HTMLParser):
    """Collect the elements and the text of a page, without its style sheet."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_platform_answers_are_never_html() -> None:
    """Markup is text, and control characters are visible."""
    page = Page(html.render([DOUBLE, STAGING]))

    assert (
        "<script>alert('x')</script> & \u2400\u241b[31m \ufffd ]]> \ufffd \U0001f600" in page.text
    )
    assert "script" not in {tag for tag, _ in page.elements}


def test_the_page_loads_nothing() -> None:
    """Its policy would forbid it, too."""
    text = html.render([DOUBLE, STAGING])
    page = Page(text)

    fetching = {"script", "link", "img", "iframe", "object", "form"}
    policy = [attrs.get("content") for _, attrs in page.elements if "http-equiv" in attrs]
    assert set() == fetching & {tag for tag, _ in page.elements}
    assert [True] == [str(content).startswith("default-src 'none';") for content in policy]
    assert [] == re.findall(r"url\(|@import", text)
    assert {"#"} == {str(attrs["href"])[0] for tag, attrs in page.elements if tag == "a"}


def test_each_clause_has_an_anchor() -> None:
    """Failures are first."""
    page = Page(html.render([DOUBLE, STAGING]))

    anchors = [attrs["id"] for tag, attrs in page.elements if tag == "tr" and "id" in attrs]
    assert {"INV-04", "INV-05", "PRB-01", "MCP-01", "CTL-04"} == set(anchors)
    assert "INV-04" == anchors[0]


def test_findings_are_above_the_clauses() -> None:
    """Each is linked to its clauses."""
    text = html.render([STAGING])

    findings, table = text.split("<table", 1)
    assert 'it did not answer: <a href="#PRB-01">PRB-01</a>' in findings
    assert 'id="PRB-01"' in table


def test_checks_that_did_not_run_are_folded_in_html() -> None:
    """They follow the others, with reasons."""
    text = html.render([STAGING])

    visible, folded = text.split('<details class="folded">')
    assert "<summary>1 clause not checked</summary>" in folded
    assert "not offered: no mcp" in folded
    assert ('id="MCP-01"' in folded, 'id="MCP-01"' in visible) == (True, False)


def test_attributes_are_escaped() -> None:
    assert '<p class="a&quot; onclick=&quot;b" hidden>&lt;</p>' == element(
        "p", "<", class_='a" onclick="b', hidden=True, title=None
    )


def test_values_are_escaped() -> None:
    hostile = '"><script>x</script>'

    html = markup.box(
        markup.title(hostile, markup.badge(hostile), hostile),
        markup.table([hostile], [[hostile], [markup.code(hostile)]]),
        markup.folded(hostile, markup.pre(hostile), hostile),
        markup.quiet(hostile),
        markup.image(hostile, b"<"),
    )

    assert 11 == html.count("&lt;script&gt;")
    assert "<script" not in html


def test_long_text_is_truncated_with_a_note() -> None:
    """The note says how to get all of it."""
    expected = "xxx\n… 1,997 more characters; result.stdout has all of it"

    assert expected == markup.clipped("x" * 2000, 3, source="result.stdout")
    assert "xxx" == markup.clipped("xxx", 3)


def test_images_may_be_url_safe_base64() -> None:
    """Agents' events use it, kernels standard base64. Invalid base64 is dropped."""
    html = markup.image("image/png", b"\xfb\xff")

    assert html == markup.image_of("image/png", "-_8=") == markup.image_of("image/png", "+/8=")
    assert markup.image_of("image/png", "?") is None


def test_checks_that_passed_without_a_request_are_marked() -> None:
    """A check of the library needs none, and one of an older report may have had some."""
    checks = (
        Check("a", "INV-04", Verdict.PASSED, requests=0),
        Check("b", "PRB-01", Verdict.PASSED, requests=3),
        Check("c", "DEC-01", Verdict.PASSED, requests=0),
        Check("d", "CTL-04", Verdict.PASSED),
    )
    shown = Report("live", "live", "http://a", Run(checks, 0))
    page = html.render([shown])

    lines = _lines([shown], width=120, verbose=True)
    assert ["passed without a request: a"] == [it.strip() for it in lines if "without a" in it]
    assert 1 == page.count(">passed without a request<")
    assert "3 requests, 0.00 s" in page
    counted = [
        check["requests"]
        for clause in document.to_document(shown)["clauses"]
        for check in clause["checks"]
    ]
    assert [0, 3, None, 0] == counted


def test_surfaces_that_the_level_leaves_out_are_named() -> None:
    run = Run(RUN.checks[1:], 0, level="quick", left_out=("a2a", "runtimes"))
    shown = Report("live", "live", "http://a", run)

    note = "Not checked at level quick: a2a, runtimes; use --level full."
    assert note == _lines([shown], width=100)[-1]
    assert note in html.render([shown])
    assert shown == document.from_document(document.to_document(shown))


def test_a_failure_shows_request_and_answer_first() -> None:
    """The sentence is at the top; where the check failed is folded, and so are known failures."""
    request = calls.Request("POST", "http://a/invoke", {}, b"> not a request <")
    exchange = Exchange(request, 500, {"content-type": "text/html"}, body=b"<h1>no</h1>")
    reason = "AssertionError: it must say why\nassert '' == 'why'"
    details = explained(clauses()["INV-04"], reason, "test_x.py:7: AssertionError", [exchange])
    failed = Check("a", "INV-04", Verdict.FAILED, reason, details=details)
    known = replace(failed, clause="PRB-01", baseline=KNOWN)

    page = html.render([Report("live", "live", "http://a", Run((failed, known), 1))])

    lines = details.splitlines()
    assert ["it must say why", "assert '' == 'why'"] == lines[:2]
    assert ["Where the check failed:", "test_x.py:7: AssertionError"] == lines[-2:]
    reason_at = page.index('<p class="reason">it must say why\n')
    request_at = page.index('<pre class="request">&gt; POST http://a/invoke')
    answer_at = page.index('<pre class="answer">&lt; HTTP 500')
    frames = "<details><summary>where the check failed</summary><pre>test_x.py:7: AssertionError"
    assert reason_at < request_at < answer_at < page.index(frames)
    assert (1, 1) == (page.count("<details open>"), page.count("<details><summary>1 check<"))
