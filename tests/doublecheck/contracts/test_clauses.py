from __future__ import annotations

from collections import Counter

import pytest

from doublecheck import Target
from doublecheck.contracts.clauses import Clause, clause, clauses, find, selection
from doublecheck.contracts.verdicts import Verdict, of_failure, of_skip, why_not, worst
from doublecheck.errors import AnswerError, ArgumentError, NoAnswerError, UnreachableError

pytestmark = pytest.mark.smoke


def test_every_clause_of_the_specification_exists() -> None:
    """The groups have the sizes and the order of the specification."""
    groups = Counter(id_.partition("-")[0] for id_ in clauses())

    assert {
        "HST": 5,
        "INV": 9,
        "PRB": 7,
        "API": 18,
        "MCP": 6,
        "SVC": 3,
        "CTL": 8,
        "SBX": 12,
        "RUN": 3,
        "DEC": 6,
        "A2A": 5,
        "AUT": 3,
    } == groups
    assert list(groups) == list(dict.fromkeys(id_[:3] for id_ in clauses()))


def test_a_clause_has_section_level_scope_and_text() -> None:
    expected = Clause(
        "INV-08",
        section="4.1",
        level="should",
        scope="wire",
        surface="application",
        text="A body that is not JSON is refused with a 4xx status and a clear error.",
    )

    assert expected == find("INV-08")


def test_an_unknown_clause_id_is_an_error() -> None:
    """The error suggests the nearest id."""
    with pytest.raises(ArgumentError, match=r"There is no clause 'inv-05'. Did you mean INV-05\?"):
        clause("inv-05")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("RUN", "group:RUN"),
        ("INV or PRB-01", "group:INV or PRB-01"),
        ("not (API or MCP)", "not (group:API or group:MCP)"),
        ("U-RUN-ERROR or RUN-01 or run", "U-RUN-ERROR or RUN-01 or run"),
    ],
)
def test_group_names_expand_in_a_selection(names: str, expected: str) -> None:
    """Ids and lowercase names are left alone."""
    assert expected == selection(names)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([Verdict.PASSED, Verdict.PASSED], Verdict.PASSED),
        ([Verdict.PASSED, Verdict.FAILED, Verdict.ERROR], Verdict.FAILED),
        ([Verdict.PASSED, Verdict.ERROR], Verdict.ERROR),
        ([Verdict.PASSED, Verdict.COULD_NOT_ASK], Verdict.COULD_NOT_ASK),
        ([Verdict.PASSED, Verdict.NOT_OBSERVABLE], Verdict.PASSED),
        ([Verdict.NOT_APPLICABLE], Verdict.NOT_APPLICABLE),
    ],
)
def test_a_clause_has_the_worst_verdict_of_its_checks(
    verdicts: list[Verdict], expected: Verdict
) -> None:
    """Checks that did not run count only if none did."""
    assert expected == worst(verdicts)


@pytest.mark.parametrize(
    ("when", "error", "expected"),
    [
        ("call", AssertionError(), Verdict.FAILED),
        ("call", AnswerError("", status=500), Verdict.FAILED),
        ("call", NoAnswerError("", ""), Verdict.FAILED),
        ("call", UnreachableError("", ""), Verdict.COULD_NOT_ASK),
        ("setup", NoAnswerError("", ""), Verdict.COULD_NOT_ASK),
        ("call", KeyError("a bug of the check"), Verdict.ERROR),
        ("setup", AssertionError(), Verdict.ERROR),
    ],
)
def test_only_errors_of_the_platform_are_failures(
    when: str, error: Exception, expected: Verdict
) -> None:
    """A dead address could not be asked, and a bug of the harness is an error."""
    assert expected == of_failure(when, error)


def test_every_exception_of_a_checked_library_is_a_failure() -> None:
    """Errors of the setup are still errors."""
    error = KeyError("raised by what is checked")

    assert Verdict.FAILED == of_failure("call", error, library=True)
    assert Verdict.ERROR == of_failure("setup", error, library=True)


def test_checks_that_a_target_cannot_show_are_skipped_with_a_reason() -> None:
    live, double = Target("http://a"), Target("http://a", kind="double", reference_app=True)
    generous = Target("http://a", allow_writes=True)

    reasons = [
        why_not(find("DEC-01"), live, reference_app=False),
        why_not(find("INV-01"), live, reference_app=True),
        why_not(find("INV-01"), double, reference_app=True),
        why_not(find("CTL-01"), live, reference_app=False),
        why_not(find("SVC-01"), live, reference_app=False),
        why_not(find("HST-01"), live, reference_app=True),
        why_not(find("SBX-01"), live, reference_app=False, writes=True),
        why_not(find("SBX-01"), generous, reference_app=False, writes=True),
        why_not(find("SBX-01"), double, reference_app=False, writes=True),
    ]

    assert [
        "not applicable: checks this process's library, not a platform",
        (
            "not observable: needs the reference application, which 'doublecheck contracts app' "
            "writes and --reference-app declares"
        ),
        None,
        None,
        "not offered: live does not declare services",
        "not offered: live does not declare runtimes",
        (
            "not run: creates or deletes something on live; allow this with --allow-writes "
            "(in pytest --platform-allow-writes, in Python allow_writes=True)"
        ),
        None,
        None,
    ] == reasons
    assert [
        Verdict.NOT_APPLICABLE,
        Verdict.NOT_OBSERVABLE,
        Verdict.NOT_OFFERED,
        Verdict.NOT_OFFERED,
        Verdict.NOT_RUN,
    ] == [of_skip(reason) for reason in reasons if reason is not None]
    assert Verdict.NOT_RUN == of_skip("not run: takes 30 minutes")
