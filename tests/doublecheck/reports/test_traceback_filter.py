from __future__ import annotations

import re
import sys

import pytest

from doublecheck import Target

pytestmark = pytest.mark.smoke

EXAMPLE = """
import pytest

def test_fault(platform):
    platform.faults.fail("InvokeTol")

def test_helper(platform):
    upload(platform)

def upload(platform):
    platform.upload("/nope", b"text")

def test_journal(platform_journal):
    platform_journal.only(action="CreateTool")

def test_of_its_own(platform):
    assert platform.url == "elsewhere"
"""


def run(pytester: pytest.Pytester, target: Target, *options: str) -> pytest.RunResult:
    pytester.makepyfile(test_it=EXAMPLE)
    return pytester.runpytest_inprocess(
        "-p", "no:cacheprovider", f"--platform-url={target.url}", *options
    )


def places(result: pytest.RunResult) -> list[str]:
    """Return the files of the shown frames."""
    return re.findall(r"^(?:.*/)?(\w+\.py:\d+): ", result.stdout.str(), re.MULTILINE)


def test_a_traceback_ends_at_the_user_line(
    pytester: pytest.Pytester, platform_server: Target
) -> None:
    """The message is below it; failed assertions of a test look as usual."""
    result = run(pytester, platform_server)

    result.assert_outcomes(failed=4)
    assert [f"test_it.py:{line}" for line in (4, 7, 10, 13, 16)] == places(result)
    result.stdout.fnmatch_lines(
        [
            '>       platform.faults.fail("InvokeTol")',
            "E       doublecheck.errors.FaultError: *Did you mean 'InvokeTool'?*",
            '>       platform.upload("/nope", b"text")',
            "E       doublecheck.errors.CredentialsMissingError: *",
            '>       platform_journal.only(action="CreateTool")',
            "E       AssertionError: Requests with action='CreateTool': 0, but expected 1.*",
        ]
    )


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--tb=long", "--tb=native", "--full-trace"])
def test_all_frames_are_shown_on_request(
    pytester: pytest.Pytester, platform_server: Target, option: str
) -> None:
    result = run(pytester, platform_server, option, "-k", "fault")

    result.stdout.fnmatch_lines(["*test_it.py*", "*doublecheck*controls.py*"])


def test_an_error_of_a_fixture_is_only_its_message(
    pytester: pytest.Pytester, platform_server: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makeconftest("import sys; sys.modules['respx'] = None")
    monkeypatch.delitem(sys.modules, "doublecheck.mock", raising=False)
    pytester.makepyfile("def test_it(platform_mock): pass")

    result = pytester.runpytest_inprocess(f"--platform-url={platform_server.url}", "-pno:respx")

    result.assert_outcomes(errors=1)
    assert [] == places(result)
    result.stdout.fnmatch_lines(
        ["_* ERROR at setup of test_it *_", "doublecheck.errors.MissingExtraError: respx*mock]'"]
    )
