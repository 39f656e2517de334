"""Platform calls and tracebacks in the report of a failed test."""

from __future__ import annotations

import re
import sys

import pytest

import doublecheck.reports.captured_calls  # noqa: F401
from doublecheck import Target

TITLE = "*- Captured platform calls -*"


@pytest.mark.slow
def test_a_failed_test_shows_its_calls(pytester: pytest.Pytester) -> None:
    """They include calls of fixtures and of the code under test; control characters are visible."""
    pytester.makepyfile(
        r"""
        import agentdouble
        import pytest

        @pytest.fixture
        def prepared(platform_sandbox):
            platform_sandbox.run("import nowhere\nx = 42")

        def test_fails(prepared, platform_sandbox, platform, platform_env):
            platform.ping()
            platform.run_code(r"print('\033[31mred\033[0m', '\033]0;title\007', '\u202e')")
            agentdouble.run_code("for n in range(50): print(n)")
            assert platform_sandbox.run("print(x)").stdout == "42"

        def test_passes(platform):
            assert platform.run_code("1 / 0").text is None
        """
    )

    result = pytester.runpytest_inprocess("-n1", "-p", "no:benchmark")

    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(
        [
            TITLE,
            "POST InvokeTool in agent_test_*: 200, * ms",
            "    python3:",
            "        import nowhere",
            "        x = 42",
            "        ModuleNotFoundError: No module named 'nowhere'",
            "GET /ping: 200, * ms",
            "    stdout: red *;title* *",
            "    python3: for n in range(50): print(n)",
            "        ... 38 lines ...",
            "        49",
            "    python3: print(x)",
            "        NameError: name 'x' is not defined",
        ]
    )
    output = result.stdout.str().partition("stdout: red")[2]
    assert not {"\x1b", "\x07", "\u202e"} & set(output)
    assert "ZeroDivisionError" not in output


@pytest.mark.parametrize(("options", "expected"), [((), 1), (("--show-capture=no",), 0)])
def test_failed_calls_are_shown_without_secrets(
    pytester: pytest.Pytester, options: tuple[str, ...], expected: int
) -> None:
    """Calls to another platform show its address; ``--show-capture=no`` hides the section."""
    pytester.makepyfile(
        """
        from doublecheck import Platform, Secret, Target

        def test_it(platform):
            platform.ping()
            with Platform(Target(url="http://127.0.0.1:1", api_key=Secret("correct-horse"))) as other:
                other.invoke("correct-horse")
        """
    )

    result = pytester.runpytest_inprocess(*options)

    result.assert_outcomes(failed=1)
    section = result.stdout.str().partition("Captured platform calls")[2]
    assert expected == section.count('sent: {"prompt": "***"}')
    assert expected == section.count("POST /invoke of http://127.0.0.1:1: ConnectError: ")
    assert "correct-horse" not in section


EXAMPLE = """
import pytest

def test_fault(platform):
    platform.faults.fail("InvokeTol")

def test_helper(platform):
    upload(platform)

def upload(platform):
    platform.sandbox().upload("/nope", b"text")

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


@pytest.mark.smoke
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
            "E       doublecheck.errors.FaultError: *Did you mean InvokeTool?*",
            '>       platform.sandbox().upload("/nope", b"text")',
            "E       doublecheck.errors.CredentialsMissingError: *",
            '>       platform_journal.only(action="CreateTool")',
            "E       AssertionError: Requests with action='CreateTool': 0, but expected 1.*",
        ]
    )


@pytest.mark.smoke
@pytest.mark.slow
@pytest.mark.parametrize("option", ["--tb=long", "--tb=native", "--full-trace"])
def test_all_frames_are_shown_on_request(
    pytester: pytest.Pytester, platform_server: Target, option: str
) -> None:
    result = run(pytester, platform_server, option, "-k", "fault")

    result.stdout.fnmatch_lines(["*test_it.py*", "*doublecheck*faults.py*"])


@pytest.mark.smoke
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
