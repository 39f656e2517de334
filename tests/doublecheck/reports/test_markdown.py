from __future__ import annotations

from doublecheck.reports import markdown
from tests.doublecheck.reports.examples import DOUBLE, INTERRUPTED, STAGING


def test_one_report_is_a_summary_and_a_table() -> None:
    """What was not carried out is folded below it."""
    lines = markdown.render([STAGING]).splitlines()

    assert "**staging**: 1 failed, 1 error, 1 observed, 1 not offered. " == lines[2][:59]
    assert INTERRUPTED in lines
    assert "| clause | level | verdict |  |" in lines
    failed = next(line for line in lines if line.startswith("| INV-04 "))
    assert failed.startswith("| INV-04 | must | failed | A returned string is wrapped")
    assert [
        "<details><summary>1 clause was not checked</summary>",
        "",
        "- not offered: no mcp: MCP-01",
        "",
        "</details>",
    ] == lines[-5:]


def test_what_a_platform_answers_is_text() -> None:
    """Neither markup nor a cell of the table."""
    (failed,) = [line for line in markdown.render([STAGING]).splitlines() if "INV-04" in line]

    assert "\\<script\\>alert('x')\\</script\\> &amp; \u2400\u241b\\[31m" in failed


def test_platforms_stand_side_by_side() -> None:
    """A column each, and a dash where nothing was checked."""
    lines = markdown.render([DOUBLE, STAGING]).splitlines()

    assert "| clause | level | double | staging |  |" in lines
    assert "| CTL-04 | should | passed | - | An unknown tool id is refused. |" in lines
    assert "- staging: not offered: no mcp: MCP-01" in lines
