from __future__ import annotations

import pytest

from doublecheck import Target
from doublecheck.contracts.clauses import find
from doublecheck.contracts.verdicts import Verdict, of_failure, of_skip, why_not, worst
from doublecheck.errors import AnswerError, NoAnswerError, UnreachableError


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
