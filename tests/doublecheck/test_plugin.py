from __future__ import annotations

import subprocess
import sys

import pytest

from doublecheck import Target

HEAVY = (
    "agentdouble",
    "httpx",
    "httpx_sse",
    "jupyter_client",
    "pydantic",
    "rich",
    "starlette",
    "typer",
    "uvicorn",
    "zmq",
)


def test_the_plugin_imports_nothing_heavy() -> None:
    """A test run that never asks for a platform pays nothing for one."""
    code = (
        "import sys, pytest, doublecheck.plugin, doublecheck.fixtures; "
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)

    assert "[]\n" == ended.stdout


def test_it_is_silent_unless_it_is_asked(pytester: pytest.Pytester) -> None:
    """No line in the header, and no double, for tests that use neither."""
    pytester.makepyfile("def test_nothing(): pass")

    result = pytester.runpytest_inprocess()

    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*platform: *")


def test_the_header_tells_which_platform(
    pytester: pytest.Pytester, platform_server: Target
) -> None:
    """Once an option names one."""
    pytester.makepyfile("def test_url(platform): print(platform.url)")

    result = pytester.runpytest_inprocess("-s", f"--platform-url={platform_server.url}")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([f"platform: double at {platform_server.url}"])
    result.stdout.fnmatch_lines([f"*{platform_server.url}"])


def test_live_without_a_url_is_wrong_usage(pytester: pytest.Pytester) -> None:
    """It is opted into twice, and the error says how."""
    result = pytester.runpytest_inprocess("--platform-target=live")

    assert pytest.ExitCode.USAGE_ERROR == result.ret
    result.stderr.fnmatch_lines(["ERROR: --platform-target=live needs --platform-url. *twice: *"])


def test_a_live_url_without_the_target_is_wrong_usage(
    pytester: pytest.Pytester, platform_server: Target
) -> None:
    """What answers there is no double, and nobody said that it is meant."""
    pytester.makepyfile("def test_it(platform): pass")

    result = pytester.runpytest_inprocess(f"--platform-url={platform_server.url}/runtimes/none")

    assert pytest.ExitCode.USAGE_ERROR == result.ret
    result.stdout.fnmatch_lines(["*answers, but not as a double*--platform-target=live*"])


def test_a_reference_app_without_a_url_is_wrong_usage(pytester: pytest.Pytester) -> None:
    """The option declares something of a platform that runs already."""
    result = pytester.runpytest_inprocess("--platform-reference-app")

    assert pytest.ExitCode.USAGE_ERROR == result.ret
    result.stderr.fnmatch_lines(["ERROR: --platform-reference-app is about the platform at *"])


def test_a_dead_address_is_an_error_of_each_test(pytester: pytest.Pytester) -> None:
    """It names the address and never fails the code under test."""
    pytester.makepyfile("def test_it(platform): pass")

    result = pytester.runpytest_inprocess("--platform-url=http://127.0.0.1:1")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*UnreachableError: Nothing answers at http://127.0.0.1:1*"])
