"""Reports of pytest runs with real checks of separate doubles."""

from __future__ import annotations

import json

import pytest

from doublecheck import Credentials, Secret, Target
from doublecheck.contracts.verdicts import Verdict
from doublecheck.reports import document
from doublecheck.wire import exchanges

CHECKS = ("--pyargs", "doublecheck.contracts.test_decorators", "-p", "no:cacheprovider")


@pytest.mark.slow
def test_a_pytest_run_is_reported_in_each_format(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The option may be repeated, and the summary names the files."""
    every = _checks(pytester)
    result = pytester.runpytest_inprocess(
        *CHECKS,
        *("-k", "DEC-03"),
        *(f"--platform-report=r.{suffix}" for suffix in ("html", "json")),
    )

    chosen = sum("not_implemented" in name for name in every)
    result.assert_outcomes(passed=chosen, deselected=len(every) - chosen)
    result.stdout.fnmatch_lines([f"platform: {chosen} contract checks written to r.html"])
    assert ["r.html", "r.json"] == sorted(path.name for path in pytester.path.glob("r.*"))
    (report,) = document.read(pytester.path / "r.json")
    assert ("double", None, chosen) == (report.name, report.url, report.run.chosen)
    verdicts = {(check.clause, check.verdict) for check in report.run.checks}
    assert {("DEC-03", Verdict.PASSED)} == verdicts


@pytest.mark.slow
def test_reports_of_workers_are_merged(pytester: pytest.Pytester) -> None:
    """Each check appears once, in collection order."""
    pytester.runpytest_subprocess(*CHECKS, "-n", "2", "--platform-report=r.json")

    (report,) = document.read(pytester.path / "r.json")
    assert _checks(pytester) == [check.name for check in report.run.checks]
    assert {Verdict.PASSED} == {check.verdict for check in report.run.checks}


@pytest.mark.parametrize(
    ("path", "message"), [("r.pdf", "must end in one of .html"), ("absent/r.html", "No such file")]
)
def test_invalid_report_paths_are_refused_before_the_run(
    pytester: pytest.Pytester, path: str, message: str
) -> None:
    result = pytester.runpytest_inprocess(f"--platform-report={path}")

    assert pytest.ExitCode.USAGE_ERROR == result.ret
    result.stderr.fnmatch_lines([f"ERROR: *{message}*"])


SECRET = 'k€y/with "all" kinds'
FORMS = (SECRET, json.dumps(SECRET)[1:-1], "k%E2%82%ACy/with%20%22all%22%20kinds")
TARGET = Target(
    "https://agent.example.com",
    credentials=Credentials("AKLTknown", "the-secret-key", "the-session-token"),
    api_key=Secret(SECRET),
    restricted=Credentials("AKLTother", "the-restricted-key"),
)


def test_every_secret_of_a_target_is_hidden_in_every_form() -> None:
    """Text that only looks like a secret is hidden, too."""
    secrets = " ".join((*FORMS, "the-secret-key", "the-session-token", "the-restricted-key"))
    looks = "GET /v1?Authorization=unknown-token HTTP/1.1 Bearer unknown-key"

    redacted = exchanges.redact(f"{secrets} {looks} AKLTknown", exchanges.secrets_of(TARGET))

    assert f"{'*** ' * 6}GET /v1?Authorization=*** HTTP/1.1 Bearer *** AKLTknown" == redacted


def test_reports_contain_no_secrets(pytester: pytest.Pytester) -> None:
    """The failing check has them in its message."""
    pytester.makepyfile(
        breaking="import pathlib, pytest\n"
        "@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_pyfunc_call(pyfuncitem):\n"
        "    target = pyfuncitem.funcargs['platform'].target\n"
        "    keys = [target.credentials.secret_key, target.restricted.secret_key]\n"
        "    pathlib.Path('keys').write_text('\\n'.join(keys))\n"
        "    print(*keys)\n"
        "    pytest.fail(f'{keys} http://x/?Authorization=the-token')\n"
    )
    every = _checks(pytester)
    arguments = (*CHECKS, "-k", "DEC-03", "-p", "breaking")

    pytester.syspathinsert()
    result = pytester.runpytest_inprocess(
        *arguments, *(f"--platform-report=r.{suffix}" for suffix in ("html", "json"))
    )

    failed = sum("not_implemented" in name for name in every)
    result.assert_outcomes(failed=failed, deselected=len(every) - failed)
    reports = [path.read_text("utf-8") for path in sorted(pytester.path.glob("r.*"))]
    secrets = ["the-token", *(pytester.path / "keys").read_text().split()]
    assert (2, 3) == (len(reports), len(secrets))
    for text in (*reports, str(result.stdout)):
        assert not any(secret in text for secret in secrets)


def _checks(pytester: pytest.Pytester) -> list[str]:
    """Return the names of the module's checks in order."""
    listed = pytester.runpytest_inprocess(*CHECKS, "--collect-only", "-q").outlines
    return [f"test_decorators.py::{line.partition('::')[2]}" for line in listed if "::" in line]
