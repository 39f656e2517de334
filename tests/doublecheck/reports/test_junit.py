from __future__ import annotations

from xml.etree import ElementTree

import pytest

from doublecheck.contracts.run_result import Check, Run
from doublecheck.contracts.verdicts import Verdict
from doublecheck.reports import junit
from doublecheck.reports.report import Report
from tests.doublecheck.reports.examples import DOUBLE, INTERRUPTED, STAGING


def suites() -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(junit.render([DOUBLE, STAGING])))


def test_each_platform_is_a_suite_with_its_counts() -> None:
    """Failures, errors and what was skipped are counted apart."""
    keys = ("name", "tests", "failures", "errors", "skipped", "time", "timestamp")

    assert [
        ["a double of its own", "2", "0", "0", "0", "1.500", "2026-01-31T12:00:00"],
        ["staging, live at https://agent.example.com", "5", "1", "1", "1", "2.000", None],
    ] == [[suite.get(key) for key in keys] for suite in suites()]
    assert INTERRUPTED == suites()[1].findtext("system-err")


def test_each_check_is_a_case_with_its_clause() -> None:
    """The group is its class, and the properties tell clause, level and section."""
    case = suites()[1].find("testcase")

    assert case is not None
    assert {
        "classname": "doublecheck.INV",
        "name": "INV-04: test_x.py::test_a",
        "time": "0.250",
    } == case.attrib
    assert {"clause": "INV-04", "level": "must", "section": "4.1, 4.6", "verdict": "failed"} == {
        one.get("name"): one.get("value") for one in case.iter("property")
    }


def test_what_xml_does_not_allow_is_left_out() -> None:
    """The rest of the reason is told in full."""
    failure = suites()[1].find("testcase/failure")

    assert failure is not None
    assert "<script>alert('x')</script> & [31m \u202e ]]>  \U0001f600" == failure.get("message")
    assert str(failure.text).endswith("\U0001f600\nmore")


def test_each_verdict_has_its_element() -> None:
    """Observed and passed have none."""
    found = [
        [child.tag for child in case if child.tag != "properties"]
        for case in suites()[1].iter("testcase")
    ]

    assert [["failure"], [], [], ["error"], ["skipped"]] == found


@pytest.mark.parametrize(
    ("strict", "told"),
    [
        (False, ("skipped", "failed, and is only recommended (should): why")),
        (True, ("failure", "why")),
    ],
)
def test_what_does_not_fail_the_run_fails_no_consumer(strict: bool, told: tuple[str, str]) -> None:
    """A should that failed is told as skipped, unless it was asked to fail the run."""
    check = Check("test_x.py::test_a", "INV-08", Verdict.FAILED, "why")
    report = Report("double", "double", None, Run((check,), 1, strict_should=strict))

    (suite,) = ElementTree.fromstring(junit.render([report]))
    outcome = next(suite.iter("testcase"))[-1]
    assert told == (outcome.tag, outcome.get("message"))
    assert "1" == suite.get("failures" if strict else "skipped")
